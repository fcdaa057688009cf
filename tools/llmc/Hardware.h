//===- Hardware.h - what machines can do ------------------------*- C++ -*-===//
#ifndef LLMC_TOOLS_LLMC_HARDWARE_H
#define LLMC_TOOLS_LLMC_HARDWARE_H

#include <string>
#include <vector>

namespace llmc {

/// Peaks of one machine, for roofline estimates (Williams et al. 2009).
struct Hardware {
  const char *name, *description;
  double bandwidth;  // bytes/s from memory, all channels
  double int8Ops;    // multiply and add count as two, all cores
  double floatOps;
};

const std::vector<Hardware> &hardwareTable();

/// Cards with the chip of a GPU target ("sm_90a"); int8Ops is 0: products are bf16 (floatOps).
const std::vector<Hardware> &cardTable(const std::string &chip);

} // namespace llmc

#endif // LLMC_TOOLS_LLMC_HARDWARE_H
