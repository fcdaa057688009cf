//===- GGUF.h - reading GGUF ------------------------------------*- C++ -*-===//
//
// GGUF versions 2 and 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md):
// magic, version, tensor count, metadata count, metadata, tensor table, padding to
// general.alignment, tensor data. Everything little endian.
//
// Nothing in the file is trusted: a count is accepted only if count * smallest
// element <= bytes left, and products of extents are formed without wrap. All of it
// is bounded by a limit on the header's size, whatever the file's.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_LIB_FRONTEND_GGUF_GGUF_H
#define LLMC_LIB_FRONTEND_GGUF_GGUF_H

#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"

#include <functional>
#include <optional>
#include <unordered_map>
#include <variant>

namespace llmc::gguf {

enum class ValueType : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };
const char *toString(ValueType type);

/// A metadata value. Arrays of strings are kept as strings, arrays of numbers as
/// their bytes.
struct Value {
  ValueType type = ValueType::U8;
  ValueType elementType = ValueType::U8; // Array
  uint64_t count = 1;                    // Array
  uint64_t position = 0;                 // byte of the value in the file
  /// Scalars: widened. Integers that are unsigned are in uint64_t.
  std::variant<std::monostate, uint64_t, int64_t, double, bool, std::string, std::vector<std::string>,
               std::vector<unsigned char>>
      data;

  /// Equal in type and value, wherever in the file.
  bool sameAs(const Value &other) const {
    return type == other.type && elementType == other.elementType && count == other.count && data == other.data;
  }
};

/// Typed look-up: the stored type is checked first, errors name file, key and byte.
class Metadata {
public:
  explicit Metadata(std::string path) : path(std::move(path)) {}

  /// False if the key is there already.
  bool insert(std::string key, Value value) {
    return values.emplace(std::move(key), std::move(value)).second;
  }
  const Value *find(const std::string &key) const;
  /// In no order.
  void forEach(const std::function<void(const std::string &, const Value &)> &visit) const {
    for (const auto &[key, value] : values)
      visit(key, value);
  }

  // Absent: nothing. Of another type: Error.
  std::optional<int64_t> integer(const std::string &key) const; // any integer type
  std::optional<double> real(const std::string &key) const;     // f32, f64
  std::optional<bool> boolean(const std::string &key) const;
  const std::string *string(const std::string &key) const;
  const std::vector<std::string> *strings(const std::string &key) const;
  /// An array of 32 bit integers, signed or not.
  std::optional<std::vector<int64_t>> integers32(const std::string &key) const;
  /// Fails if the key is there with another element type.
  void checkArray(const std::string &key, ValueType element) const;

  /// An extent that must be there, 1 <= value <= 2^31.
  int64_t extent(const std::string &key) const;
  std::optional<int64_t> optionalExtent(const std::string &key) const;

  [[noreturn]] void fail(const std::string &key, const std::string &message) const;
  [[noreturn]] void failType(const std::string &key, const Value &value, const std::string &expected) const;

private:
  std::string path;
  std::unordered_map<std::string, Value> values;
};

struct Contents {
  Metadata metadata;
  std::vector<TensorFact> tensors; // spans checked; sourceName == name
};

/// Header, metadata and tensor table of one file (Reader.cpp).
Contents readContents(const InputFile &file);

/// Opens a part of a split model by its path; throws Error. Tests and fuzzers pass parts in memory.
using OpenFile = std::function<InputFile(const std::string &path)>;

/// One file, or all parts of the model that it is a part of.
struct Parts {
  Metadata metadata = Metadata(""); // of the first part
  std::vector<std::string> files;
  std::vector<TensorFact> tensors; // TensorFact::file is an index into `files`
};
/// `file` may be any part; parts are checked to fit together (Split.cpp).
Parts readParts(const InputFile &file, const OpenFile &open);

/// Tokenizer keys (Tokenizer.cpp).
TokenizerData readTokenizer(const Metadata &metadata);

/// Facts of the whole model, checked (Facts.cpp).
ModelFacts loadFile(const InputFile &file, const OpenFile &open = InputFile::open);

} // namespace llmc::gguf

#endif // LLMC_LIB_FRONTEND_GGUF_GGUF_H
