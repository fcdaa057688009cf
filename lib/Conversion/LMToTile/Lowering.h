//===- Lowering.h - what the lm to tile patterns share ----------*- C++ -*-===//
#ifndef LLMC_CONVERSION_LMTOTILE_LOWERING_H
#define LLMC_CONVERSION_LMTOTILE_LOWERING_H

#include "KernelBuilder.h"
#include "dialects/LM/LM.h"
#include "dialects/RT/RT.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace llmc {

inline constexpr uint32_t kAllRows = UINT32_MAX;

/// The target that the enclosing module's `tile.target` names; a CPU without one.
bool isForGPU(mlir::Operation *op);
bool wantsTrapChecks(mlir::Operation *op);
/// The tile that products of many tokens have to take; empty: the best.
llvm::StringRef wantedTile(mlir::Operation *op);

/// What becomes of one lm op: a dispatch under construction.
struct Dispatch {
  Dispatch(mlir::Operation *op, rt::Rows rows);

  mlir::Operation *op;
  mlir::ModuleOp module;
  rt::Rows rows;
  llvm::SmallVector<mlir::Value> inputs;
  llvm::SmallVector<mlir::Attribute> weights, fields, variants;
  llvm::SmallVector<mlir::Type> scratch; ///< results beside the op's, of a static size: memory for the launch alone
  rt::CostAttr cost; ///< null: all the work of `op` (costOf); set by an op that becomes several launches

  mlir::MLIRContext *context() { return op->getContext(); }
  void field(rt::Field field) { fields.push_back(rt::FieldAttr::get(context(), field)); }
  void weight(mlir::FlatSymbolRefAttr symbol) { weights.push_back(symbol); }
  /// Adds a variant; `build` fills the kernel `name` unless the module has it already.
  void variant(uint32_t maxRows, uint32_t rowBlock, uint32_t colBlocks, llvm::StringRef name,
               llvm::ArrayRef<mlir::Type> buffers, llvm::function_ref<void(KernelBuilder &)> build, uint32_t spanRows = 0);
  /// Replaces the op.
  rt::DispatchOp replace(mlir::PatternRewriter &rewriter);
};

/// What `dispatch.op`, computed by one launch, must compute and move (Cost.cpp).
rt::CostAttr costOf(const Dispatch &dispatch);

/// Whether an activation has a row per token or per row of logits (its producer is lowered already).
rt::Rows rowsOf(mlir::Value activation);
/// Name of an lm value: that of its location, else the op's.
std::string valueName(mlir::Operation *op);

/// The weight op a symbol names; it has a layout at this stage.
lm::WeightOp lookupWeight(mlir::Operation *user, mlir::FlatSymbolRefAttr symbol);
/// Kernel argument type of a weight: [panels, records, bytes] for n16 layouts, [1, columns] f32 for rows.
mlir::MemRefType weightType(lm::WeightOp weight);
tile::Format formatOf(lm::Layout layout);

/// Kernel argument types of an activation that is written (or read) in `format`.
llvm::SmallVector<mlir::Type> formatTypes(mlir::MLIRContext *context, int64_t columns, lm::Format format);
/// Columns of a step over a row of `columns`: a group of 32 on a CPU, as many as divide the row on a GPU.
int64_t stepColumns(mlir::Operation *op, int64_t columns);
/// Calls body(column) for each step over the columns of a padded row.
void forEachStep(KernelBuilder &k, int64_t columns, int64_t step, llvm::function_ref<void(mlir::Value)> body);
/// Writes y = vector<f32> as columns [column, ...) of a row in `format` to the buffers from `first` on; codes are written
/// one group of 32 at a time.
void writeColumns(KernelBuilder &k, mlir::Value y, lm::Format format, unsigned first, mlir::Value row, mlir::Value column);
/// Codes (q8, or q16 in pair order) and (scale, scale * sum) per row of y = vector<Rx32xf32> (or vector<32xf32>).
struct Quantized {
  mlir::Value codes, scale, scaledSum;
};
Quantized quantize(KernelBuilder &k, mlir::Value y, lm::Format format);
/// Whether a format has codes and scales.
inline bool isCoded(lm::Format format) { return format == lm::Format::Q8 || format == lm::Format::Q16; }

/// activation(gate) * up
mlir::Value gated(KernelBuilder &k, lm::Activation activation, mlir::Value gate, mlir::Value up);

/// Columns of a [?, C] tensor.
inline int64_t columnsOf(mlir::Value value) { return mlir::cast<mlir::RankedTensorType>(value.getType()).getDimSize(1); }

/// Strides of the KV pool for the layer caches of the enclosing function (abi.h, llmc_kv_group_v1), in bytes.
struct KVGeometry {
  int64_t heads, kDim, vDim, elementBytes;
  int64_t headBytes, layerBytes, blockBytes;
  mlir::Type element;
  tile::PackedType keys, values;   ///< one block of one head
  mlir::MemRefType keysType, valuesType; ///< [blocks, heads, elements], on a GPU [blocks, heads, tokens, elements]
  int64_t valuesOffset;            ///< of V inside a head
  bool gpu;

  /// Indices of a head's part of a block (behind the block: of the remaining dimensions).
  llvm::SmallVector<mlir::Value> indices(KernelBuilder &k, mlir::Value head) const {
    llvm::SmallVector<mlir::Value> result{head, k.index(0)};
    if (gpu)
      result.push_back(k.index(0));
    return result;
  }
};
KVGeometry kvGeometry(mlir::Operation *op, lm::KVType type);

/// "f32", "bf16", "q8", "q16".
inline std::string formatName(lm::Format format) { return lm::stringifyFormat(format).str(); }

/// A unit of attention quantises only whole groups of 32 columns: where its columns are no multiple of 32 the
/// quantisation becomes an op of its own again.
void splitPartialGroups(mlir::func::FuncOp step);

// One per op family.
void populateRowPatterns(mlir::RewritePatternSet &patterns);
void populateRopePatterns(mlir::RewritePatternSet &patterns);
void populateLinearPatterns(mlir::RewritePatternSet &patterns);
void populateAttentionPatterns(mlir::RewritePatternSet &patterns);
void populateSamplePatterns(mlir::RewritePatternSet &patterns);

} // namespace llmc

#endif // LLMC_CONVERSION_LMTOTILE_LOWERING_H
