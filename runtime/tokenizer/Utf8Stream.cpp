#include "runtime/tokenizer/Utf8Stream.h"

#include "runtime/tokenizer/Utf8.h"

using namespace llmc;

std::string Utf8Stream::feed(std::string_view bytes) {
  held.append(bytes);
  std::string out;
  std::string_view rest = held;
  while (!rest.empty()) {
    size_t good = utf8::firstInvalid(rest);
    out.append(rest.substr(0, good));
    rest.remove_prefix(good);
    if (rest.empty())
      break;
    utf8::Decoded d = utf8::decode(rest);
    if (d.status == utf8::Status::Incomplete)
      break;
    utf8::append(out, utf8::kReplacement);
    rest.remove_prefix(d.length);
  }
  held = std::string(rest);
  return out;
}

std::string Utf8Stream::flush() {
  std::string out;
  if (!held.empty())
    utf8::append(out, utf8::kReplacement);
  held.clear();
  return out;
}
