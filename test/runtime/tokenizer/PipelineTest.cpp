// Normalisers, pre-tokenisers and models of small vocabularies. Values are those of HF tokenizers 0.23
// unless a comment says otherwise.

#include "Synthetic.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/Utf8.h"

#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

using Normalize = NormalizerStep::Kind;
using Split = PreTokenizerStep::Kind;
using Behavior = PreTokenizerStep::Behavior;
using Strings = std::vector<std::string>;

namespace {

int32_t add(TokenizerData &data, const std::string &token, double score = 0, PieceKind kind = PieceKind::Normal) {
  data.tokens.push_back(token);
  data.scores.push_back(score);
  data.kinds.push_back(kind);
  return static_cast<int32_t>(data.tokens.size() - 1);
}

int32_t addSpecial(TokenizerData &data, const std::string &token) {
  int32_t id = add(data, token, 0, PieceKind::Control);
  data.added.push_back({.id = id, .content = token, .special = true});
  return id;
}

PreTokenizerStep metaspace(PrependScheme prepend, bool split = true) {
  PreTokenizerStep step;
  step.kind = Split::Metaspace;
  step.prepend = prepend;
  step.split = split;
  return step;
}

PreTokenizerStep step(Split kind, const std::string &pattern = "", Behavior behavior = Behavior::Isolated) {
  PreTokenizerStep step;
  step.kind = kind;
  step.pattern = pattern;
  step.behavior = behavior;
  return step;
}

/// Pieces of `text` after the steps.
Strings pieces(const std::vector<PreTokenizerStep> &steps, std::string_view text) {
  struct Collect : PieceSink {
    Strings out;
    void piece(std::string_view text) override { out.emplace_back(text); }
  } sink;
  PreTokenizer splitter(steps, false);
  PreTokenizer::Scratch scratch = splitter.makeScratch();
  splitter.run(text, true, scratch, sink);
  return sink.out;
}

std::string normalize(const std::vector<NormalizerStep> &steps, std::string_view text) {
  static const PrefixTable none;
  return Normalizer(steps, none).apply(text);
}

} // namespace

// B19 ----------------------------------------------------------------------------

static TokenizerData dummyPrefixVocabulary() {
  TokenizerData data;
  addSpecial(data, "<s>");
  for (const char *token : {"▁", "G", "▁G"})
    data.tokens.emplace_back(token);
  data.scores.clear();
  data.kinds.clear();
  data.merges = {{"▁", "G"}};
  return data;
}

static void expectPrefixes(TokenizerData data, const std::vector<Strings> &expected) {
  Tokenizer t = Tokenizer::create(data);
  const char *texts[] = {"G", " G", "<s>G", "<s> G", "G<s>G"};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(spellings(t, texts[i]), expected[i]) << texts[i];
  EXPECT_TRUE(t.encode("", true, false).empty());
}

TEST(DummyPrefix, NormalizerPrependsToEveryStretch) {
  TokenizerData data = dummyPrefixVocabulary();
  data.normalizers = {{.kind = Normalize::Prepend, .text = "▁"},
                      {.kind = Normalize::Replace, .text = " ", .content = "▁"}};
  expectPrefixes(data, {{"▁G"}, {"▁", "▁G"}, {"<s>", "▁G"}, {"<s>", "▁", "▁G"}, {"▁G", "<s>", "▁G"}});
}

TEST(DummyPrefix, MetaspaceFirst) {
  TokenizerData data = dummyPrefixVocabulary();
  data.preTokenizers = {metaspace(PrependScheme::First)};
  expectPrefixes(data, {{"▁G"}, {"▁G"}, {"<s>", "G"}, {"<s>", "▁G"}, {"▁G", "<s>", "G"}});
}

TEST(DummyPrefix, MetaspaceAlways) {
  TokenizerData data = dummyPrefixVocabulary();
  data.preTokenizers = {metaspace(PrependScheme::Always)};
  expectPrefixes(data, {{"▁G"}, {"▁G"}, {"<s>", "▁G"}, {"<s>", "▁G"}, {"▁G", "<s>", "▁G"}});
}

TEST(DummyPrefix, MetaspaceNever) {
  TokenizerData data = dummyPrefixVocabulary();
  data.preTokenizers = {metaspace(PrependScheme::Never)};
  expectPrefixes(data, {{"G"}, {"▁G"}, {"<s>", "G"}, {"<s>", "▁G"}, {"G", "<s>", "G"}});
}

// Normalisers ----------------------------------------------------------------------

TEST(Normalizers, Steps) {
  EXPECT_EQ(normalize({{.kind = Normalize::NFD}}, "é"), "e\u0301");
  EXPECT_EQ(normalize({{.kind = Normalize::NFKC}}, "ﬁ①２"), "fi12");
  EXPECT_EQ(normalize({{.kind = Normalize::NFKD}}, "ﬁé"), "fie\u0301");
  EXPECT_EQ(normalize({{.kind = Normalize::Lowercase}}, "ÀİΣ"), "ài\u0307σ");
  EXPECT_EQ(normalize({{.kind = Normalize::Strip, .left = true, .right = true}}, "\u3000\n a \t"), "a");
  EXPECT_EQ(normalize({{.kind = Normalize::Strip, .right = true}}, "  "), "");
  EXPECT_EQ(normalize({{.kind = Normalize::NFD}, {.kind = Normalize::StripAccents}}, "çé"), "ce");
  EXPECT_EQ(normalize({{.kind = Normalize::Prepend, .text = "▁"}}, ""), "");
  EXPECT_EQ(normalize({{.kind = Normalize::Replace, .text = "aa", .content = "b"}}, "aaaaa"), "bba");
  EXPECT_EQ(normalize({{.kind = Normalize::Replace, .text = "", .content = "b"}}, "a"), "a");
  EXPECT_EQ(normalize({{.kind = Normalize::ReplaceRegex, .text = " {2,}", .content = " "}}, "a   b c"), "a b c");
  EXPECT_EQ(normalize({{.kind = Normalize::Nmt}}, "a\tb\u200Bc\x01"), "a b c");
  EXPECT_EQ(normalize({{.kind = Normalize::CollapseSpaces}}, "  a  b\t "), "a b\t");
  EXPECT_EQ(normalize({{.kind = Normalize::ByteLevel}}, " é"), "ĠÃ©");
}

TEST(Normalizers, Bert) {
  NormalizerStep step{.kind = Normalize::Bert, .cleanText = true, .chineseChars = true, .stripAccents = true,
                      .lowercase = true};
  EXPECT_EQ(normalize({step}, std::string_view("Hé\tA\0中B", 11)), "he a 中 b");
  EXPECT_EQ(normalize({step}, "a\u000Bb\u2028c\uFFFD\u200D"), "ab c");
  step.lowercase = step.stripAccents = false;
  EXPECT_EQ(normalize({step}, "É"), "É");
}

/// A double array trie of darts-clone for single-byte keys; the values follow.
static std::string charsmap(const std::vector<std::pair<char, std::string>> &rules) {
  // The root's children lie at offset 256; each has its value in a leaf at offset 512 + byte * 2.
  std::vector<uint32_t> units(2048);
  units[0] = 256u << 10;
  std::string strings;
  for (const auto &[key, value] : rules) {
    auto byte = static_cast<unsigned char>(key);
    uint32_t at = 256u ^ byte, leaf = 1024u + byte;
    units[at] = (at ^ leaf) << 10 | 1u << 8 | byte;
    units[leaf] = 0x80000000u | static_cast<uint32_t>(strings.size());
    strings += value + '\0';
  }
  auto size = static_cast<uint32_t>(units.size() * 4);
  std::string blob(reinterpret_cast<const char *>(&size), 4);
  blob.append(reinterpret_cast<const char *>(units.data()), size);
  return blob + strings;
}

TEST(Normalizers, Charsmap) {
  NormalizerStep step{.kind = Normalize::Precompiled, .text = charsmap({{'\t', " "}, {'x', "yy"}, {'z', ""}})};
  EXPECT_EQ(normalize({step}, "a\tx中z!"), "a yy中!");
  step.byGrapheme = true;
  EXPECT_EQ(normalize({step}, "a\tx中z!"), "a yy中!");
  EXPECT_EQ(normalize({step}, "x\u0301"), "yy") << "the whole grapheme becomes what its start says";
  step.byGrapheme = false;
  EXPECT_EQ(normalize({step}, "x\u0301"), "yy\u0301");
}

TEST(Normalizers, HostileCharsmapsAreRefusedOrHarmless) {
  std::string good = charsmap({{'\t', " "}});
  for (std::string blob : {std::string(), std::string(3, '\0'), good.substr(0, 100), std::string(4, '\xFF') + "abcd"})
    EXPECT_THROW(normalize({{.kind = Normalize::Precompiled, .text = blob}}, "a\tb"), Error);
  for (size_t i = 4; i < good.size(); i += 3) { // wild offsets, labels and values
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0xA5);
    for (bool byGrapheme : {false, true}) {
      std::string out = normalize({{.kind = Normalize::Precompiled, .text = bad, .byGrapheme = byGrapheme}}, "a\tb\xC3\xA9");
      EXPECT_EQ(utf8::firstInvalid(out), out.size());
    }
  }
}

// Pre-tokenisers -------------------------------------------------------------------

TEST(PreTokenizers, Behaviors) {
  const std::string text = "the-final--countdown";
  auto split = [&](Behavior behavior, bool invert = false) {
    PreTokenizerStep s = step(Split::SplitLiteral, "-", behavior);
    s.invert = invert;
    PreTokenizerStep regex = s;
    regex.kind = Split::Split;
    EXPECT_EQ(pieces({s}, text), pieces({regex}, text));
    return pieces({s}, text);
  };
  EXPECT_EQ(split(Behavior::Removed), (Strings{"the", "final", "countdown"}));
  EXPECT_EQ(split(Behavior::Isolated), (Strings{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split(Behavior::MergedWithPrevious), (Strings{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split(Behavior::MergedWithNext), (Strings{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split(Behavior::Contiguous), (Strings{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split(Behavior::Removed, true), (Strings{"-", "-", "-"}));
}

TEST(PreTokenizers, ByCharacters) {
  PreTokenizerStep digits = step(Split::Digits);
  EXPECT_EQ(pieces({digits}, "a12½b"), (Strings{"a", "12½", "b"}));
  digits.individualDigits = true;
  EXPECT_EQ(pieces({digits}, "a12½b"), (Strings{"a", "1", "2", "½", "b"}));
  EXPECT_EQ(pieces({step(Split::Whitespace)}, "Hey, friend!  a_1é"), (Strings{"Hey", ",", "friend", "!", "a_1é"}));
  EXPECT_EQ(pieces({step(Split::WhitespaceSplit)}, " a\u3000b,\n"), (Strings{"a", "b,"}));
  EXPECT_EQ(pieces({step(Split::Bert)}, "Hey, don't\n¿a"), (Strings{"Hey", ",", "don", "'", "t", "¿", "a"}));
  EXPECT_EQ(pieces({step(Split::Punctuation)}, "a..b"), (Strings{"a", ".", ".", "b"}));
  EXPECT_EQ(pieces({step(Split::Punctuation, "", Behavior::Contiguous)}, "a..b"), (Strings{"a", "..", "b"}));
}

TEST(PreTokenizers, Metaspace) {
  EXPECT_EQ(pieces({metaspace(PrependScheme::Always)}, "Hey  friend!"), (Strings{"▁Hey", "▁", "▁friend!"}));
  EXPECT_EQ(pieces({metaspace(PrependScheme::Never)}, "a b▁c"), (Strings{"a", "▁b", "▁c"}));
  EXPECT_EQ(pieces({metaspace(PrependScheme::Always, false)}, "a b"), (Strings{"▁a▁b"}));
  // The first piece of the text, not of every step's output.
  EXPECT_EQ(pieces({step(Split::WhitespaceSplit), metaspace(PrependScheme::First)}, "a b"), (Strings{"▁a", "b"}));
  EXPECT_EQ(pieces({step(Split::WhitespaceSplit), metaspace(PrependScheme::First)}, " a b"), (Strings{"a", "b"}));
}

// Falcon: the steps after ByteLevel see its alphabet, in which é is the two letters Ã and ©, ò has a superscript.
TEST(PreTokenizers, StepsAfterByteLevel) {
  PreTokenizerStep bytes = step(Split::ByteLevel);
  bytes.useRegex = true;
  EXPECT_EQ(pieces({bytes, step(Split::Digits)}, "é1 ò"), (Strings{"\xC3\xA9", "1", " \xC3", "\xB2"}));
  EXPECT_THROW(pieces({bytes, bytes}, "a"), Error);
}

// Models ----------------------------------------------------------------------------

// "ab" and "bc" have equal scores: the left one; "abc" can only be made of "ab" and "c".
TEST(ScoredBPE, HighestScoreThenLeftmost) {
  TokenizerData data;
  data.model = TokenizerData::Model::ScoredBPE;
  data.unkId = add(data, "<unk>", 0, PieceKind::Unknown);
  for (const char *token : {"a", "b", "c"})
    add(data, token, -10);
  add(data, "ab", -1);
  add(data, "bc", -1);
  add(data, "cab", -0.5);
  Tokenizer t = Tokenizer::create(data);
  EXPECT_EQ(spellings(t, "abc"), (Strings{"ab", "c"}));
  EXPECT_EQ(spellings(t, "abcab"), (Strings{"ab", "cab"}));
  EXPECT_EQ(spellings(t, "axyzb"), (Strings{"a", "<unk>", "b"})) << "one for a run";
}

// Values of sentencepiece: user-defined pieces are cut out first, unused ones taken apart again.
TEST(ScoredBPE, UserDefinedAndUnused) {
  TokenizerData data;
  data.model = TokenizerData::Model::ScoredBPE;
  data.unkId = add(data, "<unk>", 0, PieceKind::Unknown);
  for (const char *token : {"a", "b", "c", "d"})
    add(data, token, -10);
  add(data, "ab", -1, PieceKind::Unused);
  add(data, "abc", -2);
  add(data, "cd", 0, PieceKind::UserDefined);
  Tokenizer t = Tokenizer::create(data);
  EXPECT_EQ(spellings(t, "ab"), (Strings{"a", "b"}));
  EXPECT_EQ(spellings(t, "abc"), (Strings{"abc"})) << "through the unused one";
  EXPECT_EQ(spellings(t, "abcd"), (Strings{"a", "b", "cd"}));
}

TEST(Unigram, BestPathAndUnknown) {
  TokenizerData data;
  data.model = TokenizerData::Model::Unigram;
  data.unkId = add(data, "<unk>", 0);
  add(data, "a", -2);
  add(data, "b", -3);
  add(data, "ab", -4.5);
  add(data, "ba", -4.4);
  data.kinds.clear();
  Tokenizer t = Tokenizer::create(data);
  EXPECT_EQ(spellings(t, "ab"), (Strings{"ab"}));
  EXPECT_EQ(spellings(t, "aba"), (Strings{"a", "ba"}));
  EXPECT_EQ(spellings(t, "a?!b"), (Strings{"a", "<unk>", "b"}));
  data.unkId = -1;
  EXPECT_THROW(Tokenizer::create(data).encode("?", false, false), Error);
}

TEST(WordPiece, LongestFirst) {
  TokenizerData data;
  data.model = TokenizerData::Model::WordPiece;
  for (const char *token : {"[UNK]", "un", "##aff", "##able", "##a", "u", "中"})
    data.tokens.emplace_back(token);
  data.unkId = 0;
  data.continuingPrefix = "##";
  data.maxWordChars = 10;
  data.preTokenizers = {step(Split::Bert)};
  Tokenizer t = Tokenizer::create(data);
  EXPECT_EQ(spellings(t, "unaffable una"), (Strings{"un", "##aff", "##able", "un", "##a"}));
  EXPECT_EQ(spellings(t, "unx"), (Strings{"[UNK]"}));
  EXPECT_EQ(spellings(t, "##a"), (Strings{"[UNK]", "[UNK]", "[UNK]"})) << "punctuation, of which no token starts";
  EXPECT_EQ(spellings(t, "unaaaaaaaaa"), (Strings{"[UNK]"})) << "11 characters";
  data.unkId = -1;
  EXPECT_THROW(Tokenizer::create(data), Error);
}

TEST(BPE, PrefixAndSuffix) {
  TokenizerData data;
  for (const char *token : {"a", "b", "a</w>", "b</w>", "ab</w>", "ba"})
    data.tokens.emplace_back(token);
  data.endOfWordSuffix = "</w>";
  data.merges = {{"a", "b</w>"}, {"b", "a"}};
  data.preTokenizers = {step(Split::WhitespaceSplit)};
  EXPECT_EQ(spellings(Tokenizer::create(data), "ab ba bab"),
            (Strings{"ab</w>", "b", "a</w>", "b", "ab</w>"}));
  TokenizerData continued;
  for (const char *token : {"a", "b", "##a", "##b", "ab", "##ba"})
    continued.tokens.emplace_back(token);
  continued.continuingPrefix = "##";
  continued.merges = {{"a", "##b"}, {"##b", "##a"}};
  continued.preTokenizers = {step(Split::WhitespaceSplit)};
  EXPECT_EQ(spellings(Tokenizer::create(continued), "aba bba"), (Strings{"ab", "##a", "b", "##ba"}));
}

// Pieces are cut where no token reaches across; runs of unknown characters still give one token.
TEST(BPE, WholeTextAsOnePiece) {
  TokenizerData data;
  for (const char *token : {"<unk>", "▁", "a", "b", "▁a", "ab", "▁ab"})
    data.tokens.emplace_back(token);
  data.merges = {{"a", "b"}, {"▁", "ab"}, {"▁", "a"}};
  data.unkId = 0;
  data.normalizers = {{.kind = Normalize::Replace, .text = " ", .content = "▁"}};
  EXPECT_EQ(spellings(Tokenizer::create(data), " ab ab?? ?b"),
            (Strings{"▁ab", "▁ab", "<unk>", "<unk>", "▁", "<unk>", "b"}));
  data.fuseUnk = true;
  EXPECT_EQ(spellings(Tokenizer::create(data), "??xyz a"), (Strings{"<unk>", "▁a"}));
}
