//===- Safetensors.cpp - header of one safetensors file -------------------===//
//
// u64 header length, that many bytes of JSON {"name": {dtype, shape, data_offsets}},
// then the data, indexed without gaps (https://github.com/huggingface/safetensors,
// "Format").
//
//===----------------------------------------------------------------------===//
#include "../FactsChecks.h"
#include "HuggingFace.h"
#include "llmc/Support/Text.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::huggingface;

/// A million tensors and more; larger headers are a lie or a mistake.
static constexpr uint64_t maxHeaderBytes = uint64_t(256) << 20;

namespace {

struct StoredType {
  const char *name;
  unsigned bytes; // 0: below a byte
  bool computable;
  DType type;
};
const StoredType storedTypes[] = {
    {"F32", 4, true, DType::F32}, {"F16", 2, true, DType::F16}, {"BF16", 2, true, DType::BF16},
    {"F64", 8, false, {}},        {"I64", 8, false, {}},        {"I32", 4, false, {}},
    {"I16", 2, false, {}},        {"I8", 1, false, {}},         {"U64", 8, false, {}},
    {"U32", 4, false, {}},        {"U16", 2, false, {}},        {"U8", 1, false, {}},
    {"BOOL", 1, false, {}},       {"F8_E4M3", 1, true, DType::E4M3},    {"F8_E5M2", 1, false, {}},
    {"F8_E8M0", 1, false, {}},    {"C64", 8, false, {}},        {"F4", 0, false, {}},
};

class HeaderReader {
public:
  explicit HeaderReader(const InputFile &file) : file(file) {}

  SafetensorsHeader run() {
    std::string text = readText();
    // Positions in messages count from the start of the JSON.
    JsonDocument document = JsonDocument::parse(text, file.path() + ": header");
    JsonView root = document.root();
    for (const JsonMember &member : root.object()) {
      JsonView entry(name, member.node, quote(member.key));
      if (member.key == "__metadata__")
        checkMetadata(entry);
      else
        readEntry(member, entry);
    }
    checkCoverage();
    return std::move(out);
  }

private:
  std::string readText() {
    if (file.size() < 8)
      throw Error(file.path() + ": expected a safetensors file of at least 8 bytes, got " +
                  std::to_string(file.size()));
    uint64_t length;
    file.read(0, &length, 8);
    std::string where = file.path() + ": header length at byte 0: ";
    if (length > maxHeaderBytes)
      throw Error(where + "too large: expected at most " + std::to_string(maxHeaderBytes) + ", got " +
                  std::to_string(length));
    if (length > file.size() - 8)
      throw Error(where + "past the end of the file: expected at most " + std::to_string(file.size() - 8) +
                  ", got " + std::to_string(length));
    if (length < 2)
      throw Error(where + "expected at least 2, got " + std::to_string(length));
    std::string text(length, '\0');
    file.read(8, text.data(), length);
    if (text[0] != '{')
      throw Error(file.path() + ": header at byte 8: expected \"{\", got " + quote(text.substr(0, 1)));
    dataStart = 8 + length;
    dataBytes = file.size() - dataStart;
    name = file.path() + ": header";
    return text;
  }

  /// Nothing in it is used.
  static void checkMetadata(const JsonView &metadata) {
    for (const JsonMember &member : metadata.object())
      metadata.at(member).string();
  }

  static const StoredType &readType(const JsonView &view) {
    for (const StoredType &type : storedTypes)
      if (view.string() == type.name)
        return type;
    throw view.error("unknown type: expected F32, F16, BF16 or F8_E4M3, got " + quote(view.string()));
  }

  static uint64_t readNumber(const JsonView &view) {
    int64_t value = view.integer();
    if (value < 0)
      throw view.expected("a number of at least 0");
    return static_cast<uint64_t>(value);
  }

  void readEntry(const JsonMember &member, const JsonView &entry) {
    TensorFact tensor;
    tensor.name = tensor.sourceName = member.key;
    const StoredType &type = readType(entry.get("dtype"));
    JsonView shape = entry.get("shape"), offsets = entry.get("data_offsets");
    uint64_t values = 1;
    if (shape.array().size() > 8)
      throw shape.expected("at most 8 extents");
    for (size_t i = 0; i < shape.array().size(); ++i) {
      uint64_t extent = readNumber(shape.at(i));
      if (__builtin_mul_overflow(values, extent, &values) || values > uint64_t(1) << 60 ||
          extent > uint64_t(1) << 60)
        throw shape.at(i).expected("at most 2^60 values in all");
      tensor.shape.push_back(static_cast<int64_t>(extent));
    }
    if (offsets.array().size() != 2)
      throw offsets.expected("two offsets");
    uint64_t begin = readNumber(offsets.at(0)), end = readNumber(offsets.at(1));
    if (end < begin)
      throw offsets.at(1).expected("at least the first offset " + std::to_string(begin));
    if (end > dataBytes)
      throw offsets.at(1).error("expected the data to end by byte " + std::to_string(dataBytes) +
                                " (the end of the file, counted from the data's start), got " +
                                std::to_string(end));
    tensor.bytes = end - begin;
    tensor.offset = dataStart + begin;
    if (type.bytes != 0 && tensor.bytes != values * type.bytes)
      throw offsets.error("expected " + std::to_string(values * type.bytes) + " bytes for shape " +
                          shapeString(tensor.shape) + " of " + type.name + ", got " +
                          std::to_string(tensor.bytes));
    spans.push_back(tensor);
    if (!type.computable) {
      out.otherTypes[tensor.name] = type.name;
      return;
    }
    tensor.type = type.type;
    out.tensors.push_back(std::move(tensor));
  }

  /// The format allows no gaps: a file with one was cut together wrongly.
  void checkCoverage() {
    frontend::checkOverlaps(spans, {file.path()});
    uint64_t covered = 0;
    for (const TensorFact &span : spans)
      covered += span.bytes; // they do not overlap, so the sum stays below the file's size
    if (covered != dataBytes)
      throw Error(file.path() + ": expected tensors that cover the " + std::to_string(dataBytes) +
                  " bytes after the header, got " + std::to_string(covered));
  }

  const InputFile &file;
  std::string name;
  uint64_t dataStart = 0, dataBytes = 0;
  std::vector<TensorFact> spans; // every tensor, whatever its type
  SafetensorsHeader out;
};

} // namespace

SafetensorsHeader huggingface::readSafetensors(const InputFile &file) { return HeaderReader(file).run(); }
