// Writes a package around FakeModule.cpp: what llmc compile would make of FakeModel.h.
#ifndef LLMC_TEST_RUNTIME_PACKAGE_FAKEPACKAGE_H
#define LLMC_TEST_RUNTIME_PACKAGE_FAKEPACKAGE_H

#include "FakeDevice.h"
#include "runtime/package/Manifest.h"
#include "runtime/package/PackageReader.h"
#include "runtime/package/PackageWriter.h"
#include "runtime/tokenizer/TokenizerData.h"

#include <filesystem>

namespace fake {

inline llmc::Manifest manifest() {
  llmc::Manifest m;
  m.version = "0.1.0";
  m.model = {"fake", "llama", kHidden, 1, 1, 1, kHidden, 0, kVocab, kMaxContext};
  m.compute = "f32";
  m.kvElement = "f32";
  m.kvBlock = LLMC_KV_BLOCK;
  m.isas = {"avx2"};
  m.limits = {kMaxTokens, kMaxSeqs, kMaxLogits};
  const std::vector<uint8_t> bytes = weights();
  m.weights = {{"token_embd.weight", "rows_f32", 0, kEmbeddingBytes, kVocab, kHidden,
                llmc::packageHash(bytes.data(), kEmbeddingBytes)},
               {"output.weight", "n16_f32", kHeadOffset, kWeightsBytes - kHeadOffset, kVocab, kHidden,
                llmc::packageHash(bytes.data() + kHeadOffset, kWeightsBytes - kHeadOffset)}};
  m.ledger = {{"weights", kWeightsBytes}};
  m.eosIds = {kEos};
  m.source = {"fake.gguf", 123};
  return m;
}

/// 256 byte tokens in the order of the byte-level alphabet's bytes, then four special ones.
inline llmc::TokenizerData tokenizer() {
  llmc::TokenizerData t;
  uint32_t next = 256;
  for (uint32_t b = 0; b < 256; ++b) { // GPT-2 bytes_to_unicode
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    const uint32_t c = printable ? b : next++;
    t.tokens.push_back(c < 128 ? std::string(1, char(c)) : std::string{char(0xc0 | c >> 6), char(0x80 | (c & 63))});
  }
  for (const char *special : {"<|im_start|>", "<|im_end|>", "<|pad|>", "<|nan|>"}) {
    llmc::AddedToken added;
    added.id = int32_t(t.tokens.size());
    added.content = special;
    added.special = true;
    t.added.push_back(added);
    t.tokens.push_back(special);
  }
  t.splitPatterns = {" ?[^ ]+| +"};
  t.eosIds = {kEos};
  return t;
}

inline const char *kTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

inline void writePackage(const std::string &path, const std::string &stub, const std::string &module = LLMC_FAKE_MODULE,
                         const std::string &isa = "avx2") {
  llmc::PackageWriter writer(path);
  if (!stub.empty())
    writer.stub(stub);
  writer.section("manifest", manifest().serialize());
  writer.section("module." + isa, readFile(module));
  writer.section("tokenizer", tokenizer().serialize());
  writer.section("template", kTemplate);
  const std::vector<uint8_t> bytes = weights();
  writer.begin("weights");
  writer.append(bytes.data(), bytes.size());
  writer.end();
  writer.finish();
}

/// A fresh folder under the system's temporary one, removed at the end.
struct TemporaryFolder {
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "llmc-test-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string &name) const { return (path / name).string(); }
  std::filesystem::path path;
};

} // namespace fake

#endif // LLMC_TEST_RUNTIME_PACKAGE_FAKEPACKAGE_H
