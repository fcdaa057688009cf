//===- AbiLayout.h - the structs of llmc/abi.h as field lists ---*- C++ -*-===//
//
// Each list names every field of a struct in order, with its width; `fits` proves at compile time that an
// LLVM struct of these fields has the offsets and the size that C gives it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_LIB_CONVERSION_RTTOLLVM_ABILAYOUT_H
#define LLMC_LIB_CONVERSION_RTTOLLVM_ABILAYOUT_H

#include "llmc/abi.h"

#include <cstddef>
#include <cstdint>

namespace llmc::abi {

enum class Kind : uint8_t { I32, I64, Pointer };

struct Field {
  Kind kind;
  size_t offset;
};

/// Natural alignment puts each field where C does, and nothing is left over.
template <size_t N> constexpr bool fits(const Field (&fields)[N], size_t size) {
  size_t at = 0;
  for (const Field &field : fields) {
    size_t width = field.kind == Kind::I32 ? 4 : 8;
    at = (at + width - 1) / width * width;
    if (at != field.offset)
      return false;
    at += width;
  }
  return (at + 7) / 8 * 8 == size;
}

#define LLMC_FIELD(kind, name) Field{Kind::kind, offsetof(Struct, name)}

namespace arg {
using Struct = llmc_arg_v1;
inline constexpr Field fields[] = {LLMC_FIELD(I32, kind), LLMC_FIELD(I32, reserved), LLMC_FIELD(I64, value)};
static_assert(fits(fields, sizeof(Struct)));
} // namespace arg

namespace variant {
using Struct = llmc_variant_v1;
inline constexpr Field fields[] = {LLMC_FIELD(I32, max_rows), LLMC_FIELD(I32, row_block), LLMC_FIELD(I32, col_blocks),
                                   LLMC_FIELD(I32, span_rows), LLMC_FIELD(Pointer, kernel), LLMC_FIELD(Pointer, name)};
static_assert(fits(fields, sizeof(Struct)));
} // namespace variant

namespace tensor_map {
using Struct = llmc_tensor_map_v1;
inline constexpr Field fields[] = {
    LLMC_FIELD(I32, arg),        LLMC_FIELD(I32, element),    LLMC_FIELD(I32, rank),       LLMC_FIELD(I32, swizzle),
    LLMC_FIELD(I64, dims[0]),    LLMC_FIELD(I64, dims[1]),    LLMC_FIELD(I64, dims[2]),    LLMC_FIELD(I64, dims[3]),
    LLMC_FIELD(I64, dims[4]),    LLMC_FIELD(I64, strides[0]), LLMC_FIELD(I64, strides[1]), LLMC_FIELD(I64, strides[2]),
    LLMC_FIELD(I64, strides[3]), LLMC_FIELD(I64, strides[4]), LLMC_FIELD(I32, box[0]),     LLMC_FIELD(I32, box[1]),
    LLMC_FIELD(I32, box[2]),     LLMC_FIELD(I32, box[3]),     LLMC_FIELD(I32, box[4]),     LLMC_FIELD(I32, reserved)};
static_assert(fits(fields, sizeof(Struct)));
} // namespace tensor_map

namespace cuda_kernel {
using Struct = llmc_cuda_kernel_v1;
inline constexpr Field fields[] = {
    LLMC_FIELD(Pointer, cubin), LLMC_FIELD(I64, cubin_bytes),  LLMC_FIELD(Pointer, ptx),         LLMC_FIELD(I64, ptx_bytes),
    LLMC_FIELD(I32, threads),   LLMC_FIELD(I32, shared_bytes), LLMC_FIELD(I32, num_tensor_maps), LLMC_FIELD(I32, persistent),
    LLMC_FIELD(Pointer, tensor_maps)};
static_assert(fits(fields, sizeof(Struct)));
} // namespace cuda_kernel

namespace value {
using Struct = llmc_value_v1;
inline constexpr Field fields[] = {LLMC_FIELD(Pointer, name), LLMC_FIELD(I64, offset), LLMC_FIELD(I32, element),
                                   LLMC_FIELD(I32, rows),     LLMC_FIELD(I32, cols),   LLMC_FIELD(I32, stride),
                                   LLMC_FIELD(I64, scales_offset)};
static_assert(fits(fields, sizeof(Struct)));
} // namespace value

namespace cost {
using Struct = llmc_cost_v1;
inline constexpr Field fields[] = {
    LLMC_FIELD(I32, arithmetic),     LLMC_FIELD(I32, window),       LLMC_FIELD(I64, flops_per_row),
    LLMC_FIELD(I64, flops_per_pair), LLMC_FIELD(I64, weight_bytes), LLMC_FIELD(I64, weight_bytes_per_row),
    LLMC_FIELD(I64, activation_bytes_per_row), LLMC_FIELD(I64, kv_read_bytes), LLMC_FIELD(I64, kv_write_bytes_per_row)};
static_assert(fits(fields, sizeof(Struct)));
} // namespace cost

namespace launch {
using Struct = llmc_launch_v1;
inline constexpr Field fields[] = {
    LLMC_FIELD(I32, op_id),    LLMC_FIELD(I32, rows),       LLMC_FIELD(I32, layer),     LLMC_FIELD(I32, num_variants),
    LLMC_FIELD(I32, num_args), LLMC_FIELD(I32, num_values), LLMC_FIELD(Pointer, variants), LLMC_FIELD(Pointer, args),
    LLMC_FIELD(Pointer, values), LLMC_FIELD(Pointer, op),
    LLMC_FIELD(I32, cost), LLMC_FIELD(I32, reserved)};
static_assert(fits(fields, sizeof(Struct)));
} // namespace launch

namespace weight {
using Struct = llmc_weight_v1;
inline constexpr Field fields[] = {LLMC_FIELD(Pointer, name), LLMC_FIELD(I64, offset),      LLMC_FIELD(I64, bytes),
                                   LLMC_FIELD(I32, layout),   LLMC_FIELD(I32, reserved),    LLMC_FIELD(I64, rows),
                                   LLMC_FIELD(I64, cols),     LLMC_FIELD(I64, padded_rows), LLMC_FIELD(I64, padded_cols)};
static_assert(fits(fields, sizeof(Struct)));
} // namespace weight

namespace kv_group {
using Struct = llmc_kv_group_v1;
inline constexpr Field fields[] = {LLMC_FIELD(I32, element), LLMC_FIELD(I32, layers), LLMC_FIELD(I32, heads),
                                   LLMC_FIELD(I32, k_dim),   LLMC_FIELD(I32, v_dim),  LLMC_FIELD(I32, window),
                                   LLMC_FIELD(I64, block_bytes), LLMC_FIELD(I64, layer_bytes), LLMC_FIELD(I64, head_bytes)};
static_assert(fits(fields, sizeof(Struct)));
} // namespace kv_group

// The programs are written flat: each is six fields of the module.
namespace module {
using Struct = llmc_module_v1;
#define LLMC_PROGRAM(name)                                                                                             \
  LLMC_FIELD(I32, name.num_launches), LLMC_FIELD(I32, name.reserved), LLMC_FIELD(Pointer, name.launches),              \
      LLMC_FIELD(I64, name.arena_bytes), LLMC_FIELD(I64, name.logits_offset), LLMC_FIELD(I64, name.hidden_offset), \
      LLMC_FIELD(I64, name.ids_offset)
inline constexpr Field fields[] = {
    LLMC_FIELD(I32, struct_size),   LLMC_FIELD(I32, version),     LLMC_FIELD(Pointer, target),
    LLMC_FIELD(Pointer, isa),       LLMC_FIELD(I32, max_tokens),  LLMC_FIELD(I32, max_seqs),
    LLMC_FIELD(I32, max_logits),    LLMC_FIELD(I32, vocab),       LLMC_FIELD(I32, padded_vocab),
    LLMC_FIELD(I32, hidden),        LLMC_FIELD(I32, padded_hidden), LLMC_FIELD(I32, max_context),
    LLMC_FIELD(I32, num_layers),    LLMC_FIELD(I32, num_kv_groups), LLMC_FIELD(I32, num_weights),
    LLMC_FIELD(I32, num_costs),     LLMC_FIELD(Pointer, kv_groups), LLMC_FIELD(Pointer, weights),
    LLMC_FIELD(I64, weights_bytes), LLMC_PROGRAM(program),        LLMC_PROGRAM(reference),
    LLMC_FIELD(Pointer, costs),     LLMC_PROGRAM(prompt)};
#undef LLMC_PROGRAM
static_assert(fits(fields, sizeof(Struct)));
} // namespace module

#undef LLMC_FIELD

} // namespace llmc::abi

#endif // LLMC_LIB_CONVERSION_RTTOLLVM_ABILAYOUT_H
