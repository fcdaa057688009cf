//===- Profile.cpp --------------------------------------------------------===//
#include "runtime/package/Profile.h"
#include "runtime/package/JsonObject.h"

namespace llmc {

std::string Profile::serialize() const {
  Json j;
  j["llmc_profile"] = kFormat;
  j["llmc"] = version;
  j["model"] = model;
  j["weights_id"] = hexDigits(weightsId);
  j["isa"] = isa;
  j["device"] = {{"name", device}, {"detail", detail}, {"threads", threads}};
  j["steps"] = Json::array();
  for (const Step &step : steps) {
    Json launches = Json::array();
    for (const Launch &launch : step.launches)
      launches.push_back({{"op", launch.op}, {"layer", launch.layer}, {"kernel", launch.kernel}, {"seconds", launch.seconds}});
    j["steps"].push_back({{"sequences", step.sequences},
                          {"tokens", step.tokens},
                          {"context", step.context},
                          {"runs", step.runs},
                          {"seconds", step.seconds},
                          {"launches", launches}});
  }
  // Names come from model files and may be no UTF-8.
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

static Profile::Step parseStep(const JsonObject &o) {
  Profile::Step step{o.number<uint64_t>("sequences"), o.number<uint64_t>("tokens"), o.number<uint64_t>("context"),
                     o.number<uint64_t>("runs"), o.amount("seconds"), {}};
  if (!step.sequences || !step.tokens || step.context < step.tokens)
    throw Error(o.where() + ": expected sequences and tokens of at least 1 and a context of at least the tokens, got " +
                std::to_string(step.sequences) + ", " + std::to_string(step.tokens) + " and " + std::to_string(step.context));
  const Json &list = o.array("launches");
  for (size_t i = 0; i < list.size(); ++i) {
    JsonObject launch(list[i], o.where() + ".launches[" + std::to_string(i) + "]");
    step.launches.push_back({launch.text("op"), launch.text("kernel"), launch.number<int32_t>("layer"), launch.amount("seconds")});
  }
  return step;
}

Profile Profile::parse(std::string_view text, const std::string &where) {
  Json json;
  try {
    json = Json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::exception &error) {
    throw Error(where + ": expected a profile of EXE bench --profile, got no JSON: " + error.what());
  }
  if (!json.is_object() || !json.contains("llmc_profile"))
    throw Error(where + ": expected a profile of EXE bench --profile, got JSON without the key 'llmc_profile'");
  JsonObject o(json, where);
  if (const auto format = o.number<uint32_t>("llmc_profile"); format != kFormat)
    throw Error(where + ".llmc_profile: expected " + std::to_string(kFormat) + ", got " + std::to_string(format) +
                "; another version of llmc made it");
  Profile p;
  p.version = o.text("llmc");
  p.model = o.text("model");
  p.weightsId = o.hash("weights_id");
  p.isa = o.text("isa");
  JsonObject device = o.object("device");
  p.device = device.text("name");
  p.detail = device.text("detail");
  p.threads = device.number<uint64_t>("threads");
  const Json &steps = o.array("steps");
  for (size_t i = 0; i < steps.size(); ++i)
    p.steps.push_back(parseStep(JsonObject(steps[i], where + ".steps[" + std::to_string(i) + "]")));
  if (p.steps.empty())
    throw Error(where + ".steps: expected at least one step, got none");
  return p;
}

} // namespace llmc
