//===- SentencePieceModel.cpp - reads the protobuf of tokenizer.model -----===//
//
// Protocol buffers' wire format (protobuf.dev/programming-guides/encoding): a message
// is a row of fields, each a varint key = number * 8 + wire type and a value: 0 varint,
// 1 eight bytes, 2 a length and so many bytes, 5 four bytes (3 and 4, groups, are
// not used by any message here).
//
//===----------------------------------------------------------------------===//
#include "SentencePieceModel.h"
#include "TokenizerSteps.h"

#include "llmc/Support/Error.h"
#include "llmc/Support/Text.h"

#include <cmath>
#include <cstring>
#include <unordered_set>

using namespace llmc;
using namespace llmc::huggingface;

namespace {

using Model = SentencePieceModel;

/// One field of a message; `bytes` for wire type 2, else `number`.
struct Field {
  uint32_t key = 0, wire = 0;
  uint64_t number = 0, position = 0;
  std::string_view bytes;
};

/// Walks over the fields of a message that lies at byte `base` of `file`.
class Message {
public:
  Message(std::string_view bytes, uint64_t base, std::string_view name, const std::string &file)
      : bytes(bytes), base(base), name(name), file(file) {}

  bool next(Field &field) {
    if (at == bytes.size())
      return false;
    field = {};
    field.position = base + at;
    uint64_t key = varint("a field key");
    if (key >> 3 == 0 || key >> 32)
      fail(field.position, "expected a field number from 1 to 536870911, got " + std::to_string(key >> 3));
    field.key = static_cast<uint32_t>(key >> 3);
    field.wire = static_cast<uint32_t>(key & 7);
    switch (field.wire) {
    case 0:
      field.number = varint("a varint");
      break;
    case 1:
      field.number = fixed(8);
      break;
    case 2: {
      uint64_t length = varint("a length");
      field.position = base + at;
      field.bytes = take(length);
      break;
    }
    case 5:
      field.number = fixed(4);
      break;
    default:
      fail(field.position, "expected wire type 0, 1, 2 or 5, got " + std::to_string(field.wire));
    }
    return true;
  }

  [[noreturn]] void fail(uint64_t position, const std::string &message) const {
    throw Error(file + ": " + std::string(name) + " at byte " + std::to_string(position) + ": " + message);
  }

  /// The value with its wire type checked.
  std::string_view text(const Field &field) const { return expect(field, 2, "bytes"), field.bytes; }
  bool boolean(const Field &field) const { return expect(field, 0, "a boolean"), field.number != 0; }
  int32_t integer(const Field &field) const {
    expect(field, 0, "an integer");
    return static_cast<int32_t>(static_cast<uint32_t>(field.number)); // int32: sign extended to 64 bits
  }
  float real(const Field &field) const {
    expect(field, 5, "a float");
    auto bits = static_cast<uint32_t>(field.number);
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }

private:
  void expect(const Field &field, uint32_t wire, const char *what) const {
    if (field.wire != wire)
      fail(field.position, "expected " + std::string(what) + " in field " + std::to_string(field.key) +
                               ", got wire type " + std::to_string(field.wire));
  }

  std::string_view take(uint64_t count) {
    if (count > bytes.size() - at)
      fail(base + at, "expected " + std::to_string(count) + " more bytes, got " + std::to_string(bytes.size() - at));
    at += count;
    return bytes.substr(at - count, count);
  }

  uint64_t fixed(unsigned count) {
    std::string_view raw = take(count);
    uint64_t value = 0;
    std::memcpy(&value, raw.data(), count); // little endian, as is this machine
    return value;
  }

  uint64_t varint(const char *what) {
    const uint64_t start = base + at;
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80)
        return value;
    }
    fail(start, std::string("expected ") + what + " of at most 10 bytes, got more");
  }

  std::string_view bytes;
  uint64_t base;
  std::string_view name;
  const std::string &file;
  size_t at = 0;
};

Model::Piece readPiece(const Field &outer, size_t index, const std::string &file) {
  std::string name = "piece " + std::to_string(index);
  Message message(outer.bytes, outer.position, name, file);
  Model::Piece piece;
  for (Field field; message.next(field);) {
    if (field.key == 1) {
      piece.text = message.text(field);
    } else if (field.key == 2) {
      piece.score = message.real(field);
    } else if (field.key == 3) {
      int32_t kind = message.integer(field);
      if (kind < 1 || kind > 6)
        message.fail(field.position, "expected a type from 1 to 6, got " + std::to_string(kind));
      piece.kind = static_cast<PieceKind>(kind);
    }
  }
  if (piece.text.empty() || !isValidUtf8(piece.text))
    message.fail(outer.position, "expected UTF-8 text, got " + (piece.text.empty() ? "none" : quote(piece.text)));
  if (!std::isfinite(piece.score))
    message.fail(outer.position, "expected a finite score, got " + std::to_string(piece.score));
  return piece;
}

void readTrainer(const Field &outer, const std::string &file, Model &model) {
  Message message(outer.bytes, outer.position, "trainer_spec", file);
  for (Field field; message.next(field);)
    switch (field.key) {
    case 3: {
      int32_t type = message.integer(field);
      if (type < 1 || type > 4)
        message.fail(field.position, "expected a model_type from 1 to 4, got " + std::to_string(type));
      model.type = static_cast<Model::Type>(type);
      break;
    }
    case 24:
      model.treatWhitespaceAsSuffix = message.boolean(field);
      break;
    case 35:
      model.byteFallback = message.boolean(field);
      break;
    case 40:
      model.unkId = message.integer(field);
      break;
    case 41:
      model.bosId = message.integer(field);
      break;
    case 42:
      model.eosId = message.integer(field);
      break;
    case 43:
      model.padId = message.integer(field);
      break;
    default:
      break;
    }
}

void readNormalizer(const Field &outer, const char *name, const std::string &file, Model::Normalizer &normalizer) {
  Message message(outer.bytes, outer.position, name, file);
  for (Field field; message.next(field);)
    switch (field.key) {
    case 2:
      normalizer.charsmap = message.text(field);
      break;
    case 3:
      normalizer.addDummyPrefix = message.boolean(field);
      break;
    case 4:
      normalizer.removeExtraWhitespaces = message.boolean(field);
      break;
    case 5:
      normalizer.escapeWhitespaces = message.boolean(field);
      break;
    default:
      break;
    }
}

/// What SentencePiece checks when it loads a model.
void check(Model &model, const std::string &file) {
  auto fail = [&](const std::string &message) { throw Error(file + ": " + message); };
  if (model.pieces.empty())
    fail("pieces: expected at least one, got none");
  std::unordered_set<std::string_view> seen;
  std::vector<bool> bytes(256);
  int32_t unknown = -1;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Model::Piece &piece = model.pieces[i];
    auto name = [&] { return "piece " + std::to_string(i) + " " + quote(piece.text); };
    if (!seen.insert(piece.text).second)
      fail(name() + ": expected a spelling of its own, got one that an earlier piece has");
    if (piece.kind == PieceKind::Unknown) {
      if (unknown >= 0)
        fail(name() + ": expected one unknown piece, got another, piece " + std::to_string(unknown));
      unknown = static_cast<int32_t>(i);
    }
    if (piece.kind == PieceKind::Byte) {
      int value = byteOf(piece.text);
      if (value < 0 || !model.byteFallback)
        fail(name() + (value < 0 ? ": expected a byte as <0xHH>, got other text"
                                 : ": expected byte_fallback, since there is a byte piece, got none"));
      bytes[static_cast<size_t>(value)] = true;
    }
  }
  if (unknown < 0 && !model.byteFallback) // bytes spell everything
    fail("pieces: expected one of type unknown, got none");
  model.unkId = unknown;
  if (model.byteFallback)
    for (size_t value = 0; value < bytes.size(); ++value)
      if (!bytes[value])
        fail("pieces: expected 256 of type byte, since byte_fallback is set, got none for byte " +
             std::to_string(value));
  for (int32_t *id : {&model.bosId, &model.eosId, &model.padId})
    if (*id < 0 || static_cast<size_t>(*id) >= model.pieces.size() ||
        model.pieces[static_cast<size_t>(*id)].kind != PieceKind::Control)
      *id = -1; // defaults name pieces that a model need not have
}

} // namespace

SentencePieceModel SentencePieceModel::parse(std::string_view bytes, const std::string &file) {
  Message message(bytes, 0, "SentencePiece model", file);
  SentencePieceModel model;
  model.denormalizer = {"", false, false, false};
  for (Field field; message.next(field);) {
    if (field.key < 1 || field.key > 5 || field.key == 4)
      continue;
    message.text(field); // each of these is a message
    if (field.key == 1)
      model.pieces.push_back(readPiece(field, model.pieces.size(), file));
    else if (field.key == 2)
      readTrainer(field, file, model);
    else if (field.key == 3)
      readNormalizer(field, "normalizer_spec", file, model.normalizer);
    else
      readNormalizer(field, "denormalizer_spec", file, model.denormalizer);
  }
  check(model, file);
  return model;
}
