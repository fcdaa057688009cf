//===- Panels.h - one panel of 16 rows --------------------------*- C++ -*-===//
#ifndef LLMC_LIB_TARGET_PACKING_PANELS_H
#define LLMC_LIB_TARGET_PACKING_PANELS_H

#include "llmc/Target/Packing.h"

namespace llmc {

/// Writes a whole panel of padding: weights that decode to 0.
void fillPanel(llmc_layout layout, std::span<uint8_t> panel);

/// Overwrites lanes [0, count) of a filled panel of panelLayout(storage) with `count` stored rows of `rowBytes` each.
void packPanel(DType storage, const uint8_t *rows, uint64_t count, uint64_t rowBytes, std::span<uint8_t> panel);

} // namespace llmc

#endif // LLMC_LIB_TARGET_PACKING_PANELS_H
