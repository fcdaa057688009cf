//===- Manifest.h - what a package says of itself ---------------*- C++ -*-===//
//
// The JSON section "manifest". The compiler fills the struct, the runtime reads it;
// newer runtimes read older formats. Unknown keys are ignored.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_PACKAGE_MANIFEST_H
#define LLMC_RUNTIME_PACKAGE_MANIFEST_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

struct Manifest {
  /// 2: the weights may lie outside the package ("weights_origin"); packages that hold them are written as 1.
  static constexpr uint32_t kFormat = 2;

  struct Model {
    std::string name, architecture; // name may be empty
    uint64_t hidden = 0, layers = 0, heads = 0, kvHeads = 0, headDim = 0, ffn = 0, vocab = 0, maxContext = 0;
  };
  struct Limits { // of one step
    uint32_t maxTokens = 0, maxSeqs = 0, maxLogits = 0;
  };
  /// What packs a random weight (llmc::PackSpec; docs/packing.md).
  struct Recipe {
    struct Source {
      std::string tensor;
      uint64_t row = 0, rows = 0, deinterleave = 0;
    };
    std::string storage; // "bf16", "q4_1", ...
    bool vector = false;
    uint64_t interleave = 0;
    std::vector<Source> sources;
    std::vector<float> value; // instead of sources; in JSON 8 hexadecimal digits each
  };
  struct Weight {
    std::string name, layout; // layout: "rows_f32", "n16_q4_1", ... (see layoutName)
    uint64_t offset = 0, bytes = 0; // into the image of the weights
    uint64_t rows = 0, cols = 0;    // logical
    std::optional<uint64_t> xxh3;   // XXH3-64 of the packed bytes; in JSON 16 hexadecimal digits; absent: random
    std::optional<Recipe> recipe = {}; // present: random
  };
  struct Shard {
    std::string file; // name without a folder
    uint64_t bytes = 0, xxh3 = 0;
  };
  /// Where the image of the weights is.
  struct WeightsOrigin {
    enum class Kind { Embedded, Separate, Random };
    Kind kind = Kind::Embedded; // the section "weights"; else there is no such section
    uint64_t bytes = 0;         // of the image; unused for Embedded
    std::vector<Shard> shards;  // Separate: the image in pieces
    uint64_t seed = 0;          // Random
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
  std::string numerics = "exact";  // "phase": prompts have an arithmetic of their own
  std::string kvElement;           // "bf16", "f32"
  uint32_t kvBlock = 0;            // tokens
  std::vector<std::string> isas;   // "avx2", "avx512vnni", "avx512bf16", "amxbf16"; "neon_dotprod"
  Limits limits;
  std::vector<Weight> weights;
  WeightsOrigin weightsOrigin;
  std::vector<LedgerItem> ledger;  // what the compiler planned: "weights", "arena", "kv per token"
  std::vector<std::string> referenceOps; // ops without a kernel, computed by the reference
  bool trapChecks = false;               // kernels for a GPU check ids and block tables (--trap-checks)
  std::vector<int32_t> eosIds;
  Source source;

  std::string serialize() const;
  /// Throws Error naming the key; `where` names the package in messages.
  static Manifest parse(std::string_view json, const std::string &where);
  /// A hash of all that decides the bytes of the weights: shard files written for one package fit another exactly when
  /// it is equal.
  uint64_t weightsId() const;
};

/// Of enum llmc_layout.
const char *layoutName(uint32_t layout);
/// The inverse; nothing for an unknown name.
std::optional<uint32_t> layoutOf(std::string_view name);

} // namespace llmc

#endif // LLMC_RUNTIME_PACKAGE_MANIFEST_H
