//===- Logits.cpp - raw logits of a text, for tests -----------------------===//
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"
#include "runtime/engine/Score.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Flags.h"
#include "runtime/tool/Model.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

namespace llmc {

namespace {

struct LogitsFlags {
  LoadFlags load;
  std::string ids, out, kv;
  uint64_t chunk = 0;
  bool reference = false;
};

class Output {
public:
  explicit Output(const std::string &path) : path_(path), file_(std::fopen(path.c_str(), "wb")) {
    if (!file_)
      throw Error(path + ": cannot write: " + std::strerror(errno));
  }
  ~Output() {
    if (file_)
      std::fclose(file_);
  }
  void write(const void *bytes, size_t size) {
    if (std::fwrite(bytes, 1, size, file_) != size)
      throw Error(path_ + ": cannot write: " + std::strerror(errno));
  }
  void finish() {
    if (std::fclose(std::exchange(file_, nullptr)) != 0)
      throw Error(path_ + ": cannot write: " + std::strerror(errno));
  }

private:
  std::string path_;
  std::FILE *file_;
};

std::vector<int32_t> readIds(const std::string &where, uint32_t vocab) {
  const std::string text = where.starts_with("[") ? where : readTextFile(where);
  std::vector<int32_t> ids;
  try {
    ids = nlohmann::json::parse(text).get<std::vector<int32_t>>();
  } catch (const nlohmann::json::exception &error) {
    throw Error("--token-ids: expected a JSON list of numbers: " + std::string(error.what()));
  }
  if (ids.empty())
    throw Error("--token-ids: expected at least one id, got none");
  for (int32_t id : ids)
    if (id < 0 || uint32_t(id) >= vocab)
      throw Error("--token-ids: expected ids below " + std::to_string(vocab) + ", got " + std::to_string(id));
  return ids;
}

int logits(const LogitsFlags &flags, const std::string &name) {
  Model model(flags.load, name);
  const std::vector<int32_t> ids = readIds(flags.ids, uint32_t(model.manifest().model.vocab));
  std::unique_ptr<Device> device = model.makeDevice(ids.size());
  const uint32_t vocab = device->module().vocab;
  Output out(flags.out);
  if (flags.reference) {
    std::vector<float> all(ids.size() * vocab);
    device->reference(ids, all.data());
    out.write(all.data(), all.size() * sizeof(float));
    out.finish();
    return 0;
  }
  const uint32_t blocks =
      scoreTokens(*device, ids, flags.chunk ? uint32_t(flags.chunk) : device->module().max_logits,
                  [&](uint32_t, uint32_t count, const float *rows) { out.write(rows, uint64_t(count) * vocab * sizeof(float)); });
  out.finish();
  if (!flags.kv.empty()) {
    Output kv(flags.kv);
    std::vector<char> block(device->blockBytes());
    for (uint32_t b = 0; b < blocks; ++b) {
      device->readBlock(int32_t(b), block.data());
      kv.write(block.data(), block.size());
    }
    kv.finish();
  }
  return 0;
}

} // namespace

Command addLogits(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<LogitsFlags>();
  CLI::App *sub = app.add_subcommand("logits", "write the logits of every position as raw f32 [tokens, vocab] (for tests)");
  sub->group("");
  sub->add_option("--token-ids", flags->ids, "JSON list of ids, or a file with one")->required();
  sub->add_option("-o,--output", flags->out, "file to write")->required();
  sub->add_option("--kv", flags->kv, "write the KV blocks of the text here, too");
  addCount(*sub, "--chunk", flags->chunk, "tokens per step (default: the rows of logits that a step gives)", 1, 1 << 24);
  sub->add_flag("--reference", flags->reference, "run the reference program instead");
  addLoadFlags(*sub, flags->load);
  return {sub, [flags, name] { return logits(*flags, name); }};
}

} // namespace llmc
