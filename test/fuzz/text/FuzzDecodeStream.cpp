// Ids to text: what a stream gives is valid UTF-8 and, joined, what one decode gives. The first
// byte picks the tokenizer and whether special tokens are skipped; each further one is an id.
// Utf8Stream gets the same bytes in pieces.
#include "llmc/Support/Text.h"
#include "runtime/tokenizer/BytePairs.h"
#include "runtime/tokenizer/DecodeStream.h"
#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tokenizer/Utf8.h"
#include "runtime/tokenizer/Utf8Stream.h"

#include <cstdint>
#include <cstdlib>

using namespace llmc;

using Step = DecoderStep::Kind;

static void expect(bool condition) {
  if (!condition)
    std::abort();
}

static TokenizerData byteLevel() {
  TokenizerData data;
  for (int b = 0; b < 256; ++b) {
    char c = static_cast<char>(b);
    data.tokens.push_back(toAlphabet({&c, 1}));
  }
  data.added = {{.id = 256, .content = "<|x|>", .special = true}, {.id = 257, .content = "a é", .special = false}};
  data.tokens.insert(data.tokens.end(), {"<|x|>", "a é"});
  data.splitPatterns = {"\\s+|\\S+"};
  return data;
}

static TokenizerData byteFallback() {
  TokenizerData data;
  static const char digits[] = "0123456789ABCDEF";
  for (int b = 0; b < 224; ++b) // ids from 224 on are text
    data.tokens.push_back(std::string("<0x") + digits[(b + 32) >> 4] + digits[b & 15] + ">");
  for (const char *text : {"▁", "▁a", "é", "<0xc3>", "<unk>", "<s>", " ", "", "🦊", "a▁b"})
    data.tokens.push_back(text);
  data.added = {{.id = 228, .content = "<unk>", .special = true}, {.id = 229, .content = "<s>", .special = true}};
  data.decoders = {{.kind = Step::Replace, .text = kMetaspace, .content = " "},
                   {.kind = Step::ByteFallback},
                   {.kind = Step::Fuse},
                   {.kind = Step::Strip, .text = " ", .start = 1}};
  return data;
}

static TokenizerData wordPiece() {
  TokenizerData data;
  data.model = TokenizerData::Model::WordPiece;
  data.tokens = {"[UNK]", "[SEP]", "a", "##b", ".", "##.", "n", "'", "##'t", "do", "not", "##", "é", "'s"};
  data.unkId = 0;
  data.continuingPrefix = "##";
  data.added = {{.id = 1, .content = "[SEP]", .special = true}};
  data.decoders = {{.kind = Step::WordPiece, .text = "##", .cleanUp = true}, {.kind = Step::CleanUp}};
  return data;
}

static TokenizerData metaspace() {
  TokenizerData data = byteFallback();
  data.decoders = {{.kind = Step::Metaspace, .text = kMetaspace}};
  return data;
}

static void checkDecode(const Tokenizer &tokenizer, bool skip, std::string_view input) {
  std::vector<int32_t> ids;
  std::string streamed;
  DecodeStream stream(tokenizer, skip);
  for (char c : input) {
    ids.push_back(static_cast<unsigned char>(c) + (c == 1 ? 255 : 0));
    std::string chunk = stream.feed(ids.back());
    expect(isValidUtf8(chunk));
    streamed += chunk;
  }
  streamed += stream.flush();
  std::string whole = tokenizer.decode(ids, skip);
  expect(isValidUtf8(whole) && streamed == whole);
}

static void checkUtf8(std::string_view input, size_t step) {
  Utf8Stream stream;
  std::string joined;
  for (size_t at = 0; at < input.size(); at += step)
    joined += stream.feed(input.substr(at, step));
  joined += stream.flush();
  expect(joined == utf8::sanitize(input) && isValidUtf8(joined));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const Tokenizer tokenizers[] = {Tokenizer::create(byteLevel()), Tokenizer::create(byteFallback()),
                                         Tokenizer::create(wordPiece()), Tokenizer::create(metaspace())};
  if (!size)
    return 0;
  std::string_view input(reinterpret_cast<const char *>(bytes) + 1, size - 1);
  checkDecode(tokenizers[bytes[0] & 3], bytes[0] & 4, input);
  checkUtf8(input, 1 + (bytes[0] >> 3) % 5);
  return 0;
}
