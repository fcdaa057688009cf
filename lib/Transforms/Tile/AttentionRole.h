//===- AttentionRole.h - what the roles of attention share ------*- C++ -*-===//
//
// Producer and consumers of an attention pipeline (PipelineAttentionCuda.cpp) walk over the same units by the same numbers.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_LIB_TRANSFORMS_TILE_ATTENTIONROLE_H
#define LLMC_LIB_TRANSFORMS_TILE_ATTENTIONROLE_H

#include "lib/Transforms/Tile/AttentionLoops.h"
#include "lib/Transforms/Tile/UnitLoop.h"

#include "mlir/IR/IRMapping.h"

namespace llmc::tile {

class AttentionRole {
public:
  using Steps = Attention::Steps;
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  static constexpr int64_t kRows = 64, kPanel = 64; ///< of a warpgroup; columns of a panel

  AttentionRole(KernelOp kernel, Attention &attention, mlir::OpBuilder &builder)
      : kernel(kernel), a(attention), b(builder), loc(attention.loops.front().loop.getLoc()) {}

  bool alone() const { return a.rows <= kRows; } ///< one warpgroup
  bool isFrugal() const; ///< what the module is compiled as when registers did not suffice
  /// Whether registers suffice for two units at a time. (What few queries do with a result takes many.)
  bool hasRoom() const;

  KernelOp kernel;
  Attention &a;
  mlir::OpBuilder &b;
  mlir::Location loc;
  int64_t panels = 0;                ///< of 64 columns of a head
  Values fields;                     ///< scalars that the kernel loads for its unit
  StoreOp staged;                    ///< that goes through shared memory
  Value query, keys, values, result; ///< rings
  Value queryReady, keysReady, valuesReady;

protected:
  /// What a role knows of a unit: the kernel's values computed again, where its steps begin and end, and their first round.
  struct Unit {
    Again again;
    Value visit, firstRound, begin, end, step;
  };

  // Visits, rounds and steps are counted in i32: registers are short.
  Value index(int64_t value);
  Value number(int64_t value);
  Value wide(Value x);
  Value narrow(Value x);
  Value plus(Value x, Value y);
  Value before(Value round);
  Value isLess(Value x, Value y);

  /// The scalars that the kernel loads for the unit of a visit.
  Values loadFields(SnakeOrder &order, Value visit);
  /// Those of the visit after; of the last visit its own. Loaded a unit ahead nobody waits for them, but they take registers that
  /// wide heads do not have: there they are loaded where they are needed.
  Values loadNextFields(SnakeOrder &order, Value visit);
  Unit unitAt(SnakeOrder &order, Value visit, mlir::ValueRange loaded, Value firstRound);
  Value roundOf(const Unit &unit, Value block);
  /// The round behind the unit's last one.
  Value endRound(const Unit &unit);
  /// Computes here, before any loop, what `value` of a step needs of the unit.
  void prepare(Unit &unit, Value value, mlir::scf::ForOp loop);
  /// `value` of a step of `loop` with what is mapped in place of the loop's arguments.
  Value copyOf(Unit &unit, Value value, mlir::scf::ForOp loop, mlir::IRMapping &known);
};

/// Writes the role into `block`, from what run() of the pass has allocated.
void produceAttention(const AttentionRole &role, mlir::Block &block);
void consumeAttention(const AttentionRole &role, mlir::Block &block);

} // namespace llmc::tile

#endif // LLMC_LIB_TRANSFORMS_TILE_ATTENTIONROLE_H
