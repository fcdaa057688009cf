//===- ModelFacts.h - what a model folder or file says ----------*- C++ -*-===//
//
// Plain structs that every front end (GGUF, Hugging Face folder, later ONNX)
// fills and lib/Frontend/Models turns into lm IR. No weights are read: a tensor
// is a name, a type, a shape and a span of a file.
//
// Names are canonical whatever the source (the GGUF convention, without the
// ".weight" of matrices being dropped): token_embd.weight, blk.N.attn_norm.weight,
// blk.N.attn_{q,k,v}.{weight,bias}, blk.N.attn_output.weight, blk.N.ffn_norm.weight,
// blk.N.ffn_{gate,up,down}.weight, output_norm.weight, output.weight; of families that normalise what a block
// adds (Gemma 2) blk.N.post_attention_norm.weight, blk.N.post_ffw_norm.weight; with attention
// sinks blk.N.attn_sinks.weight.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_FRONTEND_MODELFACTS_H
#define LLMC_FRONTEND_MODELFACTS_H

#include "runtime/tokenizer/TokenizerData.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

/// Storage type of a tensor as the file has it. Block types store rows of blocks of 32 or (K, IQ4_XS) 256
/// values along the last dimension (ggml-common.h; lib/Frontend/Dequantize.cpp has each block's fields). E4M3 rows have scales
/// beside them (TensorFact::scales).
enum class DType { F32, F16, BF16, Q4_0, Q4_1, Q8_0, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, E4M3 };

/// All of them, in order, but E4M3, which no tensor is alone.
inline constexpr DType kDTypes[] = {DType::F32,  DType::F16,  DType::BF16, DType::Q4_0, DType::Q4_1,
                                    DType::Q8_0, DType::Q5_0, DType::Q5_1, DType::Q2_K, DType::Q3_K,
                                    DType::Q4_K, DType::Q5_K, DType::Q6_K, DType::IQ4_NL, DType::IQ4_XS};

const char *toString(DType type);
/// As flags and manifests have it: "q4_k".
std::string storageName(DType type);
std::optional<DType> storageOf(std::string_view name);
/// Bytes of `count` values; `count` is a multiple of blockSize(type).
uint64_t storageBytes(DType type, uint64_t count);
unsigned blockSize(DType type);    // values: 1, 32 or 256
uint64_t blockBytes(DType type);   // of one block; of one value of plain types

struct TensorFact {
  std::string name;       // canonical
  std::string sourceName; // as in the file, for messages
  DType type = DType::F32;
  std::vector<int64_t> shape; // row major, outermost first: [out, in] for a matrix
  uint32_t file = 0;          // index into ModelFacts::files
  uint64_t offset = 0;        // bytes from the start of the file
  uint64_t bytes = 0;
  /// Of an E4M3 matrix: F32, F16 or BF16 values by which its rows are multiplied.
  struct Scales {
    uint32_t file = 0;
    uint64_t offset = 0;
    int64_t count = 0; // 0: none; 1: one for all rows; else one for each
    DType type = DType::F32;
  } scales = {};
};

/// Rotary embedding, RoFormer (Su et al. 2021) sec. 3.4.2; llama3 scaling as in
/// transformers' modeling_rope_utils.py.
struct RopeFacts {
  enum class Scaling { None, Linear, Llama3 } scaling = Scaling::None;
  double theta = 10000.0;
  double factor = 1.0;         // Linear, Llama3
  double lowFreqFactor = 1.0;  // Llama3
  double highFreqFactor = 4.0; // Llama3
  int64_t originalContext = 0; // Llama3: original_max_position_embeddings
  int64_t rotaryDim = 0;       // even, <= headDim
  /// True when the file's q and k rows are ordered for rotation of neighbours
  /// (GGUF of the llama architecture); llmc reorders the rows when packing, so
  /// that the compiled model always rotates halves.
  bool interleavedRows = false;
  /// Per pair divisors from GGUF's rope_freqs.weight (empty: none).
  std::vector<float> freqFactors;

  /// inverse frequencies, rotaryDim/2 values in f32, scaling applied.
  std::vector<float> inverseFrequencies() const;
};

struct ModelFacts {
  std::string format;       // "gguf", "huggingface"
  std::string architecture; // "llama", "mistral", "qwen2", "gemma2", "granite_swa" (SmolLM2 is a llama)
  std::string name;         // for messages and the manifest; may be empty
  int64_t hidden = 0, layers = 0, heads = 0, kvHeads = 0, headDim = 0;
  int64_t ffn = 0, vocab = 0, maxContext = 0;
  double normEps = 1e-5;
  bool tiedHead = false;            // logits use token_embd.weight
  bool attentionBias = false;       // q, k, v (Qwen2; Llama with attention_bias)
  bool attentionOutputBias = false; // blk.N.attn_output.bias (Llama with attention_bias)
  int64_t slidingWindow = 0;        // 0: none
  std::vector<bool> windowLayers;   // which layers have the window; empty: all
  bool normAddsOne = false;         // normalisations multiply by 1 + weight (Gemma in transformers; GGUF stores the sum)
  bool postNorms = false;           // what a block adds to the residual is normalised before (Gemma 2)
  bool geluGate = false;            // the gate's activation is GELU in its tanh form, not SiLU
  double embeddingScale = 1.0;
  double attentionScale = 0.0;      // of q . k; 0: 1 / sqrt(headDim)
  double attentionSoftCap = 0.0;    // 0: none; of scores
  double finalSoftCap = 0.0;        // 0: none; of logits
  bool attentionSinks = false;      // a logit a query head in the softmax's sum (blk.N.attn_sinks.weight)
  double residualScale = 1.0;       // of what a block adds to the residual
  double logitsScale = 1.0;
  std::vector<double> layerThetas;  // of the rotation, a layer; 0: none. Empty: rope.theta in all
  RopeFacts rope;
  std::string quantization; // of a Hugging Face folder: quant_method where it is taken ("fbgemm_fp8"); empty: none
  std::vector<std::string> files; // absolute or as given, existing
  std::vector<TensorFact> tensors;
  TokenizerData tokenizer;
  std::string chatTemplate; // Jinja source; may be empty
  /// The folder has no weight files: spans are made up, and only random weights give them bytes.
  bool synthetic = false;
  /// What the files hold that llmc does not use, one line each; nothing in it changes results.
  std::vector<std::string> warnings;

  const TensorFact *find(const std::string &canonicalName) const;
  /// 0: none.
  int64_t windowOf(int64_t layer) const {
    return windowLayers.empty() || windowLayers[static_cast<size_t>(layer)] ? slidingWindow : 0;
  }
};

struct LoadOptions {
  /// Where a folder has config.json and no weight files, make up the tensors that the architecture needs; the
  /// tokenizer is optional there too. For random weights and plans.
  bool weightsOptional = false;
  /// Of made-up tensors; vectors beside matrices of a block type are F32.
  DType storage = DType::BF16;
};

/// Reads a GGUF file or a Hugging Face folder (decided by what `path` is), checks
/// it completely (spans inside the files, shapes against the configuration) and
/// returns the facts. Throws Error naming file and key. Reads no weights (except
/// rope_freqs.weight).
ModelFacts loadModelFacts(const std::string &path, const LoadOptions &options = {});

/// The architectures that compile, for messages: "llama, mistral, qwen2, gemma2, granite_swa".
std::string supportedArchitectures();

} // namespace llmc

#endif // LLMC_FRONTEND_MODELFACTS_H
