//===- TokenizerData.cpp - the binary form in a package -------------------===//
//
// Little endian. Header: magic, version. Strings are a u32 length and bytes;
// tables keep all lengths first, so that reading is one pass over plain arrays.
// Merges are ids (left, right, merged); Tokenizer::load takes them as they are.
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/SerializedTokenizer.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/BytePairs.h"

#include <bit>
#include <cstring>
#include <type_traits>

using namespace llmc;

static_assert(std::endian::native == std::endian::little);

static constexpr uint32_t kMagic = 0x4B4F544Cu; // "LTOK"
static constexpr uint32_t kVersion = 2;
static constexpr size_t kMaxMergeBytes = 64u << 20;

namespace {
class Writer {
public:
  std::string out;
  void u32(uint32_t v) { out.append(reinterpret_cast<const char *>(&v), 4); }
  void i32(int32_t v) { u32(static_cast<uint32_t>(v)); }
  template <typename T> void array(const std::vector<T> &values) {
    static_assert(std::is_trivially_copyable_v<T>);
    u32(static_cast<uint32_t>(values.size()));
    out.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
  }
  void string(std::string_view s) {
    u32(static_cast<uint32_t>(s.size()));
    out.append(s);
  }
  template <typename Strings> void table(const Strings &strings) {
    u32(static_cast<uint32_t>(strings.size()));
    for (const auto &s : strings)
      u32(static_cast<uint32_t>(s.size()));
    for (const auto &s : strings)
      out.append(s);
  }
};

class Reader {
public:
  explicit Reader(std::string_view bytes) : rest(bytes), total(bytes.size()) {}

  uint32_t u32(const char *what) {
    uint32_t v;
    std::memcpy(&v, take(4, what).data(), 4);
    return v;
  }
  int32_t i32(const char *what) { return static_cast<int32_t>(u32(what)); }
  std::string string(const char *what) { return std::string(take(u32(what), what)); }
  template <typename T> std::vector<T> array(const char *what) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> values(count(sizeof(T), what));
    if (!values.empty()) // memcpy takes no null, not even for nothing
      std::memcpy(values.data(), take(values.size() * sizeof(T), what).data(), values.size() * sizeof(T));
    return values;
  }
  /// A number from `low` to `high`.
  template <typename Enum> Enum kind(Enum low, Enum high, const char *what) {
    uint32_t v = u32(what);
    if (v < static_cast<uint32_t>(low) || v > static_cast<uint32_t>(high))
      throw Error(std::string("tokenizer data: expected ") + what + " from " +
                  std::to_string(static_cast<uint32_t>(low)) + " to " + std::to_string(static_cast<uint32_t>(high)) +
                  " at byte " + std::to_string(total - rest.size() - 4) + ", got " + std::to_string(v));
    return static_cast<Enum>(v);
  }
  /// A count of things of at least `size` bytes each.
  uint32_t count(size_t size, const char *what) {
    uint32_t n = u32(what);
    if (n > rest.size() / size)
      fail(what);
    return n;
  }
  std::string_view take(size_t n, const char *what) {
    if (n > rest.size())
      fail(what);
    std::string_view taken = rest.substr(0, n);
    rest.remove_prefix(n);
    return taken;
  }
  std::vector<std::string> table(const char *what) {
    uint32_t n = count(4, what);
    std::string_view lengths = take(size_t(n) * 4, what);
    std::vector<std::string> strings;
    strings.reserve(n);
    for (uint32_t i = 0; i < n; ++i) {
      uint32_t length;
      std::memcpy(&length, lengths.data() + size_t(i) * 4, 4);
      strings.emplace_back(take(length, what));
    }
    return strings;
  }
  size_t left() const { return rest.size(); }
  [[noreturn]] void fail(const char *what) const {
    throw Error(std::string("tokenizer data: expected ") + what + " at byte " + std::to_string(total - rest.size()) +
                ", got the end of " + std::to_string(total) + " bytes");
  }

private:
  std::string_view rest;
  size_t total;
};

enum Flag : uint32_t {
  kNFC = 1,
  kIgnoreMerges = 2,
  kAddPrefixSpace = 4,
  kAddBos = 8,
  kAddEos = 16,
  kFuseUnk = 32,
  kByteFallback = 64,
  kSinglePrecision = 128,
};
enum AddedFlag : uint32_t { kSpecial = 1, kLStrip = 2, kRStrip = 4, kSingleWord = 8, kNormalized = 16 };
} // namespace

static uint32_t bit(bool set, uint32_t flag) { return set ? flag : 0; }

static uint32_t flagsOf(const TokenizerData &d) {
  return bit(d.nfc, kNFC) | bit(d.ignoreMerges, kIgnoreMerges) | bit(d.addPrefixSpace, kAddPrefixSpace) |
         bit(d.addBos, kAddBos) | bit(d.addEos, kAddEos) | bit(d.fuseUnk, kFuseUnk) |
         bit(d.byteFallback, kByteFallback) | bit(d.singlePrecision, kSinglePrecision);
}

static void readFlags(uint32_t flags, TokenizerData &d) {
  d.nfc = flags & kNFC;
  d.ignoreMerges = flags & kIgnoreMerges;
  d.addPrefixSpace = flags & kAddPrefixSpace;
  d.addBos = flags & kAddBos;
  d.addEos = flags & kAddEos;
  d.fuseUnk = flags & kFuseUnk;
  d.byteFallback = flags & kByteFallback;
  d.singlePrecision = flags & kSinglePrecision;
}

bool TokenizerData::byteLevel() const {
  for (const NormalizerStep &step : normalizers)
    if (step.kind == NormalizerStep::Kind::ByteLevel)
      return true;
  for (const PreTokenizerStep &step : preTokenizers)
    if (step.kind == PreTokenizerStep::Kind::ByteLevel)
      return true;
  // The short form.
  return model == Model::BPE && normalizers.empty() && preTokenizers.empty() && decoders.empty();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

static void write(Writer &w, const NormalizerStep &s) {
  w.u32(static_cast<uint32_t>(s.kind));
  w.u32(bit(s.left, 1) | bit(s.right, 2) | bit(s.cleanText, 4) | bit(s.chineseChars, 8) | bit(s.stripAccents, 16) |
        bit(s.lowercase, 32) | bit(s.byGrapheme, 64));
  w.string(s.text);
  w.string(s.content);
}

static void read(Reader &r, NormalizerStep &s) {
  s.kind = r.kind(NormalizerStep::Kind::NFC, NormalizerStep::Kind::ByteLevel, "a normaliser's kind");
  uint32_t f = r.u32("a normaliser's flags");
  s.left = f & 1, s.right = f & 2;
  s.cleanText = f & 4, s.chineseChars = f & 8, s.stripAccents = f & 16, s.lowercase = f & 32, s.byGrapheme = f & 64;
  s.text = r.string("a normaliser's text");
  s.content = r.string("a normaliser's content");
}

static void write(Writer &w, const PreTokenizerStep &s) {
  w.u32(static_cast<uint32_t>(s.kind));
  w.u32(static_cast<uint32_t>(s.behavior));
  w.u32(static_cast<uint32_t>(s.prepend));
  w.u32(bit(s.invert, 1) | bit(s.addPrefixSpace, 2) | bit(s.useRegex, 4) | bit(s.individualDigits, 8) |
        bit(s.split, 16));
  w.string(s.pattern);
  w.string(s.replacement);
}

static void read(Reader &r, PreTokenizerStep &s) {
  using Kind = PreTokenizerStep::Kind;
  using Behavior = PreTokenizerStep::Behavior;
  s.kind = r.kind(Kind::Split, Kind::UnicodeScripts, "a pre-tokeniser's kind");
  s.behavior = r.kind(Behavior::Removed, Behavior::Contiguous, "a split behaviour");
  s.prepend = r.kind(PrependScheme::First, PrependScheme::Never, "a prepend scheme");
  uint32_t f = r.u32("a pre-tokeniser's flags");
  s.invert = f & 1, s.addPrefixSpace = f & 2, s.useRegex = f & 4, s.individualDigits = f & 8, s.split = f & 16;
  s.pattern = r.string("a pre-tokeniser's pattern");
  s.replacement = r.string("a pre-tokeniser's replacement");
}

static void write(Writer &w, const DecoderStep &s) {
  w.u32(static_cast<uint32_t>(s.kind));
  w.u32(static_cast<uint32_t>(s.prepend));
  w.u32(s.start);
  w.u32(s.stop);
  w.u32(s.cleanUp);
  w.string(s.text);
  w.string(s.content);
}

static void read(Reader &r, DecoderStep &s) {
  s.kind = r.kind(DecoderStep::Kind::ByteLevel, DecoderStep::Kind::CleanUp, "a decoder's kind");
  s.prepend = r.kind(PrependScheme::First, PrependScheme::Never, "a prepend scheme");
  s.start = r.u32("a decoder's start");
  s.stop = r.u32("a decoder's stop");
  s.cleanUp = r.u32("a decoder's flags");
  s.text = r.string("a decoder's text");
  s.content = r.string("a decoder's content");
}

static void write(Writer &w, const AddedToken &t) {
  w.i32(t.id);
  w.u32(bit(t.special, kSpecial) | bit(t.lstrip, kLStrip) | bit(t.rstrip, kRStrip) | bit(t.singleWord, kSingleWord) |
        bit(t.normalized, kNormalized));
  w.string(t.content);
}

static void read(Reader &r, AddedToken &t) {
  t.id = r.i32("an added token");
  uint32_t f = r.u32("an added token");
  t.special = f & kSpecial;
  t.lstrip = f & kLStrip;
  t.rstrip = f & kRStrip;
  t.singleWord = f & kSingleWord;
  t.normalized = f & kNormalized;
  t.content = r.string("an added token");
}

template <typename T> static void writeList(Writer &w, const std::vector<T> &list) {
  w.u32(static_cast<uint32_t>(list.size()));
  for (const T &entry : list)
    write(w, entry);
}

template <typename T> static void readList(Reader &r, std::vector<T> &list, const char *what) {
  constexpr size_t smallest = 12; // bytes of an entry: two numbers and an empty string
  uint32_t n = r.count(smallest, what);
  for (uint32_t i = 0; i < n; ++i) // a count does not drive allocation: entries are larger in memory
    read(r, list.emplace_back());
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

static_assert(std::is_trivially_copyable_v<MergeIds> && sizeof(MergeIds) == 12);

static void writeMerges(const TokenizerData &data, Writer &w) {
  w.array(BytePairs::resolveAll(data, Vocabulary(data)));
}

std::string TokenizerData::serialize() const {
  Writer w;
  w.u32(kMagic);
  w.u32(kVersion);
  w.u32(static_cast<uint32_t>(model));
  w.u32(flagsOf(*this));
  w.i32(bosId);
  w.i32(padId);
  w.i32(unkId);
  w.u32(maxWordChars);
  w.string(continuingPrefix);
  w.string(endOfWordSuffix);
  w.array(eosIds);
  w.array(prefixIds);
  w.array(suffixIds);
  writeList(w, normalizers);
  writeList(w, preTokenizers);
  writeList(w, decoders);
  writeList(w, added);
  w.table(splitPatterns);
  w.table(tokens);
  w.array(kinds);
  w.array(scores);
  writeMerges(*this, w);
  return std::move(w.out);
}

static std::vector<MergeIds> readMerges(const TokenizerData &data, Reader &r) {
  auto ids = r.array<MergeIds>("merges");
  const size_t count = data.tokens.size();
  for (size_t rank = 0; rank < ids.size(); ++rank)
    for (int32_t id : {ids[rank].left, ids[rank].right, ids[rank].merged})
      if (id < 0 || static_cast<size_t>(id) >= count)
        throw Error("tokenizer data: merge " + std::to_string(rank) + ": expected ids below " + std::to_string(count) +
                    ", got " + std::to_string(id));
  return ids;
}

TokenizerData TokenizerData::deserialize(std::string_view bytes) {
  SerializedTokenizer read = SerializedTokenizer::read(bytes);
  TokenizerData data = std::move(read.data);
  data.merges.reserve(read.merges.size());
  size_t total = 0; // a small file must not unfold into much memory by naming one long token often
  for (const MergeIds &merge : read.merges) {
    const std::string &left = data.tokens[merge.left], &right = data.tokens[merge.right];
    total += left.size() + right.size();
    if (total > kMaxMergeBytes)
      throw Error("tokenizer data: expected at most " + std::to_string(kMaxMergeBytes) +
                  " bytes of merge spellings, got more at merge " + std::to_string(data.merges.size()));
    data.merges.emplace_back(left, right);
  }
  return data;
}

SerializedTokenizer SerializedTokenizer::read(std::string_view bytes) {
  Reader r(bytes);
  if (r.u32("a magic number") != kMagic)
    throw Error("tokenizer data: expected the magic number LTOK, got other bytes");
  if (uint32_t version = r.u32("a version"); version != kVersion)
    throw Error("tokenizer data: expected version " + std::to_string(kVersion) + ", got " + std::to_string(version));
  SerializedTokenizer result;
  TokenizerData &data = result.data;
  data.model = r.kind(TokenizerData::Model::BPE, TokenizerData::Model::WordPiece, "a model kind");
  readFlags(r.u32("flags"), data);
  data.bosId = r.i32("the bos id");
  data.padId = r.i32("the pad id");
  data.unkId = r.i32("the unk id");
  data.maxWordChars = r.u32("the longest word");
  data.continuingPrefix = r.string("the prefix of continuations");
  data.endOfWordSuffix = r.string("the suffix of words");
  data.eosIds = r.array<int32_t>("eos ids");
  data.prefixIds = r.array<int32_t>("prefix ids");
  data.suffixIds = r.array<int32_t>("suffix ids");
  readList(r, data.normalizers, "normalisers");
  readList(r, data.preTokenizers, "pre-tokenisers");
  readList(r, data.decoders, "decoders");
  readList(r, data.added, "added tokens");
  data.splitPatterns = r.table("split patterns");
  data.tokens = r.table("tokens");
  data.kinds = r.array<PieceKind>("piece kinds");
  data.scores = r.array<double>("scores");
  result.merges = readMerges(data, r);
  if (r.left())
    throw Error("tokenizer data: expected the end, got " + std::to_string(r.left()) + " more bytes");
  return result;
}
