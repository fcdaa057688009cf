//===- Reader.cpp - header, metadata, tensor table ------------------------===//
#include "../FactsChecks.h"
#include "GGUF.h"
#include "llmc/Support/Text.h"

#include <algorithm>
#include <unordered_set>

using namespace llmc;
using namespace llmc::gguf;

namespace {

constexpr uint64_t maxKeyBytes = 65535; // the specification's limit
constexpr uint64_t maxStringBytes = uint64_t(64) << 20;
/// Of everything before the data: some thirty times the largest tokenizer. Kept, a byte costs ten at most.
constexpr uint64_t maxHeaderBytes = uint64_t(256) << 20;
constexpr unsigned maxArrayDepth = 8;
constexpr uint64_t stringHeader = 8; // length
constexpr uint64_t smallestPair = stringHeader + 1 + 4 + 1;
constexpr uint64_t smallestTensor = stringHeader + 1 + 4 + 8 + 4 + 8;

/// Bytes of a scalar; 0 for strings, arrays and unknown types.
uint64_t scalarBytes(ValueType type) {
  switch (type) {
  case ValueType::U8:
  case ValueType::I8:
  case ValueType::Bool:
    return 1;
  case ValueType::U16:
  case ValueType::I16:
    return 2;
  case ValueType::U32:
  case ValueType::I32:
  case ValueType::F32:
    return 4;
  case ValueType::U64:
  case ValueType::I64:
  case ValueType::F64:
    return 8;
  default:
    return 0;
  }
}

/// ggml's tensor types by number (enum ggml_type), those included that files no longer have.
constexpr const char *typeNames[] = {
    "F32", "F16", "Q4_0", "Q4_1", "Q4_2", "Q4_3", "Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q2_K", "Q3_K", "Q4_K",
    "Q5_K", "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8",
    "I16", "I32", "I64", "F64", "IQ1_M", "BF16", "Q4_0_4_4", "Q4_0_4_8", "Q4_0_8_8", "TQ1_0", "TQ2_0",
    "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4", "NVFP4", "Q1_0", "Q2_0"};
static_assert(std::size(typeNames) == 43);

std::string knownTypes() {
  std::string names;
  for (DType type : kDTypes)
    names += (type == kDTypes[0] ? "" : type == std::end(kDTypes)[-1] ? " or " : ", ") + std::string(llmc::toString(type));
  return names;
}

class Reader {
public:
  explicit Reader(const InputFile &file) : file(file), cursor(file), contents{Metadata(file.path()), {}} {}

  Contents run() {
    readHeader();
    cursor.checkCount(pairCount, smallestPair, 16, "metadata count");
    for (uint64_t i = 0; i < pairCount; ++i)
      readPair(i);
    readAlignment();
    // The tensors' share of what is left is known only now.
    cursor.checkCount(tensorCount, smallestTensor, 8, "tensor count");
    for (uint64_t i = 0; i < tensorCount; ++i)
      readTensor(i);
    placeTensors();
    return std::move(contents);
  }

private:
  void readHeader() {
    char magic[4];
    cursor.readBytes(magic, 4, "magic");
    if (std::string_view(magic, 4) != "GGUF")
      cursor.fail(0, "magic", "expected \"GGUF\", got " + quote({magic, 4}));
    uint32_t version = cursor.read<uint32_t>("version");
    if (version == 0x02000000 || version == 0x03000000)
      cursor.fail(4, "version", "expected a little-endian file, got a big-endian one");
    if (version != 2 && version != 3)
      cursor.fail(4, "version", "expected 2 or 3, got " + std::to_string(version));
    tensorCount = cursor.read<uint64_t>("tensor count");
    pairCount = cursor.read<uint64_t>("metadata count");
    cursor.checkCount(tensorCount, smallestTensor, 8, "tensor count");
  }

  std::string readString(const std::string &what, uint64_t limit = maxStringBytes) {
    uint64_t at = cursor.offset();
    uint64_t length = cursor.read<uint64_t>(what + " length");
    cursor.checkCount(length, 1, at, what + " length");
    if (length > limit)
      cursor.fail(at, what + " length",
                  "expected at most " + std::to_string(limit) + ", got " + std::to_string(length));
    std::string text(length, '\0');
    cursor.readBytes(text.data(), length, what);
    return text;
  }

  ValueType readType(const std::string &what) {
    uint64_t at = cursor.offset();
    uint32_t type = cursor.read<uint32_t>(what);
    if (type > static_cast<uint32_t>(ValueType::F64))
      cursor.fail(at, what, "expected a value type from 0 to 12, got " + std::to_string(type));
    return static_cast<ValueType>(type);
  }

  bool readBool(const std::string &what) {
    uint64_t at = cursor.offset();
    uint8_t value = cursor.read<uint8_t>(what);
    if (value > 1)
      cursor.fail(at, what, "expected 0 or 1 for a bool, got " + std::to_string(value));
    return value == 1;
  }

  void readArray(Value &value, const std::string &what) {
    value.elementType = readType(what + " element type");
    uint64_t at = cursor.offset();
    value.count = cursor.read<uint64_t>(what + " length");
    if (value.elementType == ValueType::Array) {
      skipArrays(value.count, at, what, 2);
      return;
    }
    if (value.elementType == ValueType::String) {
      cursor.checkCount(value.count, stringHeader, at, what + " length");
      std::vector<std::string> strings;
      for (uint64_t i = 0; i < value.count; ++i) {
        strings.push_back(readString(what));
        checkHeaderBytes(what);
      }
      value.data = std::move(strings);
      return;
    }
    uint64_t each = scalarBytes(value.elementType);
    cursor.checkCount(value.count, each, at, what + " length");
    if (value.count * each > maxHeaderBytes)
      cursor.fail(at, what + " length", "expected at most " + std::to_string(maxHeaderBytes) + " bytes, got " +
                                            std::to_string(value.count * each));
    std::vector<unsigned char> bytes(value.count * each);
    cursor.readBytes(bytes.data(), bytes.size(), what);
    value.data = std::move(bytes);
  }

  /// `count` arrays inside an array: nobody reads such keys, so only their end is looked for.
  void skipArrays(uint64_t count, uint64_t at, const std::string &what, unsigned depth) {
    cursor.checkCount(count, 4 + 8, at, what + " length");
    if (depth > maxArrayDepth)
      cursor.fail(at, what, "expected at most " + std::to_string(maxArrayDepth) + " nested arrays, got more");
    for (uint64_t i = 0; i < count; ++i) {
      ValueType element = readType(what + " element type");
      uint64_t lengthAt = cursor.offset(), length = cursor.read<uint64_t>(what + " length");
      if (element == ValueType::Array) {
        skipArrays(length, lengthAt, what, depth + 1);
        continue;
      }
      uint64_t each = element == ValueType::String ? stringHeader : scalarBytes(element);
      cursor.checkCount(length, each, lengthAt, what + " length");
      if (element != ValueType::String)
        cursor.skip(length * each, what);
      else
        for (uint64_t k = 0; k < length; ++k, checkHeaderBytes(what))
          cursor.skip(cursor.read<uint64_t>(what + " length"), what);
      checkHeaderBytes(what);
    }
  }

  void checkHeaderBytes(const std::string &what) const {
    if (cursor.offset() > maxHeaderBytes)
      cursor.fail(cursor.offset(), what,
                  "expected keys and tensor table to end by byte " + std::to_string(maxHeaderBytes) + ", got more");
  }

  void readScalar(Value &value, const std::string &what) {
    switch (value.type) {
    case ValueType::U8:
      value.data = static_cast<uint64_t>(cursor.read<uint8_t>(what));
      break;
    case ValueType::U16:
      value.data = static_cast<uint64_t>(cursor.read<uint16_t>(what));
      break;
    case ValueType::U32:
      value.data = static_cast<uint64_t>(cursor.read<uint32_t>(what));
      break;
    case ValueType::U64:
      value.data = cursor.read<uint64_t>(what);
      break;
    case ValueType::I8:
      value.data = static_cast<int64_t>(cursor.read<int8_t>(what));
      break;
    case ValueType::I16:
      value.data = static_cast<int64_t>(cursor.read<int16_t>(what));
      break;
    case ValueType::I32:
      value.data = static_cast<int64_t>(cursor.read<int32_t>(what));
      break;
    case ValueType::I64:
      value.data = cursor.read<int64_t>(what);
      break;
    case ValueType::F32:
      value.data = static_cast<double>(cursor.read<float>(what));
      break;
    case ValueType::F64:
      value.data = cursor.read<double>(what);
      break;
    case ValueType::Bool:
      value.data = readBool(what);
      break;
    case ValueType::String:
      value.data = readString(what);
      break;
    case ValueType::Array:
      readArray(value, what);
      break;
    }
  }

  void readPair(uint64_t index) {
    uint64_t at = cursor.offset();
    std::string label = "metadata key " + std::to_string(index);
    std::string key = readString(label, maxKeyBytes);
    if (key.empty() || !isValidUtf8(key))
      cursor.fail(at, label, "expected a UTF-8 name, got " + quote(key));
    std::string what = "key " + quote(key);
    Value value;
    value.type = readType(what + " type");
    value.position = cursor.offset();
    readScalar(value, what);
    checkHeaderBytes(what);
    if (!contents.metadata.insert(key, std::move(value)))
      cursor.fail(at, what, "expected each key once, got it twice");
  }

  void readAlignment() {
    const Value *value = contents.metadata.find("general.alignment");
    if (!value)
      return;
    if (value->type != ValueType::U32)
      contents.metadata.failType("general.alignment", *value, "a u32");
    alignment = std::get<uint64_t>(value->data);
    if (alignment == 0 || (alignment & (alignment - 1)))
      contents.metadata.fail("general.alignment",
                             "expected a power of two, got " + std::to_string(alignment));
  }

  DType readTensorType(const std::string &what) {
    uint64_t at = cursor.offset();
    uint32_t id = cursor.read<uint32_t>(what + " type");
    const char *name = id < std::size(typeNames) ? typeNames[id] : nullptr;
    for (DType type : kDTypes)
      if (name && std::string_view(name) == llmc::toString(type))
        return type;
    cursor.fail(at, what, "expected type " + knownTypes() + ", got " +
                              (name ? name : "the unknown type " + std::to_string(id)));
  }

  void readTensor(uint64_t index) {
    uint64_t at = cursor.offset();
    std::string label = "tensor name " + std::to_string(index);
    TensorFact tensor;
    tensor.name = readString(label, maxKeyBytes);
    if (tensor.name.empty() || !isValidUtf8(tensor.name))
      cursor.fail(at, label, "expected a UTF-8 name, got " + quote(tensor.name));
    tensor.sourceName = tensor.name;
    std::string what = "tensor " + quote(tensor.name);
    if (!names.insert(tensor.name).second)
      cursor.fail(at, what, "expected each tensor once, got it twice");
    readExtents(tensor, what);
    tensor.type = readTensorType(what);
    uint64_t values = 1;
    for (int64_t extent : tensor.shape)
      values *= static_cast<uint64_t>(extent); // checked in readExtents
    if (static_cast<uint64_t>(tensor.shape.back()) % blockSize(tensor.type))
      cursor.fail(at, what,
                  "expected rows of a multiple of " + std::to_string(blockSize(tensor.type)) + " values for " +
                      llmc::toString(tensor.type) + ", got " + std::to_string(tensor.shape.back()));
    tensor.bytes = storageBytes(tensor.type, values);
    uint64_t offsetAt = cursor.offset();
    tensor.offset = cursor.read<uint64_t>(what + " offset");
    if (tensor.offset % alignment)
      cursor.fail(offsetAt, what + " offset",
                  "expected a multiple of the alignment " + std::to_string(alignment) + ", got " +
                      std::to_string(tensor.offset));
    contents.tensors.push_back(std::move(tensor));
    checkHeaderBytes(what);
  }

  /// Extents, innermost first in the file. Their product times 4 stays below 2^63.
  void readExtents(TensorFact &tensor, const std::string &what) {
    uint64_t at = cursor.offset();
    uint32_t rank = cursor.read<uint32_t>(what + " rank");
    if (rank < 1 || rank > 4)
      cursor.fail(at, what + " rank", "expected 1 to 4, got " + std::to_string(rank));
    uint64_t product = 1;
    for (uint32_t i = 0; i < rank; ++i) {
      at = cursor.offset();
      uint64_t extent = cursor.read<uint64_t>(what + " extent");
      if (extent == 0)
        cursor.fail(at, what + " extent", "expected at least 1, got 0");
      if (__builtin_mul_overflow(product, extent, &product) || product > uint64_t(1) << 60)
        cursor.fail(at, what + " extent",
                    "expected at most 2^60 values in all, got more (extent " + std::to_string(extent) + ")");
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(extent));
    }
  }

  /// Offsets are relative to the aligned end of the table until here.
  void placeTensors() {
    uint64_t start = (cursor.offset() + alignment - 1) / alignment * alignment; // both below 2^63
    for (TensorFact &tensor : contents.tensors) {
      uint64_t end = 0;
      bool wraps = __builtin_add_overflow(tensor.offset, start, &tensor.offset);
      wraps = wraps || __builtin_add_overflow(tensor.offset, tensor.bytes, &end);
      if (wraps || end > file.size())
        throw Error(file.path() + ": tensor " + quote(tensor.name) + " at byte " +
                    std::to_string(tensor.offset) + ": expected " + std::to_string(tensor.bytes) +
                    " bytes, got the end of the file at byte " + std::to_string(file.size()));
    }
    frontend::checkOverlaps(contents.tensors, {file.path()});
  }

  const InputFile &file;
  ByteCursor cursor;
  Contents contents;
  uint64_t tensorCount = 0, pairCount = 0, alignment = 32;
  std::unordered_set<std::string> names;
};

} // namespace

Contents gguf::readContents(const InputFile &file) { return Reader(file).run(); }
