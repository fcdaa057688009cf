//===- TokenizeFile.cpp - the tokenizer of a file, for scripts ------------===//
//
//   llmc-tokenize-file VOCABULARY < TEXT      ids of each line, one line each
//   llmc-tokenize-file VOCABULARY --pipe      requests from a script (judge.py)
//
// VOCABULARY is a GGUF file, a tokenizer.json, a tokenizer.model or a folder with one.
// A request is a letter, a u32 of bytes and so many bytes (little endian); the answer a
// u32 of bytes and those: e text -> ids (special tokens stay text), s text -> ids
// (special tokens count), p text -> ids as s, with what plain text gets in front,
// d ids -> text, k ids -> text without special tokens, b u32 n, text -> nanoseconds
// of this thread for encoding the text n times and the number of ids, as two u64.
//
//===----------------------------------------------------------------------===//
#include "lib/Frontend/GGUF/GGUF.h"
#include "lib/Frontend/HuggingFace/HuggingFace.h"
#include "llmc/Support/Error.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <cstdio>
#include <cstring>
#include <ctime>
#include <iostream>

using namespace llmc;

static TokenizerData load(const std::string &path) {
  if (path.ends_with(".gguf"))
    return gguf::readTokenizer(gguf::readContents(InputFile::open(path)).metadata);
  std::vector<std::string> warnings;
  TokenizerData data = huggingface::loadTokenizer(path, warnings);
  for (const std::string &warning : warnings)
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  return data;
}

static std::string bytesOf(const std::vector<int32_t> &ids) {
  return std::string(reinterpret_cast<const char *>(ids.data()), ids.size() * sizeof(int32_t));
}

static uint64_t nanoseconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

static std::string timeOf(const Tokenizer &tokenizer, const std::string &payload) {
  uint32_t repeats = 0;
  if (payload.size() < sizeof(repeats))
    return "";
  std::memcpy(&repeats, payload.data(), sizeof(repeats));
  std::string_view text = std::string_view(payload).substr(sizeof(repeats));
  uint64_t start = nanoseconds(), count = 0;
  for (uint32_t i = 0; i < repeats; ++i)
    count += tokenizer.encode(text, false, false).size();
  uint64_t answer[] = {nanoseconds() - start, count};
  return std::string(reinterpret_cast<const char *>(answer), sizeof(answer));
}

static std::string answer(const Tokenizer &tokenizer, char what, const std::string &payload) {
  if (what == 'e' || what == 's')
    return bytesOf(tokenizer.encode(payload, what == 's', false));
  if (what == 'p')
    return bytesOf(tokenizer.encode(payload, true, tokenizer.addsBos(), tokenizer.addsEos()));
  if (what == 'b')
    return timeOf(tokenizer, payload);
  std::vector<int32_t> ids(payload.size() / sizeof(int32_t));
  std::memcpy(ids.data(), payload.data(), ids.size() * sizeof(int32_t));
  return tokenizer.decode(ids, what == 'k');
}

static void serve(const Tokenizer &tokenizer) {
  char what;
  uint32_t size;
  while (std::cin.get(what) && std::cin.read(reinterpret_cast<char *>(&size), sizeof(size))) {
    std::string payload(size, '\0');
    if (!std::cin.read(payload.data(), size))
      return;
    std::string out = answer(tokenizer, what, payload);
    size = static_cast<uint32_t>(out.size());
    std::cout.write(reinterpret_cast<const char *>(&size), sizeof(size)).write(out.data(), size).flush();
  }
}

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s VOCABULARY [--pipe] < TEXT\n", argv[0]);
    return 2;
  }
  try {
    Tokenizer tokenizer = Tokenizer::load(load(argv[1]).serialize());
    if (argc > 2 && std::strcmp(argv[2], "--pipe") == 0) {
      serve(tokenizer);
      return 0;
    }
    for (std::string line; std::getline(std::cin, line);) {
      for (int32_t id : tokenizer.encode(line, false, false))
        std::cout << ' ' << id;
      std::cout << '\n';
    }
  } catch (const Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
