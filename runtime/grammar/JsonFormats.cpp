//===- JsonFormats.cpp - formats of strings -------------------------------===//
//
// Fewer texts than the standards allow, where these allow what checkers disagree about:
// no leap seconds, IPv6 written out, web addresses of plain characters.
//
//===----------------------------------------------------------------------===//
#include "runtime/grammar/JsonSchemaReader.h"

namespace llmc {

#define LLMC_DATE "[1-9]\\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))"
#define LLMC_TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define LLMC_HOST "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\\.[a-z]([a-z0-9-]{0,20}[a-z0-9])?){1,3}"

static constexpr std::pair<std::string_view, const char *> kFormats[] = {
    {"date", "^" LLMC_DATE "$"},
    {"time", "^" LLMC_TIME "$"},
    {"date-time", "^" LLMC_DATE "T" LLMC_TIME "$"},
    {"duration", "^P(\\d{1,4}W|\\d{1,4}D(T\\d{1,4}H)?|\\d{1,4}Y(\\d{1,2}M(\\d{1,2}D)?)?|T(\\d{1,4}H(\\d{1,2}M(\\d{1,2}S)?)?|\\d{1,4}M(\\d{1,2}S)?|\\d{1,4}S))$"},
    {"email", "^[a-z0-9_+-]{1,30}(\\.[a-z0-9_+-]{1,30}){0,2}@" LLMC_HOST "$"},
    {"hostname", "^" LLMC_HOST "$"},
    {"ipv4", "^((25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)$"},
    {"ipv6", "^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$"},
    {"uri", "^https?://" LLMC_HOST "(/[A-Za-z0-9._~-]{0,40}){0,8}$"},
    {"uuid", "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
};

#undef LLMC_DATE
#undef LLMC_TIME
#undef LLMC_HOST

const char *jsonFormatPattern(std::string_view name) {
  for (auto [known, pattern] : kFormats)
    if (known == name)
      return pattern;
  return nullptr;
}

std::string jsonFormatNames() {
  std::string names;
  for (auto [name, pattern] : kFormats)
    names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

} // namespace llmc
