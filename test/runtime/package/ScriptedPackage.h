// A package whose model says what it is told to: FakeModel.h with weights that make every token of a script be followed by the next.
//
// The embeddings of the tokens of scripts are rows of a Hadamard matrix, all others are zero, and the head of a token is the
// embedding of the one before it: the logit of the next token is 32 or more, of all others less than 17.
#ifndef LLMC_TEST_RUNTIME_PACKAGE_SCRIPTEDPACKAGE_H
#define LLMC_TEST_RUNTIME_PACKAGE_SCRIPTEDPACKAGE_H

#include "FakePackage.h"

#include <bit>
#include <stdexcept>

namespace fake {

/// A prompt that ends with `last` is answered with the pieces, each a token of its own; "[TOOL_CALLS]" and "<|...|>" are special ones.
struct Script {
  char last;
  std::vector<std::string> pieces;
};

class ScriptedPackage {
public:
  explicit ScriptedPackage(const std::vector<Script> &scripts) : bytes_(kWeightsBytes, 0), tokenizer_(tokenizer()) {
    int32_t next = 128; // bytes that no test uses
    for (const Script &script : scripts) {
      int32_t before = script.last;
      for (const std::string &piece : script.pieces) {
        const int32_t id = next++;
        tokenizer_.tokens.at(size_t(id)) = piece;
        llmc::AddedToken added;
        added.id = id;
        added.content = piece;
        added.special = piece == "[TOOL_CALLS]" || (piece.starts_with("<|") && piece.ends_with("|>"));
        tokenizer_.added.push_back(added);
        follow(before, id);
        before = id;
      }
      follow(before, kEos);
    }
  }

  void write(const std::string &path, const std::string &chatTemplate, const std::string &stub = "") const {
    llmc::Manifest m = manifest();
    m.weights[0].xxh3 = llmc::packageHash(bytes_.data(), kEmbeddingBytes);
    m.weights[1].xxh3 = llmc::packageHash(bytes_.data() + kHeadOffset, kWeightsBytes - kHeadOffset);
    llmc::PackageWriter writer(path);
    if (!stub.empty())
      writer.stub(stub);
    writer.section("manifest", m.serialize());
    writer.section("module.avx2", readFile(LLMC_FAKE_MODULE));
    writer.section("tokenizer", tokenizer_.serialize());
    writer.section("template", chatTemplate);
    writer.begin("weights");
    writer.append(bytes_.data(), bytes_.size());
    writer.end();
    writer.finish();
  }

private:
  void follow(int32_t before, int32_t id) {
    if (row_ == kHidden)
      throw std::logic_error("scripts of too many pieces");
    auto *embedding = reinterpret_cast<float *>(bytes_.data()) + before * int32_t(kHidden);
    auto *head = reinterpret_cast<float *>(bytes_.data() + kHeadOffset);
    for (uint32_t j = 0; j < kHidden; ++j) {
      embedding[j] = std::popcount(row_ & j) % 2 ? -1 : 1;
      head[(uint32_t(id) / 16 * kHidden + j) * 16 + uint32_t(id) % 16] += embedding[j];
    }
    ++row_;
  }

  std::vector<uint8_t> bytes_;
  llmc::TokenizerData tokenizer_;
  uint32_t row_ = 0;
};

} // namespace fake

#endif // LLMC_TEST_RUNTIME_PACKAGE_SCRIPTEDPACKAGE_H
