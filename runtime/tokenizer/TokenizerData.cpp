//===- TokenizerData.cpp - the binary form in a package -------------------===//
//
// Little endian. Header: magic, version. Strings are a u32 length and bytes;
// tables keep all lengths first, so that reading is one pass over plain arrays.
// Merges are ids (left, right, merged); Tokenizer::load takes them as they are.
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/SerializedTokenizer.h"

#include "llmc/Support/Error.h"

#include <bit>
#include <cstring>
#include <type_traits>

using namespace llmc;

static_assert(std::endian::native == std::endian::little);

static constexpr uint32_t kMagic = 0x4B4F544Cu; // "LTOK"
static constexpr uint32_t kVersion = 1;
static constexpr size_t kMaxMergeBytes = 64u << 20;

namespace {
class Writer {
public:
  std::string out;
  void u32(uint32_t v) { out.append(reinterpret_cast<const char *>(&v), 4); }
  void i32(int32_t v) { u32(static_cast<uint32_t>(v)); }
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
};
enum AddedFlag : uint32_t { kSpecial = 1, kLStrip = 2, kRStrip = 4, kSingleWord = 8, kNormalized = 16 };
} // namespace

static uint32_t flagsOf(const TokenizerData &d) {
  return (d.nfc ? kNFC : 0) | (d.ignoreMerges ? kIgnoreMerges : 0) | (d.addPrefixSpace ? kAddPrefixSpace : 0) |
         (d.addBos ? kAddBos : 0) | (d.addEos ? kAddEos : 0) | (d.fuseUnk ? kFuseUnk : 0);
}

static_assert(std::is_trivially_copyable_v<MergeIds> && sizeof(MergeIds) == 12);

static void writeMerges(const TokenizerData &data, Writer &w) {
  std::vector<MergeIds> ids = BytePairs::resolve(data);
  for (size_t rank = 0; rank < ids.size(); ++rank)
    if (ids[rank].left < 0 || ids[rank].right < 0 || ids[rank].merged < 0)
      throw Error("tokenizer merge " + std::to_string(rank) + ": expected '" + data.merges[rank].first + "', '" +
                  data.merges[rank].second + "' and their join in the vocabulary, got one missing");
  w.u32(static_cast<uint32_t>(ids.size()));
  w.out.append(reinterpret_cast<const char *>(ids.data()), ids.size() * sizeof(MergeIds));
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
  w.u32(static_cast<uint32_t>(eosIds.size()));
  for (int32_t id : eosIds)
    w.i32(id);
  w.table(tokens);
  writeMerges(*this, w);
  w.table(splitPatterns);
  w.u32(static_cast<uint32_t>(added.size()));
  for (const AddedToken &t : added) {
    w.i32(t.id);
    w.u32((t.special ? kSpecial : 0) | (t.lstrip ? kLStrip : 0) | (t.rstrip ? kRStrip : 0) |
          (t.singleWord ? kSingleWord : 0) | (t.normalized ? kNormalized : 0));
    w.string(t.content);
  }
  return std::move(w.out);
}

static std::vector<MergeIds> readMerges(const TokenizerData &data, Reader &r) {
  std::vector<MergeIds> ids(r.count(sizeof(MergeIds), "merges"));
  if (!ids.empty()) // memcpy takes no null, not even for nothing
    std::memcpy(ids.data(), r.take(ids.size() * sizeof(MergeIds), "merges").data(), ids.size() * sizeof(MergeIds));
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
  if (uint32_t version = r.u32("a version"); version == 0 || version > kVersion)
    throw Error("tokenizer data: expected version 1 to " + std::to_string(kVersion) + ", got " +
                std::to_string(version));
  SerializedTokenizer result;
  TokenizerData &data = result.data;
  if (uint32_t model = r.u32("a model kind"); model != static_cast<uint32_t>(TokenizerData::Model::ByteLevelBPE))
    throw Error("tokenizer data: expected model kind 1 (byte-level BPE), got " + std::to_string(model));
  uint32_t flags = r.u32("flags");
  data.nfc = flags & kNFC;
  data.ignoreMerges = flags & kIgnoreMerges;
  data.addPrefixSpace = flags & kAddPrefixSpace;
  data.addBos = flags & kAddBos;
  data.addEos = flags & kAddEos;
  data.fuseUnk = flags & kFuseUnk;
  data.bosId = r.i32("the bos id");
  data.padId = r.i32("the pad id");
  data.unkId = r.i32("the unk id");
  uint32_t eosCount = r.count(4, "eos ids");
  for (uint32_t i = 0; i < eosCount; ++i)
    data.eosIds.push_back(r.i32("eos ids"));
  data.tokens = r.table("tokens");
  result.merges = readMerges(data, r);
  data.splitPatterns = r.table("split patterns");
  uint32_t addedCount = r.count(12, "added tokens");
  data.added.reserve(addedCount);
  for (uint32_t i = 0; i < addedCount; ++i) {
    AddedToken t;
    t.id = r.i32("an added token");
    uint32_t f = r.u32("an added token");
    t.special = f & kSpecial;
    t.lstrip = f & kLStrip;
    t.rstrip = f & kRStrip;
    t.singleWord = f & kSingleWord;
    t.normalized = f & kNormalized;
    t.content = r.string("an added token");
    data.added.push_back(std::move(t));
  }
  if (r.left())
    throw Error("tokenizer data: expected the end, got " + std::to_string(r.left()) + " more bytes");
  return result;
}
