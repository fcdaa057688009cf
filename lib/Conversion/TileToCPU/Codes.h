//===- Codes.h - records of codes in registers ------------------*- C++ -*-===//
#ifndef LLMC_CONVERSION_TILETOCPU_CODES_H
#define LLMC_CONVERSION_TILETOCPU_CODES_H

#include "Lowering.h"

namespace llmc::cpu {

/// A record of 16 columns (llmc/Target/CodedForm.h) in memory. Columns are lanes: `piece` counts registers of columns.
class CodedRecord {
public:
  /// `operand`: result of tile.load_packed, at `pointer`; its first k may lie inside the record.
  CodedRecord(Emitter &e, mlir::Value operand, mlir::Value pointer);

  /// The same, `group` times 32 k further; a multiple of stride().
  CodedRecord at(mlir::Value group) const;
  /// Groups of 32 k after which fields start at whole bytes again.
  int64_t stride() const;

  const CodedForm form;
  int64_t pieces() const { return 16 / e.machine.lanes; }
  /// What is subtracted from quads() for the signed value: the form's zero, or 128 for a table's values.
  int64_t zero() const { return form.table ? 128 : form.zero; }

  /// Unsigned codes (of a table: its values + 128) of 32 k of the operand: of each quad of k, a register of [column][4].
  Values quads(int64_t group, int64_t piece);
  /// f32 of each column, for the operand's `index`-th group of form.scaleGroup k.
  mlir::Value scale(int64_t index, int64_t piece);
  mlir::Value minimum(int64_t index, int64_t piece);

  /// Weights of 32 k of one column: four vectors of 8 f32.
  Values column(int64_t group, mlir::Value column);

private:
  Values planeQuads(int64_t bits, int64_t offset, int64_t at);
  /// Where scales are read: one column's, or a register of columns; as loaders of f16 (widened) and of bytes.
  struct Place {
    llvm::function_ref<mlir::Value(int64_t offset)> half;
    llvm::function_ref<mlir::Value(mlir::Value base, int64_t offset)> byte;
  };
  mlir::Value field(int64_t index, Place place);
  mlir::Value scaleAt(int64_t index, Place place);   ///< by the record's groups
  mlir::Value minimumAt(int64_t index, Place place);
  mlir::Value atPiece(int64_t piece, llvm::function_ref<mlir::Value(Place)> read);
  mlir::Value tableOf(mlir::Value codes);
  int64_t codesAt(int64_t group) const { return form.codeOffset() + (firstGroup + group) * form.groupBytes(); }
  int64_t firstScale() const { return firstGroup * 32 / form.scaleGroup; }

  // One column.
  mlir::Value columnCodes(int64_t group, int64_t pair, mlir::Value column);
  mlir::Value ofColumn(mlir::Value base, mlir::Value column, int64_t bytes);

  Emitter &e;
  mlir::Value pointer;                  // the record
  mlir::Value codes, fields, highFields; // moved by at(), still to be offset as in the record
  int64_t firstGroup;
};

/// A register of weights, scale (code - zero) + minimum (null: none), from the bits of `quad` at `shift`.
mlir::Value widenCode(Emitter &e, mlir::Value quad, int64_t shift, int64_t zero, mlir::Value scale, mlir::Value minimum);

} // namespace llmc::cpu

#endif // LLMC_CONVERSION_TILETOCPU_CODES_H
