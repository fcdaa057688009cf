//===- JsonFuzzer.cpp - any JSON, and every way to look at it -------------===//
#include "llmc/Support/Json.h"

#include <cstddef>

using namespace llmc;

/// Each look either gives a value or throws Error.
static void look(const JsonView &view) {
  auto attempt = [&](auto get) {
    try {
      get();
    } catch (const Error &) {
    }
  };
  attempt([&] { view.string(); });
  attempt([&] { view.boolean(); });
  attempt([&] { view.number(); });
  attempt([&] { view.integer(); });
  attempt([&] { view.find("a"); });
  if (view.isArray())
    for (size_t i = 0; i < view.array().size(); ++i)
      look(view.at(i));
  if (view.isObject())
    for (const JsonMember &member : view.object())
      look(view.at(member));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    JsonDocument document = JsonDocument::parse({reinterpret_cast<const char *>(data), size}, "fuzz.json");
    look(document.root());
  } catch (const Error &) {
  }
  return 0;
}
