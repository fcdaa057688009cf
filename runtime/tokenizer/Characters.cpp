#include "runtime/tokenizer/Characters.h"

#include <utf8proc.h>

using namespace llmc;

std::atomic<const uint8_t *> llmc::detail::characterPages[0x1100];

/// So (symbol, other) with Other_Alphabetic: circled and squared letters.
static bool isAlphabeticSymbol(uint32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

static bool isAsciiPunctuation(uint32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// HF tokenizers takes punctuation from Unicode 8; these have become it since.
static bool isLaterPunctuation(uint32_t c) {
  static constexpr uint32_t ranges[][2] = {
      {0x61D, 0x61D}, {0x9FD, 0x9FD}, {0xA76, 0xA76}, {0xC77, 0xC77}, {0xC84, 0xC84}, {0x1B7D, 0x1B7E}, {0x2E43,
      0x2E4F}, {0x2E52, 0x2E5D}, {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59}, {0x10F86, 0x10F89}, {0x1144B, 0x1144F},
      {0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1183B, 0x1183B}, {0x11944,
      0x11946}, {0x119E2, 0x119E2}, {0x11A3F, 0x11A46}, {0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09},
      {0x11C41, 0x11C45}, {0x11C70, 0x11C71}, {0x11EF7, 0x11EF8}, {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF}, {0x12FF1,
      0x12FF2}, {0x16E97, 0x16E9A}, {0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F}};
  for (const auto &range : ranges)
    if (c >= range[0] && c <= range[1])
      return true;
  return false;
}

static uint8_t classify(uint32_t c) {
  unsigned classes = 0;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO: classes = kLetter | kWord; break;
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME: classes = kWord; break;
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL: classes = kNumber | kWord; break;
  case UTF8PROC_CATEGORY_NO: classes = kNumber; break;
  case UTF8PROC_CATEGORY_PC: classes = kPunctuation | kWord; break;
  case UTF8PROC_CATEGORY_PD:
  case UTF8PROC_CATEGORY_PS:
  case UTF8PROC_CATEGORY_PE:
  case UTF8PROC_CATEGORY_PI:
  case UTF8PROC_CATEGORY_PF:
  case UTF8PROC_CATEGORY_PO: classes = kPunctuation; break;
  case UTF8PROC_CATEGORY_ZS:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP: classes = kSpace; break;
  default: break;
  }
  if ((c >= '\t' && c <= '\r') || c == 0x85)
    classes |= kSpace;
  if (c == 0x200C || c == 0x200D || isAlphabeticSymbol(c))
    classes |= kWord;
  if (isLaterPunctuation(c))
    classes &= ~static_cast<unsigned>(kPunctuation);
  if (isAsciiPunctuation(c) || c == 0x166D || c == 0x111C9) // these two were punctuation then
    classes |= kPunctuation;
  return static_cast<uint8_t>(classes);
}

const uint8_t *llmc::detail::makeCharacterPage(uint32_t page) {
  auto *fresh = new uint8_t[256]; // lives as long as the process, at most 1.1 MiB in all
  for (uint32_t i = 0; i < 256; ++i)
    fresh[i] = classify(page << 8 | i);
  const uint8_t *expected = nullptr;
  if (characterPages[page].compare_exchange_strong(expected, fresh, std::memory_order_acq_rel))
    return fresh;
  delete[] fresh; // another thread was faster
  return expected;
}
