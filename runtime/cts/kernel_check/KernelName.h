//===- KernelName.h - what a kernel computes, from its name -----*- C++ -*-===//
//
// Kernels carry their op and its constants in their names (lib/Conversion/LMToTile), since equal layers share them.
// What else a reference needs it takes from the launch.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CTS_KERNEL_CHECK_KERNELNAME_H
#define LLMC_RUNTIME_CTS_KERNEL_CHECK_KERNELNAME_H

#include <cstdint>
#include <string>
#include <string_view>

namespace llmc::kernel_check {

enum class Op {
  Embedding, RMSNorm, Linear, Gated, RopeTable, Rope, KVAppend, RopeAppend, Attention,
  Round, Quantize, Add, Scale, SoftCap, GatedActivation, GatherRows, Argmax
};

/// How the operands of a product are rounded (LM_Arith; BF16_G32: tokens alone).
enum class Arith { F32, BF16_EO32, Q8_G32, Q16_G32, BF16, BF16_G32, E4M3 };

struct KernelName {
  Op op;
  Arith arith = Arith::F32; // Linear, Gated
  bool bias = false, residual = false; // Linear
  float eps = 1e-5f;        // RMSNorm
  int64_t headDim = 0;      // Rope, KVAppend, RopeAppend, Attention
  int64_t window = 0;       // Attention; 0: none
  bool gelu = false;        // Gated, GatedActivation: GELU in its tanh form, not SiLU
  bool sinks = false;       // Attention
  bool narrow = false;      // Attention on a CPU: queries and probabilities enter their products in bf16
  float scale = 0;          // Attention; 0: 1 / sqrt(headDim)
  float cap = 0;            // Attention (0: none), SoftCap
  float factor = 1;         // Embedding, Scale

  /// Throws Error if no op has such a name: the check has no reference for it.
  static KernelName parse(std::string_view name);
};

} // namespace llmc::kernel_check

#endif // LLMC_RUNTIME_CTS_KERNEL_CHECK_KERNELNAME_H
