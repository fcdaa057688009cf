//===- Manifest.h - what a package says of itself ---------------*- C++ -*-===//
//
// The JSON section "manifest". The compiler fills the struct, the runtime reads it;
// newer runtimes read older formats. Unknown keys are ignored.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_PACKAGE_MANIFEST_H
#define LLMC_RUNTIME_PACKAGE_MANIFEST_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

struct Manifest {
  static constexpr uint32_t kFormat = 1;

  struct Model {
    std::string name, architecture; // name may be empty
    uint64_t hidden = 0, layers = 0, heads = 0, kvHeads = 0, headDim = 0, ffn = 0, vocab = 0, maxContext = 0;
  };
  struct Limits { // of one step
    uint32_t maxTokens = 0, maxSeqs = 0, maxLogits = 0;
  };
  struct Weight {
    std::string name, layout; // layout: "rows_f32", "n16_q4_1", ... (see layoutName)
    uint64_t offset = 0, bytes = 0; // into the section "weights"
    uint64_t rows = 0, cols = 0;    // logical
    uint64_t xxh3 = 0;              // XXH3-64 of the packed bytes; in JSON 16 hexadecimal digits
  };
  struct LedgerItem {
    std::string name;
    uint64_t bytes = 0;
  };
  struct Source {
    std::string path;
    uint64_t bytes = 0; // of all files of the model
  };

  std::string version; // of llmc
  Model model;
  std::string compute;             // "mixed", "f32"
  std::string kvElement;           // "bf16", "f32"
  uint32_t kvBlock = 0;            // tokens
  std::vector<std::string> isas;   // "avx2", "avx512vnni"
  Limits limits;
  std::vector<Weight> weights;
  std::vector<LedgerItem> ledger;  // what the compiler planned: "weights", "arena", "kv per token"
  std::vector<std::string> referenceOps; // ops without a kernel, computed by the reference
  std::vector<int32_t> eosIds;
  Source source;

  std::string serialize() const;
  /// Throws Error naming the key; `where` names the package in messages.
  static Manifest parse(std::string_view json, const std::string &where);
};

/// Of enum llmc_layout.
const char *layoutName(uint32_t layout);

} // namespace llmc

#endif // LLMC_RUNTIME_PACKAGE_MANIFEST_H
