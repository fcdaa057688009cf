//===- ScratchFolder.h - files that do not outlive their use ----*- C++ -*-===//
#ifndef LLMC_SUPPORT_SCRATCHFOLDER_H
#define LLMC_SUPPORT_SCRATCHFOLDER_H

#include <string>
#include <string_view>

namespace llmc {

/// A folder under $TMPDIR that goes away with the object. Throws Error.
class ScratchFolder {
public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;
  std::string file(const std::string &name) const { return path + "/" + name; }

private:
  std::string path;
};

/// Whole files; throw Error naming the path and the system's reason.
void writeFile(const std::string &path, std::string_view bytes);
std::string readFile(const std::string &path);

} // namespace llmc

#endif // LLMC_SUPPORT_SCRATCHFOLDER_H
