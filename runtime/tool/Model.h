//===- Model.h - a package, its parts loaded when wanted --------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_MODEL_H
#define LLMC_RUNTIME_TOOL_MODEL_H

#include "runtime/chat/ChatTraits.h"
#include "runtime/device/Device.h"
#include "runtime/device/cuda/Survey.h"
#include "runtime/engine/ChatPrompt.h"
#include "runtime/package/PackageReader.h"
#include "runtime/package/WeightSource.h"
#include "runtime/engine/Seconds.h"
#include "runtime/grammar/ConstraintSource.h"
#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tool/LoadFlags.h"
#include "runtime/tool/PackageDevice.h"

#include <chrono>
#include <optional>

namespace llmc {

class Model {
public:
  /// Opens the package. `name` is how messages call the executable.
  Model(const LoadFlags &flags, const std::string &name);

  const PackageReader &package() const { return package_; }
  const Manifest &manifest();
  /// Opened when first asked for: in the package, beside it or in --weights-dir.
  const WeightSource &weights();
  const Tokenizer &tokenizer();
  /// Throws Error where the package has none: what needs text cannot go on.
  void requireTokenizer();
  /// Jinja source; empty if the package has none.
  std::string templateSource();
  /// Ids of plain text, with one beginning-of-sequence token in front where the model's tokenizer adds one. `special`:
  /// what looks like a control token is one. Throws Error if there is no token.
  std::vector<int32_t> encode(const std::string &text, bool special = false);
  /// The chat template, made when first asked for. Throws Error where the package has none.
  const ChatPrompt &chat();
  /// What it can do, as far as LoadFlags do not say otherwise.
  const ChatTraits &chatTraits();
  /// Ids of a conversation (JSON list of {"role", "content"}), with the opening of the answer unless `options` say
  /// otherwise. `rendered`: gets the text.
  std::vector<int32_t> encodeChat(const std::string &messagesJson, const ChatPrompt::Options &options = {}, std::string *rendered = nullptr);
  /// The vocabulary for grammars, made when first asked for.
  std::shared_ptr<const GrammarTokens> grammarTokens();
  /// The same with special tokens that answers show.
  std::shared_ptr<const GrammarTokens> grammarTokens(const std::vector<int32_t> &marks);
  /// Throws GrammarError. What was asked for lately is there.
  std::shared_ptr<Constraint> constraint(const ConstraintSource &source) { return constraints_.get(source, grammarTokens()); }
  ConstraintCache &constraints() { return constraints_; }
  /// Throws Error if a prompt is longer than the context; before anything is loaded.
  void checkPrompt(size_t tokens);

  /// True if the package was compiled for a GPU.
  bool gpu() const { return isForGpu(package_); }
  /// The device with a KV pool for `tokens` (or for --context or --kv-memory where given).
  /// `check`: refuse what the machine's memory cannot hold.
  std::unique_ptr<Device> makeDevice(uint64_t tokens, bool check = true);
  /// What the device of a package for a GPU would take with a KV pool for `tokens` (0: the longest context, as far as
  /// it fits). Loads nothing.
  CudaSurvey surveyGpu(uint64_t tokens);
  /// What the loaded parts take beside the device.
  void addTo(Ledger &ledger) const;

  double tokenizerSeconds = 0, templateSeconds = 0, deviceSeconds = 0;

private:
  DeviceOptions options(uint64_t tokens, bool check) const;

  LoadFlags flags_;
  PackageReader package_;
  std::unique_ptr<WeightSource> weights_;
  std::optional<Manifest> manifest_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatPrompt> chat_;
  std::optional<ChatTraits> traits_;
  std::shared_ptr<const GrammarTokens> grammarTokens_, markedTokens_;
  std::vector<int32_t> marks_; // of these
  ConstraintCache constraints_;
  uint64_t tokenizerBytes_ = 0;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_MODEL_H
