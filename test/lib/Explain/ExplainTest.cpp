// Rows, bounds, the join with a profile, and the three forms of an explanation.
#include "TwoLayers.h"
#include "ErrorOf.h"
#include "llmc/Explain/Explanation.h"

#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace llmc;

namespace {

const Hardware kMachine = {"m", "made up", 1e6, 1e6, 1e7, 0, 0}; // ridges at 1 and 10 FLOP/byte

struct Explained {
  llmc_module_v1 module = two::module();
  Profile profile{"0.1.0", "two", 1, "sm_90a", "NVIDIA H200", "", 1, {two::measuredStep()}};
  StepShape shape{1, 1, 100};
  bool measured = false;

  Explanation operator()() const {
    ExplainRequest request{module, "./two", "two <layers>", kMachine, shape};
    if (measured) {
      request.profile = &profile;
      request.step = &profile.steps[0];
      request.profileFile = "p.json";
    }
    return explain(request);
  }
};

const KernelRow &rowOf(const Explanation &e, const std::string &op) {
  for (const KernelRow &row : e.rows)
    if (row.op == op)
      return row;
  throw Error("no row " + op);
}

TEST(Explain, LayersThatAreAlikeAreOneRow) {
  const Explanation e = Explained()();
  ASSERT_EQ(e.rows.size(), 3u);
  const KernelRow &product = rowOf(e, "attn_qkv"), &attention = rowOf(e, "attention"), &head = rowOf(e, "output<&>");
  EXPECT_EQ(product.launches, 2u);
  EXPECT_EQ(layersText(product.layers), "0-1");
  EXPECT_EQ(product.kernel, "product_1");
  EXPECT_EQ(product.work.flops, 4000);
  EXPECT_EQ(product.work.bytes(), 2200);
  EXPECT_EQ(attention.work.flops, 2 * 100 * 40);
  EXPECT_EQ(attention.work.kvBytes, 2 * 100 * 16);
  EXPECT_TRUE(head.layers.empty());
  EXPECT_EQ(head.predicted, 0); // nothing is known of it
  EXPECT_EQ(e.work.flops, 12000);
}

TEST(Explain, TheLargerTimeIsTheBound) {
  const Explanation e = Explained()();
  const KernelRow &product = rowOf(e, "attn_qkv"), &attention = rowOf(e, "attention");
  EXPECT_TRUE(product.memoryBound()); // 2200 bytes at 1e6/s against 4000 bf16 FLOPs at 1e7/s
  EXPECT_NEAR(product.predicted, 2.2e-3, 1e-9);
  EXPECT_FALSE(attention.memoryBound()); // 3320 bytes, 8000 f32 FLOPs at 1e6/s
  EXPECT_NEAR(attention.predicted, 8e-3, 1e-9);
  EXPECT_EQ(e.rows[0].op, "attention");
  EXPECT_NEAR(e.predicted, 10.2e-3, 1e-9);
  EXPECT_NEAR(e.memoryShare(), 2.2 / 10.2, 1e-9);
  EXPECT_NE(explainText(e).find("bound by compute: 78 % of the predicted time"), std::string::npos) << explainText(e);
}

TEST(Explain, MeasuredTimesAreSummedAndSorted) {
  Explained explained;
  explained.measured = true;
  const Explanation e = explained();
  EXPECT_EQ(e.rows[0].op, "attention"); // 2 + 4 ms, then 5, then 1 + 3
  EXPECT_EQ(e.rows[1].op, "output<&>");
  EXPECT_NEAR(*rowOf(e, "attn_qkv").measured, 4e-3, 1e-12);
  EXPECT_NEAR(*e.measured, 15e-3, 1e-12);
  EXPECT_EQ(e.stepSeconds, 0.02);
  EXPECT_EQ(e.device, "NVIDIA H200");
  EXPECT_NE(explainText(e).find("measured (NVIDIA H200): 20.000 ms a step, 50 tokens/s, 51 % of the bound"), std::string::npos) << explainText(e);
}

TEST(Explain, ProfilesOfOtherCompilationsAreRefused) {
  auto message = [](const std::function<void(Profile::Step &)> &change) {
    Explained explained;
    explained.measured = true;
    change(explained.profile.steps[0]);
    return errorOf([&] { explained(); });
  };
  const std::string hint = "; it was measured with another compilation of the model, measure ./two again";
  EXPECT_EQ(message([](auto &step) { step.launches.pop_back(); }), "p.json: expected 5 launches, as ./two has, got 4" + hint);
  EXPECT_EQ(message([](auto &step) { step.launches[1].op = "blk.0.rope"; }),
            "p.json: launches[1]: expected op \"blk.0.attention\" of layer 0, got \"blk.0.rope\" of layer 0" + hint);
  EXPECT_EQ(message([](auto &step) { step.launches[2].kernel = "product_16"; }),
            "p.json: launches[2]: expected kernel \"product_1\" for \"blk.1.attn_qkv\", got \"product_16\"" + hint);
}

TEST(Explain, StepsBeyondTheLimitsAreRefused) {
  auto message = [](StepShape shape) {
    Explained explained;
    explained.shape = shape;
    return errorOf([&] { explained(); });
  };
  EXPECT_EQ(message({9, 1, 100}), "--batch: expected at most 8 sequences, which is what a step of the package takes, got 9");
  EXPECT_EQ(message({4, 17, 100}), "--tokens: expected at most 16 new tokens for each of 4 sequences (a step of the package takes 64), got 17");
  EXPECT_EQ(message({1, 2, 1}), "--context: expected 2 (the new tokens) to 1000 tokens (the model's context), got 1");
  EXPECT_EQ(message({1, 2, 1001}), "--context: expected 2 (the new tokens) to 1000 tokens (the model's context), got 1001");
  EXPECT_EQ(message({8, 8, 1000}), "");
  Explained old;
  old.module.num_costs = 0;
  EXPECT_ERROR(old(), "./two: expected a package that knows the work of its launches, got one without");
}

TEST(Explain, Layers) {
  EXPECT_EQ(layersText({}), "");
  EXPECT_EQ(layersText({3}), "3");
  EXPECT_EQ(layersText({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
}

TEST(Explain, Machines) {
  EXPECT_EQ(hardwareFor("sm_90a", "", "NVIDIA H200").name, "h200-sxm");
  EXPECT_EQ(hardwareFor("sm_90a", "", "NVIDIA H100 PCIe").name, "h100-pcie");
  EXPECT_EQ(hardwareFor("sm_90a", "", "").name, "h100-sxm");
  EXPECT_EQ(hardwareFor("avx2", "", "cpu").name, "laptop-ddr4");
  EXPECT_EQ(hardwareFor("avx512vnni", "vm-2", "").name, "vm-2");
  EXPECT_ERROR(hardwareFor("avx2", "h200-sxm", ""), "--hardware: expected vm-2, laptop-ddr4, desktop-ddr5, server-ddr5 for a package of avx2, got \"h200-sxm\"");
  const Hardware card = hardwareFor("sm_90a", "h200-sxm", "");
  EXPECT_EQ(card.peak(LLMC_COST_BF16), 989e12);
  EXPECT_EQ(card.peak(LLMC_COST_F32), 67e12);
  EXPECT_EQ(hardwareFor("avx2", "vm-2", "").peak(LLMC_COST_BF16), hardwareFor("avx2", "vm-2", "").f32); // none of its own
}

TEST(Explain, JsonHasWhatTheTextHas) {
  Explained explained;
  explained.measured = true;
  const Explanation e = explained();
  const nlohmann::json j = nlohmann::json::parse(explainJson(e));
  EXPECT_EQ(j["hardware"]["flops_per_second"]["bf16"], 1e7);
  EXPECT_EQ(j["step"]["context"], 100);
  ASSERT_EQ(j["kernels"].size(), 3u);
  double flops = 0, seconds = 0;
  for (const auto &kernel : j["kernels"]) {
    flops += kernel["flops"].get<double>();
    seconds += kernel["measured_seconds"].get<double>();
    EXPECT_EQ(kernel["bytes"], kernel["weight_bytes"].get<double>() + kernel["activation_bytes"].get<double>() + kernel["kv_bytes"].get<double>());
  }
  EXPECT_EQ(flops, j["total"]["flops"]);
  EXPECT_NEAR(seconds, j["total"]["measured_seconds"], 1e-12);
  EXPECT_EQ(j["kernels"][0]["layers"], nlohmann::json({0, 1}));
  EXPECT_EQ(j["kernels"][0]["bound"], "compute");
  explained.measured = false;
  EXPECT_FALSE(nlohmann::json::parse(explainJson(explained()))["total"].contains("measured_seconds"));
}

/// Every tag closed by its own, no attribute open; what a browser would forgive is an error here.
void expectWellFormed(const std::string &html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<', html.find("<html")); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    ASSERT_NE(end, std::string::npos);
    std::string tag = html.substr(at + 1, end - at - 1);
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/' && tag.substr(0, 4) != "meta") {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(Explain, ThePageStandsAlone) {
  for (bool measured : {false, true}) {
    Explained explained;
    explained.measured = measured;
    const std::string html = explainHtml(explained());
    expectWellFormed(html);
    for (const char *elsewhere : {"http:", "https:", "src=", "href=", "url(", "@import", "<script"})
      EXPECT_EQ(html.find(elsewhere), std::string::npos) << elsewhere;
    EXPECT_NE(html.find("two &lt;layers&gt;"), std::string::npos); // names are text, whatever is in them
    EXPECT_EQ(html.find("<layers>"), std::string::npos);
    EXPECT_NE(html.find("output&lt;&amp;&gt;"), std::string::npos);
    EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
    EXPECT_EQ(html.find("nan"), std::string::npos);
    EXPECT_EQ(html.find("inf"), std::string::npos);
    size_t circles = 0;
    for (size_t at = html.find("<circle"); at != std::string::npos; at = html.find("<circle", at + 1))
      ++circles;
    EXPECT_EQ(circles, 2u); // the head has no known work
    EXPECT_EQ(html.find("of the bound") != std::string::npos, measured);
  }
}

double attribute(const std::string &html, size_t from, const std::string &name) {
  const size_t at = html.find(" " + name + "=\"", from);
  return at == std::string::npos ? NAN : std::stod(html.substr(at + name.size() + 3));
}

TEST(Explain, PointsLieOnTheRoofOrBelow) {
  Explained explained;
  const std::string predicted = explainHtml(explained());
  explained.measured = true;
  const std::string measured = explainHtml(explained());
  // The attention (largest, hence first) takes 8 ms at least and 6 ms in the profile; the product 2.2 and 4 ms.
  const size_t first = predicted.find("<circle"), second = predicted.find("<circle", first + 1);
  const size_t firstMeasured = measured.find("<circle"), secondMeasured = measured.find("<circle", firstMeasured + 1);
  EXPECT_LT(attribute(measured, firstMeasured, "cy"), attribute(predicted, first, "cy"));
  EXPECT_GT(attribute(measured, secondMeasured, "cy"), attribute(predicted, second, "cy"));
  EXPECT_NEAR(attribute(measured, firstMeasured, "cx"), attribute(predicted, first, "cx"), 0.11);
  EXPECT_GT(attribute(predicted, first, "cx"), attribute(predicted, second, "cx")); // 2.4 and 1.8 FLOP/byte
}

TEST(Explain, PointsAboveEveryRoofAreInsideThePicture) {
  Explained explained;
  explained.measured = true;
  explained.profile.steps[0].launches[1].seconds = explained.profile.steps[0].launches[3].seconds = 1e-9;
  const std::string html = explainHtml(explained());
  for (size_t at = html.find("<circle"); at != std::string::npos; at = html.find("<circle", at + 1))
    EXPECT_GT(attribute(html, at, "cy"), 0);
}

TEST(Explain, AModuleWithoutAnyKnownWork) {
  Explained explained;
  llmc_launch_v1 head = two::kLaunches[4];
  head.op_id = 0;
  explained.module.program.launches = &head;
  explained.module.program.num_launches = 1;
  const Explanation e = explained();
  EXPECT_EQ(e.predicted, 0);
  for (const std::string &form : {explainText(e), explainJson(e), explainHtml(e)})
    EXPECT_EQ(form.find("nan"), std::string::npos) << form;
}

} // namespace
