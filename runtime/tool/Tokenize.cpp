//===- Tokenize.cpp - text to token ids and back --------------------------===//
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"
#include "runtime/tokenizer/Utf8.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/Model.h"
#include "runtime/tool/Numbers.h"

#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace llmc {

namespace {

using Json = nlohmann::ordered_json;

struct TokenizeFlags {
  LoadFlags load;
  std::string text, file;
  bool special = false, bos = false, noBos = false, eos = false, noEos = false, count = false, pieces = false, json = false;
};

struct DetokenizeFlags {
  LoadFlags load;
  std::vector<std::string> ids;
  bool skipSpecial = false, json = false;
};

std::string readStandardInput() { return {std::istreambuf_iterator<char>(std::cin), {}}; }

void print(const std::string &text) { std::fwrite(text.data(), 1, text.size(), stdout); }

/// The bytes of a token; those that are no whole characters become U+FFFD.
std::string piece(const Tokenizer &tokenizer, int32_t id) { return utf8::sanitize(tokenizer.tokenBytes(id)); }

int tokenize(const TokenizeFlags &flags, const std::string &name, bool textGiven) {
  const std::string text = !flags.file.empty() ? readTextFile(flags.file)
                           : textGiven && flags.text != "-" ? flags.text : readStandardInput();
  Model model(flags.load, name);
  model.requireTokenizer();
  const Tokenizer &tokenizer = model.tokenizer();
  if (flags.bos && tokenizer.bosId() < 0)
    throw Error("--bos: the model has no beginning-of-sequence token");
  if (flags.eos && tokenizer.eosIds().empty())
    throw Error("--eos: the model has no end-of-sequence token");
  std::vector<int32_t> ids = tokenizer.encode(text, flags.special, flags.bos || (tokenizer.addsBos() && !flags.noBos),
                                              flags.eos || (tokenizer.addsEos() && !flags.noEos));
  if (flags.count) {
    print(flags.json ? Json({{"count", ids.size()}}).dump() + "\n" : std::to_string(ids.size()) + "\n");
  } else if (flags.json) {
    Json j;
    j["ids"] = ids;
    for (size_t i = 0; flags.pieces && i < ids.size(); ++i)
      j["pieces"].push_back(piece(tokenizer, ids[i]));
    print(j.dump() + "\n");
  } else if (flags.pieces) {
    for (int32_t id : ids)
      print(std::to_string(id) + "\t" + Json(piece(tokenizer, id)).dump() + "\n");
  } else {
    for (size_t i = 0; i < ids.size(); ++i)
      print((i ? " " : "") + std::to_string(ids[i]));
    print("\n");
  }
  return 0;
}

// Arguments or a text, with white space, commas and brackets between the numbers.
std::vector<int32_t> readIds(const std::vector<std::string> &words, const Tokenizer &tokenizer) {
  std::vector<int32_t> ids;
  const std::string between = " \t\r\n,[]";
  for (const std::string &word : words)
    for (size_t at = word.find_first_not_of(between); at != std::string::npos;) {
      const size_t end = std::min(word.find_first_of(between, at), word.size());
      const std::string number = word.substr(at, end - at);
      int64_t id = 0;
      if (!parseInteger(number, id) || id < 0 || uint64_t(id) >= tokenizer.size())
        throw Error("IDS: expected token ids below " + std::to_string(tokenizer.size()) + ", got '" + number + "'");
      ids.push_back(int32_t(id));
      at = word.find_first_not_of(between, end);
    }
  return ids;
}

int detokenize(const DetokenizeFlags &flags, const std::string &name) {
  Model model(flags.load, name);
  model.requireTokenizer();
  const bool fromInput = flags.ids.empty() || (flags.ids.size() == 1 && flags.ids[0] == "-");
  const std::vector<int32_t> ids = readIds(fromInput ? std::vector{readStandardInput()} : flags.ids, model.tokenizer());
  const std::string text = model.tokenizer().decode(ids, flags.skipSpecial);
  print(flags.json ? Json({{"text", text}}).dump() + "\n" : text + "\n");
  return 0;
}

void addPackageFlag(CLI::App &app, LoadFlags &flags) {
  app.add_option("--package", flags.package, "load this package instead of the executable's own")->group("");
}

} // namespace

Command addTokenize(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App *sub = app.add_subcommand("tokenize", "print the token ids of a text");
  auto *text = sub->add_option("TEXT", flags->text, "the text; - or nothing reads it from standard input");
  sub->add_option("--file", flags->file, "read the text from here")->type_name("FILE")->excludes(text);
  sub->add_flag("--pieces", flags->pieces, "one token a line: its id and its text as a JSON string");
  sub->add_flag("--count", flags->count, "print only how many there are");
  sub->add_flag("--json", flags->json, "print {\"ids\": [...]} (with --pieces also \"pieces\", with --count {\"count\": N})");
  sub->add_flag("--special", flags->special, "what looks like a control token is one (default: it is text)");
  auto *bos = sub->add_flag("--bos", flags->bos, "begin with the beginning-of-sequence token (default: if the model's tokenizer does)");
  sub->add_flag("--no-bos", flags->noBos, "do not")->excludes(bos);
  auto *eos = sub->add_flag("--eos", flags->eos, "end with the end-of-sequence token (default: if the model's tokenizer does)");
  sub->add_flag("--no-eos", flags->noEos, "do not")->excludes(eos);
  addPackageFlag(*sub, flags->load);
  sub->footer("Examples:\n  " + name + " tokenize \"Hello, world\"\n  " + name + " tokenize --file book.txt --count\n  " + name +
              " tokenize --special --pieces \"<|im_start|>user\"");
  return {sub, [flags, name, text] { return tokenize(*flags, name, text->count() > 0); }};
}

Command addDetokenize(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<DetokenizeFlags>();
  CLI::App *sub = app.add_subcommand("detokenize", "print the text of token ids");
  sub->add_option("IDS", flags->ids, "the ids; - or nothing reads them from standard input (JSON lists are fine)");
  sub->add_flag("--skip-special", flags->skipSpecial, "leave control tokens out");
  sub->add_flag("--json", flags->json, "print {\"text\": ...}");
  addPackageFlag(*sub, flags->load);
  sub->footer("Example:\n  " + name + " detokenize 19556 905\n  " + name + " tokenize hello | " + name + " detokenize");
  return {sub, [flags, name] { return detokenize(*flags, name); }};
}

} // namespace llmc
