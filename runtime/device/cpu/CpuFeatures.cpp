//===- CpuFeatures.cpp ----------------------------------------------------===//
#include "runtime/device/cpu/CpuFeatures.h"
#include "llmc/Support/Error.h"

#include <algorithm>
#include <cstdint>
#include <map>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace llmc {

namespace {

// There f32 multiply-adds are twice as fast as vdpbf16ps (measured on Emerald Rapids), and give the same bits.
constexpr char kSlowBF16[] = "slow avx512bf16";

// x86-64-v3 and x86-64-v4 with VNNI, as the psABI lists them; Armv8.2-A with FEAT_DotProd, by Linux's names.
const std::map<std::string, std::vector<std::string>> &requirements() {
  static const std::vector<std::string> v3 = {"avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "movbe"};
  static const std::map<std::string, std::vector<std::string>> table = [] {
    std::vector<std::string> v4 = v3;
    v4.insert(v4.end(), {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vnni"});
    std::vector<std::string> bf16 = v4;
    bf16.push_back("avx512bf16");
    std::vector<std::string> amx = bf16;
    amx.insert(amx.end(), {"amx-tile", "amx-bf16"});
    return std::map<std::string, std::vector<std::string>>{{"avx2", v3},     {"avx512vnni", v4},
                                                             {"avx512bf16", bf16}, {"amxbf16", amx},
                                                             {"amxbf16-emulated", bf16}, {"neon_dotprod", {"asimd", "asimddp"}}};
  }();
  return table;
}

std::string join(const std::vector<std::string> &parts) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : ", ") + part;
  return text;
}

#if defined(__x86_64__)
uint64_t readXcr0() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t(high) << 32) | low;
}

/// Linux gives tile registers (XSAVE component 18) to processes that ask for them (arch_prctl(2), ARCH_REQ_XCOMP_PERM).
bool mayUseTiles() {
  constexpr long kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

bool isIntel() {
  unsigned a, b, c, d; // "GenuineIntel" in b, d, c
  return __get_cpuid(0, &a, &b, &c, &d) && b == 0x756e6547 && d == 0x49656e69 && c == 0x6c65746e;
}
#endif

} // namespace

#if defined(__x86_64__)
std::set<std::string> detectCpuFeatures() {
  std::set<std::string> found;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d))
    return found;
  const bool osxsave = c & (1u << 27);
  const uint64_t xcr0 = osxsave ? readXcr0() : 0;
  const bool ymm = (xcr0 & 0x6) == 0x6, zmm = (xcr0 & 0xe6) == 0xe6;
  auto add = [&](const char *name, bool has) {
    if (has)
      found.insert(name);
  };
  add("movbe", c & (1u << 22));
  add("avx", ymm && (c & (1u << 28)));
  add("fma", ymm && (c & (1u << 12)));
  add("f16c", ymm && (c & (1u << 29)));
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    add("bmi1", b & (1u << 3));
    add("bmi2", b & (1u << 8));
    add("avx2", ymm && (b & (1u << 5)));
    add("avx512f", zmm && (b & (1u << 16)));
    add("avx512dq", zmm && (b & (1u << 17)));
    add("avx512cd", zmm && (b & (1u << 28)));
    add("avx512bw", zmm && (b & (1u << 30)));
    add("avx512vl", zmm && (b & (1u << 31)));
    add("avx512vnni", zmm && (c & (1u << 11)));
    const bool tiles = zmm && (xcr0 & 0x60000) == 0x60000 && (d & (1u << 24)) && mayUseTiles();
    add("amx-tile", tiles);
    add("amx-bf16", tiles && (d & (1u << 22)));
  }
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) {
    add("avx512bf16", zmm && (a & (1u << 5)));
    add(kSlowBF16, found.count("avx512bf16") && isIntel());
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d))
    add("lzcnt", c & (1u << 5));
  return found;
}
#else
std::set<std::string> detectCpuFeatures() {
  const unsigned long bits = getauxval(AT_HWCAP);
  std::set<std::string> found;
  if (bits & HWCAP_ASIMD)
    found.insert("asimd");
  if (bits & HWCAP_ASIMDDP)
    found.insert("asimddp");
  return found;
}
#endif

const std::vector<std::string> &isaNames() {
  static const std::vector<std::string> names = {"amxbf16", "avx512bf16", "avx512vnni", "avx2", "neon_dotprod"};
  return names;
}

const std::string &leastIsa() {
#if defined(__x86_64__)
  static const std::string name = "avx2";
#else
  static const std::string name = "neon_dotprod";
#endif
  return name;
}

std::string missingFeatures(const std::string &isa, const std::set<std::string> &features) {
  auto it = requirements().find(isa);
  if (it == requirements().end())
    throw Error("isa: expected one of " + join(isaNames()) + ", got '" + isa + "'");
  std::vector<std::string> missing;
  for (const std::string &feature : it->second)
    if (!features.count(feature))
      missing.push_back(feature);
  return join(missing);
}

std::string chooseIsa(const std::vector<std::string> &available, const std::string &forced,
                      const std::set<std::string> &features) {
  auto has = [&](const std::string &isa) {
    return std::find(available.begin(), available.end(), isa) != available.end();
  };
  if (!forced.empty()) {
    std::string missing = missingFeatures(forced, features);
    if (!has(forced))
      throw Error("--isa: the package has no code for " + forced + ", only " + join(available));
    if (!missing.empty())
      throw Error("--isa: this CPU cannot run " + forced + ": it lacks " + missing);
    return forced;
  }
  std::string reasons;
  for (const std::string &isa : isaNames()) {
    if (!has(isa) || (isa == "avx512bf16" && features.count(kSlowBF16) && has("avx512vnni")))
      continue;
    std::string missing = missingFeatures(isa, features);
    if (missing.empty())
      return isa;
    reasons += (reasons.empty() ? "" : "; ") + isa + " lacks " + missing;
  }
  throw Error(reasons.empty() ? "the package has no code for a known ISA (" + join(isaNames()) + "), only " +
                                    (available.empty() ? "nothing" : join(available))
                              : "this CPU cannot run the package: " + reasons);
}

} // namespace llmc
