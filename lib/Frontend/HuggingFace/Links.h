//===- Links.h - which files a model folder may lead to ---------*- C++ -*-===//
#ifndef LLMC_LIB_FRONTEND_HUGGINGFACE_LINKS_H
#define LLMC_LIB_FRONTEND_HUGGINGFACE_LINKS_H

#include "llmc/Support/Json.h"

namespace llmc::huggingface {

/// A file name that a file of the folder gives (a shard in the index): a relative path without "..", so that it says
/// nothing about places outside the folder. Throws Error naming the entry before anything is opened.
const std::string &checkedFileName(const JsonView &view);

/// `name` inside `folder` may be a symbolic link, and its folders too. It has to end inside the folder (itself
/// possibly reached by links: it is what the user named), or in the "blobs" of a hub cache, next to "snapshots", of
/// whose links model folders there consist. Throws Error naming the file and its target. Absent files pass.
void checkLinks(const std::string &folder, const std::string &name);

/// checkLinks for every file besides the weights that a folder may have.
void checkSideFileLinks(const std::string &folder);

} // namespace llmc::huggingface

#endif // LLMC_LIB_FRONTEND_HUGGINGFACE_LINKS_H
