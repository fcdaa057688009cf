//===- Model.cpp ----------------------------------------------------------===//
#include "runtime/tool/Model.h"
#include "llmc/Support/Error.h"
#include "runtime/tool/Progress.h"

namespace llmc {

Model::Model(const LoadFlags &flags, const std::string &name)
    : flags_(flags), package_(flags.package.empty() ? PackageReader::self(name) : PackageReader(flags.package)) {}

const Manifest &Model::manifest() {
  if (!manifest_)
    manifest_ = package_.manifest();
  return *manifest_;
}

const WeightSource &Model::weights() {
  if (!weights_)
    weights_ = WeightSource::open(package_, flags_.weightsDir);
  return *weights_;
}

const Tokenizer &Model::tokenizer() {
  if (!tokenizer_) {
    const auto start = std::chrono::steady_clock::now();
    const std::string_view bytes = package_.section("tokenizer");
    tokenizerBytes_ = bytes.size();
    tokenizer_ = Tokenizer::load(bytes);
    tokenizerSeconds += secondsSince(start);
  }
  return *tokenizer_;
}

std::string Model::templateSource() {
  requireTokenizer();
  return package_.find("template") ? std::string(package_.section("template")) : std::string();
}

std::shared_ptr<const GrammarTokens> Model::grammarTokens() {
  if (!grammarTokens_)
    grammarTokens_ = std::make_shared<GrammarTokens>(tokenizer());
  return grammarTokens_;
}

std::shared_ptr<const GrammarTokens> Model::grammarTokens(const std::vector<int32_t> &marks) {
  if (marks.empty())
    return grammarTokens();
  if (!markedTokens_ || marks_ != marks) { // of all requests with tools the same
    markedTokens_ = std::make_shared<GrammarTokens>(tokenizer(), marks);
    marks_ = marks;
  }
  return markedTokens_;
}

void Model::requireTokenizer() {
  if (tokenizer().size() == 0)
    throw Error(package_.path() + ": the package has no tokenizer (it was made of a config.json alone, to be measured); see bench");
}

DeviceOptions Model::options(uint64_t tokens, bool check) const {
  DeviceOptions options;
  options.threads = unsigned(flags_.threads);
  options.isa = flags_.isa;
  options.mapWeights = flags_.map;
  options.kvBytes = flags_.kvBytes;
  options.swapBytes = flags_.swapBytes;
  options.checkMemory = check;
  options.kvTokens = flags_.context ? flags_.context : tokens;
  options.device = unsigned(flags_.device);
  options.ptx = flags_.ptx;
  options.graphs = !flags_.noGraphs;
  options.syncLaunches = flags_.syncLaunches;
  return options;
}

std::unique_ptr<Device> Model::makeDevice(uint64_t tokens, bool check) {
  const auto start = std::chrono::steady_clock::now();
  DeviceOptions options = this->options(tokens, check);
  std::optional<Progress> progress;
  options.onProgress = [&](uint64_t done, uint64_t total) {
    if (!progress)
      progress.emplace("loaded", total, 1.0, true);
    (*progress)(done);
  };
  std::unique_ptr<Device> device = llmc::makeDevice(package_, manifest(), weights(), options);
  deviceSeconds += secondsSince(start);
  return device;
}

CudaSurvey Model::surveyGpu(uint64_t tokens) { return surveyCuda(modulesOf(package_, manifest()), options(tokens, false)); }

void Model::addTo(Ledger &ledger) const {
  // Measured on SmolLM2: spellings, ranks and hash tables take some five times the section's bytes.
  if (tokenizer_)
    ledger.add("tokenizer", 5 * tokenizerBytes_);
}

} // namespace llmc
