//===- RealModelTest.cpp - the oracle of SmolLM2 against transformers -----===//
//
// Importer, fusions and oracle together: prompt and golden continuation go through the oracle in one sequence, and the
// logits of every continued position are those of transformers in f32 (test/data/smollm2-greedy.json).
// Needs LLMC_TEST_MODEL=SmolLM2-135M-Instruct.Q4_1.gguf.
//
//===----------------------------------------------------------------------===//
#include "Oracle.h"

#include "dialects/LM/LM.h"
#include "lib/Target/Packing/RowReader.h"
#include "llmc/Frontend/BuildModel.h"
#include "llmc/Frontend/Dequantize.h"
#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <numeric>

using namespace llmc;
using namespace llmc::test;

namespace {

/// Every weight as f32, rows as the kernels want them.
std::map<std::string, Matrix> readWeights(mlir::ModuleOp module, const ModelFacts &facts) {
  std::vector<InputFile> files;
  for (const std::string &path : facts.files)
    files.push_back(InputFile::open(path));
  std::map<std::string, Matrix> weights;
  for (auto weight : module.getOps<lm::WeightOp>()) {
    llvm::ArrayRef<int64_t> shape = weight.getShape();
    bool vector = shape.size() == 1;
    Matrix matrix(vector ? 1 : shape[0], shape.back());
    if (auto value = weight.getValueAttr()) {
      llvm::copy(llvm::cast<mlir::DenseElementsAttr>(value).getValues<float>(), matrix.data.begin());
    } else {
      PackSpec spec;
      spec.name = weight.getSymName().str();
      spec.storage = static_cast<DType>(weight.getStorage());
      spec.rows = matrix.rows, spec.cols = matrix.cols, spec.vector = vector;
      spec.interleave = weight.getInterleave();
      for (auto span : weight.getSourcesAttr().getAsRange<lm::SpanAttr>())
        spec.sources.push_back({span.getFile(), span.getOffset(), uint64_t(span.getRows()), uint64_t(span.getDeinterleave())});
      RowReader reader(spec, files);
      std::vector<uint8_t> bytes(reader.rows() * reader.rowBytes());
      reader.read(0, reader.rows(), bytes.data());
      dequantizeRow(spec.storage, bytes.data(), int64_t(matrix.data.size()), matrix.data.data());
    }
    weights[weight.getSymName().str()] = std::move(matrix);
  }
  return weights;
}

class SmolLM2Oracle : public testing::TestWithParam<bool> {};

TEST_P(SmolLM2Oracle, LogitsAreThoseOfTransformers) {
  const char *path = std::getenv("LLMC_TEST_MODEL");
  if (!path)
    GTEST_SKIP() << "LLMC_TEST_MODEL is not set";
  ModelFacts facts = loadModelFacts(path);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::OwningOpRef<mlir::ModuleOp> module = buildModel(&context, facts);
  bool fused = GetParam();
  mlir::PassManager passes(&context);
  lm::FusionOptions options;
  options.qkv = options.gateUp = options.residual = fused;
  lm::buildLMFusionPipeline(passes, options);
  ASSERT_TRUE(mlir::succeeded(passes.run(*module)));
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  Oracle oracle(text);
  std::map<std::string, Matrix> weights = readWeights(*module, facts);

  auto goldens = nlohmann::json::parse(std::ifstream(LLMC_SOURCE_DIR "/test/data/smollm2-greedy.json"));
  for (const auto &golden : goldens) {
    if (golden.at("name") != "capital" && golden.at("name") != goldens[1].at("name"))
      continue;
    Step step;
    step.ids = golden.at("prompt_ids").get<std::vector<int32_t>>();
    auto greedy = golden.at("greedy_ids").get<std::vector<int32_t>>();
    auto top = golden.at("top2_logits").get<std::vector<std::array<float, 2>>>();
    for (size_t i = 0; i < greedy.size(); ++i)
      step.logitsRows.push_back(int32_t(step.ids.size() + i - 1));
    step.ids.insert(step.ids.end(), greedy.begin(), greedy.end() - 1);
    step.positions.resize(step.ids.size());
    std::iota(step.positions.begin(), step.positions.end(), 0);
    Matrix logits = oracle.run(step, weights, 1 << 20)["output"];
    for (size_t i = 0; i < greedy.size(); ++i) {
      const float *row = &logits.data[i * logits.cols];
      EXPECT_EQ(std::max_element(row, row + logits.cols) - row, greedy[i]) << golden.at("name") << " at " << i;
      EXPECT_NEAR(row[greedy[i]], top[i][0], 2e-3) << golden.at("name") << " at " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fusions, SmolLM2Oracle, testing::Bool(), [](const auto &info) { return info.param ? "On" : "Off"; });

} // namespace
