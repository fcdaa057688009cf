//===- Split.cpp - a model in several GGUF files --------------------------===//
//
// gguf-split's convention: NAME-00001-of-00003.gguf and so on, each a complete GGUF file with its own alignment
// and spans. All have split.no (from 0), split.count and split.tensors.count (of all parts); the first alone has
// the model's other keys, and may have no tensors.
//
// Names of parts are made from the given path, never read from a file, so that no part can lie elsewhere.
//
//===----------------------------------------------------------------------===//
#include "GGUF.h"
#include "llmc/Support/Text.h"

#include <cstdio>
#include <unordered_map>

using namespace llmc;
using namespace llmc::gguf;

namespace {

constexpr int64_t maxParts = 99999; // five digits in a name

/// A number of a split.* key, `fallback` if it is absent.
int64_t splitNumber(const Metadata &metadata, const char *key, int64_t fallback, int64_t least, int64_t most) {
  int64_t value = metadata.integer(key).value_or(fallback);
  if (value < least || value > most)
    metadata.fail(key, "expected a number from " + std::to_string(least) + " to " + std::to_string(most) + ", got " +
                           std::to_string(value));
  return value;
}

std::string suffixOf(int64_t part, int64_t count) {
  char text[64];
  std::snprintf(text, sizeof text, "-%05lld-of-%05lld.gguf", static_cast<long long>(part + 1), static_cast<long long>(count));
  return text;
}

class PartsReader {
public:
  PartsReader(const InputFile &file, const OpenFile &open, Contents given, int64_t count)
      : file(file), open(open), count(count), givenPart(splitNumber(given.metadata, "split.no", 0, 0, count - 1)),
        given(std::move(given)) {}

  Parts run() {
    std::string suffix = suffixOf(givenPart, count);
    if (!file.path().ends_with(suffix))
      given.metadata.fail("split.no", "expected a file name that ends in " + quote(suffix) + ", since this is part " +
                                          std::to_string(givenPart + 1) + " of " + std::to_string(count) + ", got another");
    prefix = file.path().substr(0, file.path().size() - suffix.size());
    for (int64_t part = 0; part < count; ++part)
      add(part);
    if (auto total = out.metadata.integer("split.tensors.count"); total && *total != static_cast<int64_t>(out.tensors.size()))
      out.metadata.fail("split.tensors.count", "expected " + std::to_string(*total) + " tensors in the " +
                                                   std::to_string(count) + " parts, got " + std::to_string(out.tensors.size()));
    return std::move(out);
  }

private:
  void add(int64_t part) {
    std::string path = prefix + suffixOf(part, count);
    Contents contents = part == givenPart ? std::move(given) : read(path, part);
    if (part == 0)
      out.metadata = std::move(contents.metadata);
    else
      checkMetadata(contents.metadata);
    out.files.push_back(path);
    for (TensorFact &tensor : contents.tensors) {
      tensor.file = static_cast<uint32_t>(part);
      auto [known, isNew] = partOf.emplace(tensor.name, part);
      if (!isNew)
        throw Error(path + ": tensor " + quote(tensor.name) + ": expected each tensor once, got it in " +
                    out.files[static_cast<size_t>(known->second)] + " too");
      out.tensors.push_back(std::move(tensor));
    }
  }

  Contents read(const std::string &path, int64_t part) {
    std::string role = "part " + std::to_string(part + 1) + " of " + std::to_string(count);
    std::optional<Contents> contents;
    try {
      contents = readContents(open(path));
    } catch (const Error &error) {
      throw Error(error.what() + (" (" + role + " of the model, which ") + file.path() + " belongs to)");
    }
    const Metadata &metadata = contents->metadata;
    if (int64_t other = splitNumber(metadata, "split.count", 1, 1, maxParts); other != count)
      metadata.fail("split.count", "expected " + std::to_string(count) + " as in " + file.path() + ", got " + std::to_string(other));
    if (int64_t number = splitNumber(metadata, "split.no", 0, 0, count - 1); number != part)
      metadata.fail("split.no", "expected " + std::to_string(part) + " in " + role + ", got " + std::to_string(number));
    return std::move(*contents);
  }

  /// Beside split.no a later part says nothing, or what the first part says. Its alignment is its own.
  void checkMetadata(const Metadata &metadata) const {
    metadata.forEach([&](const std::string &key, const Value &value) {
      if (key == "split.no" || key == "general.alignment")
        return;
      const Value *first = out.metadata.find(key);
      if (!first)
        metadata.fail(key, "expected this key in the first part, " + out.files.front() + ", got it in a later one only");
      if (!first->sameAs(value))
        metadata.fail(key, "expected the value that the first part, " + out.files.front() + ", has, got another");
    });
  }

  const InputFile &file;
  const OpenFile &open;
  const int64_t count, givenPart;
  Contents given;
  std::string prefix;
  std::unordered_map<std::string, int64_t> partOf; // tensor -> part
  Parts out;
};

} // namespace

Parts gguf::readParts(const InputFile &file, const OpenFile &open) {
  Contents contents = readContents(file);
  int64_t count = splitNumber(contents.metadata, "split.count", 1, 1, maxParts);
  if (count > 1)
    return PartsReader(file, open, std::move(contents), count).run();
  return {std::move(contents.metadata), {file.path()}, std::move(contents.tensors)};
}
