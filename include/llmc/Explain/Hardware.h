//===- Hardware.h - what machines can do ------------------------*- C++ -*-===//
#ifndef LLMC_EXPLAIN_HARDWARE_H
#define LLMC_EXPLAIN_HARDWARE_H

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

/// Peaks of one machine, for roofline estimates (Williams et al. 2009). Multiply and add count as two, all cores.
struct Hardware {
  std::string name, description;
  double bandwidth = 0; // bytes/s from memory, all channels
  double f32 = 0, bf16 = 0, int16 = 0, int8 = 0; // operations/s; 0: none of its own, f32 does it

  /// Of an arithmetic (enum llmc_cost_arithmetic).
  double peak(uint32_t arithmetic) const;
};

const std::vector<Hardware> &hardwareTable();

/// Cards with the chip of a GPU target ("sm_90a"); their products are bf16.
const std::vector<Hardware> &cardTable(const std::string &chip);

/// By name, of the table for `isa` ("avx2", "avx512vnni", "sm_90a"). Empty: the card that `device` ("NVIDIA H200") names, else
/// a usual one of the kind. Throws Error listing the known names.
Hardware hardwareFor(const std::string &isa, const std::string &name, const std::string &device);

} // namespace llmc

#endif // LLMC_EXPLAIN_HARDWARE_H
