//===- DType.cpp - names and sizes of storage types -----------------------===//
//
// Apart from the readers of files, so that the runtime links this and no reader.
//
//===----------------------------------------------------------------------===//
#include "llmc/Frontend/ModelFacts.h"

#include <cctype>
#include <iterator>

using namespace llmc;

namespace {
struct Facts {
  const char *name;
  unsigned values; // of a block
  unsigned bytes;  // of a block
};
// In the order of DType.
constexpr Facts facts[] = {{"F32", 1, 4},      {"F16", 1, 2},      {"BF16", 1, 2},     {"Q4_0", 32, 18},   {"Q4_1", 32, 20},
                           {"Q8_0", 32, 34},   {"Q5_0", 32, 22},   {"Q5_1", 32, 24},   {"Q2_K", 256, 84},  {"Q3_K", 256, 110},
                           {"Q4_K", 256, 144}, {"Q5_K", 256, 176}, {"Q6_K", 256, 210}, {"IQ4_NL", 32, 18}, {"IQ4_XS", 256, 136},
                           {"E4M3", 1, 1}};
static_assert(std::size(facts) == std::size(kDTypes) + 1);

const Facts &of(DType type) { return facts[static_cast<size_t>(type)]; }
} // namespace

const char *llmc::toString(DType type) { return of(type).name; }
std::string llmc::storageName(DType type) {
  std::string name = toString(type);
  for (char &c : name)
    c = char(std::tolower(static_cast<unsigned char>(c)));
  return name;
}
std::optional<DType> llmc::storageOf(std::string_view name) {
  for (DType type : kDTypes)
    if (name == storageName(type))
      return type;
  return {};
}
unsigned llmc::blockSize(DType type) { return of(type).values; }
uint64_t llmc::blockBytes(DType type) { return of(type).bytes; }
uint64_t llmc::storageBytes(DType type, uint64_t count) { return count / of(type).values * of(type).bytes; }
