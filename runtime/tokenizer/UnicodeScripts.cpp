#include "runtime/tokenizer/UnicodeScripts.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/CodePointRanges.h"
#include "runtime/tokenizer/Utf8.h"

#include <pcre2.h>

#include <algorithm>
#include <string>
#include <utility>

using namespace llmc;

/// Values of the property Script, from 1 on; PCRE2 knows which characters have them.
static constexpr std::string_view kNames =
    "Adlam Ahom Anatolian_hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_vah Batak Bengali Bhaiksuki "
    "Bopomofo Brahmi Braille Buginese Buhid Canadian_aboriginal Carian Caucasian_albanian Chakma Cham Cherokee "
    "Chorasmian Common Coptic Cuneiform Cypriot Cypro_minoan Cyrillic Deseret Devanagari Dives_akuru Dogra "
    "Duployan Egyptian_hieroglyphs Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati "
    "Gunjala_gondi Gurmukhi Han Hangul Hanifi_rohingya Hanunoo Hatran Hebrew Hiragana Imperial_aramaic "
    "Inherited Inscriptional_pahlavi Inscriptional_parthian Javanese Kaithi Kannada Katakana Kayah_li "
    "Kharoshthi Khitan_small_script Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Linear_a Linear_b Lisu "
    "Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_gondi Medefaidrin "
    "Meetei_mayek Mende_kikakui Meroitic_cursive Meroitic_hieroglyphs Miao Modi Mongolian Mro Multani Myanmar "
    "Nabataean Nandinagari New_tai_lue Newa Nko Nushu Nyiakeng_puachue_hmong Ogham Ol_chiki Old_hungarian "
    "Old_italic Old_north_arabian Old_permic Old_persian Old_sogdian Old_south_arabian Old_turkic Old_uyghur "
    "Oriya Osage Osmanya Pahawh_hmong Palmyrene Pau_cin_hau Phags_pa Phoenician Psalter_pahlavi Rejang Runic "
    "Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian Sora_sompeng Soyombo Sundanese "
    "Syloti_nagri Syriac Tagalog Tagbanwa Tai_le Tai_tham Tai_viet Takri Tamil Tangsa Tangut Telugu Thaana "
    "Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Warang_citi Yezidi Yi Zanabazar_square ";

/// Characters newer than Unicode 9, whose scripts the reference does not know (up to Unicode 14, of which PCRE2
/// 10.42 is; ascending).
static constexpr uint32_t kNewer[][2] = {
    {0x560, 0x560}, {0x588, 0x588}, {0x5EF, 0x5EF}, {0x61D, 0x61D}, {0x7FD, 0x7FF}, {0x860, 0x86A}, {0x870, 0x88E},
    {0x890, 0x891}, {0x898, 0x89F}, {0x8B5, 0x8B5}, {0x8BE, 0x8D3}, {0x9FC, 0x9FE}, {0xA76, 0xA76}, {0xAFA, 0xAFF},
    {0xB55, 0xB55}, {0xC04, 0xC04}, {0xC3C, 0xC3C}, {0xC5D, 0xC5D}, {0xC77, 0xC77}, {0xC84, 0xC84}, {0xCDD, 0xCDD},
    {0xD00, 0xD00}, {0xD04, 0xD04}, {0xD3B, 0xD3C}, {0xD81, 0xD81}, {0xE86, 0xE86}, {0xE89, 0xE89}, {0xE8C, 0xE8C},
    {0xE8E, 0xE93}, {0xE98, 0xE98}, {0xEA0, 0xEA0}, {0xEA8, 0xEA9}, {0xEAC, 0xEAC}, {0xEBA, 0xEBA}, {0x170D, 0x170D},
    {0x1715, 0x1715}, {0x171F, 0x171F}, {0x180F, 0x180F}, {0x1878, 0x1878}, {0x1ABF, 0x1ACE}, {0x1B4C, 0x1B4C},
    {0x1B7D, 0x1B7E}, {0x1C90, 0x1CBA}, {0x1CBD, 0x1CBF}, {0x1CF7, 0x1CF7}, {0x1CFA, 0x1CFA}, {0x1DF6, 0x1DFA},
    {0x20BF, 0x20C0}, {0x23FF, 0x23FF}, {0x2B97, 0x2B97}, {0x2BBA, 0x2BBC}, {0x2BC9, 0x2BC9}, {0x2BD2, 0x2BEB},
    {0x2BF0, 0x2BFF}, {0x2C2F, 0x2C2F}, {0x2C5F, 0x2C5F}, {0x2E45, 0x2E5D}, {0x312E, 0x312F}, {0x31BB, 0x31BF},
    {0x32FF, 0x32FF}, {0x4DB6, 0x4DBF}, {0x9FD6, 0x9FFF}, {0xA7AF, 0xA7AF}, {0xA7B8, 0xA7CA}, {0xA7D0, 0xA7D1},
    {0xA7D3, 0xA7D3}, {0xA7D5, 0xA7D9}, {0xA7F2, 0xA7F6}, {0xA82C, 0xA82C}, {0xA8FE, 0xA8FF}, {0xAB66, 0xAB6B},
    {0xFBC2, 0xFBC2}, {0xFD40, 0xFD4F}, {0xFDCF, 0xFDCF}, {0xFDFE, 0xFDFF}, {0x1019C, 0x1019C}, {0x1032D, 0x1032F},
    {0x10570, 0x1057A}, {0x1057C, 0x1058A}, {0x1058C, 0x10592}, {0x10594, 0x10595}, {0x10597, 0x105A1},
    {0x105A3, 0x105B1}, {0x105B3, 0x105B9}, {0x105BB, 0x105BC}, {0x10780, 0x10785}, {0x10787, 0x107B0},
    {0x107B2, 0x107BA}, {0x10A34, 0x10A35}, {0x10A48, 0x10A48}, {0x10D00, 0x10D27}, {0x10D30, 0x10D39},
    {0x10E80, 0x10EA9}, {0x10EAB, 0x10EAD}, {0x10EB0, 0x10EB1}, {0x10F00, 0x10F27}, {0x10F30, 0x10F59},
    {0x10F70, 0x10F89}, {0x10FB0, 0x10FCB}, {0x10FE0, 0x10FF6}, {0x11070, 0x11075}, {0x110C2, 0x110C2},
    {0x110CD, 0x110CD}, {0x11144, 0x11147}, {0x111CE, 0x111CF}, {0x1133B, 0x1133B}, {0x1145A, 0x1145A},
    {0x1145E, 0x11461}, {0x116B8, 0x116B9}, {0x1171A, 0x1171A}, {0x11740, 0x11746}, {0x11800, 0x1183B},
    {0x11900, 0x11906}, {0x11909, 0x11909}, {0x1190C, 0x11913}, {0x11915, 0x11916}, {0x11918, 0x11935},
    {0x11937, 0x11938}, {0x1193B, 0x11946}, {0x11950, 0x11959}, {0x119A0, 0x119A7}, {0x119AA, 0x119D7},
    {0x119DA, 0x119E4}, {0x11A00, 0x11A47}, {0x11A50, 0x11AA2}, {0x11AB0, 0x11ABF}, {0x11D00, 0x11D06},
    {0x11D08, 0x11D09}, {0x11D0B, 0x11D36}, {0x11D3A, 0x11D3A}, {0x11D3C, 0x11D3D}, {0x11D3F, 0x11D47},
    {0x11D50, 0x11D59}, {0x11D60, 0x11D65}, {0x11D67, 0x11D68}, {0x11D6A, 0x11D8E}, {0x11D90, 0x11D91},
    {0x11D93, 0x11D98}, {0x11DA0, 0x11DA9}, {0x11EE0, 0x11EF8}, {0x11FB0, 0x11FB0}, {0x11FC0, 0x11FF1},
    {0x11FFF, 0x11FFF}, {0x12F90, 0x12FF2}, {0x13430, 0x13438}, {0x16A70, 0x16ABE}, {0x16AC0, 0x16AC9},
    {0x16E40, 0x16E9A}, {0x16F45, 0x16F4A}, {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87}, {0x16FE1, 0x16FE4},
    {0x16FF0, 0x16FF1}, {0x187ED, 0x187F7}, {0x18AF3, 0x18CD5}, {0x18D00, 0x18D08}, {0x1AFF0, 0x1AFF3},
    {0x1AFF5, 0x1AFFB}, {0x1AFFD, 0x1AFFE}, {0x1B002, 0x1B122}, {0x1B150, 0x1B152}, {0x1B164, 0x1B167},
    {0x1B170, 0x1B2FB}, {0x1CF00, 0x1CF2D}, {0x1CF30, 0x1CF46}, {0x1CF50, 0x1CFC3}, {0x1D1E9, 0x1D1EA},
    {0x1D2E0, 0x1D2F3}, {0x1D372, 0x1D378}, {0x1DF00, 0x1DF1E}, {0x1E100, 0x1E12C}, {0x1E130, 0x1E13D},
    {0x1E140, 0x1E149}, {0x1E14E, 0x1E14F}, {0x1E290, 0x1E2AE}, {0x1E2C0, 0x1E2F9}, {0x1E2FF, 0x1E2FF},
    {0x1E7E0, 0x1E7E6}, {0x1E7E8, 0x1E7EB}, {0x1E7ED, 0x1E7EE}, {0x1E7F0, 0x1E7FE}, {0x1E94B, 0x1E94B},
    {0x1EC71, 0x1ECB4}, {0x1ED01, 0x1ED3D}, {0x1F10D, 0x1F10F}, {0x1F12F, 0x1F12F}, {0x1F16C, 0x1F16F},
    {0x1F1AD, 0x1F1AD}, {0x1F260, 0x1F265}, {0x1F6D3, 0x1F6D7}, {0x1F6DD, 0x1F6DF}, {0x1F6F7, 0x1F6FC},
    {0x1F7D5, 0x1F7D8}, {0x1F7E0, 0x1F7EB}, {0x1F7F0, 0x1F7F0}, {0x1F8B0, 0x1F8B1}, {0x1F900, 0x1F90F},
    {0x1F91F, 0x1F91F}, {0x1F928, 0x1F92F}, {0x1F931, 0x1F932}, {0x1F93F, 0x1F93F}, {0x1F94C, 0x1F94F},
    {0x1F95F, 0x1F97F}, {0x1F992, 0x1F9BF}, {0x1F9C1, 0x1FA53}, {0x1FA60, 0x1FA6D}, {0x1FA70, 0x1FA74},
    {0x1FA78, 0x1FA7C}, {0x1FA80, 0x1FA86}, {0x1FA90, 0x1FAAC}, {0x1FAB0, 0x1FABA}, {0x1FAC0, 0x1FAC5},
    {0x1FAD0, 0x1FAD9}, {0x1FAE0, 0x1FAE7}, {0x1FAF0, 0x1FAF6}, {0x1FB00, 0x1FB92}, {0x1FB94, 0x1FBCA},
    {0x1FBF0, 0x1FBF9}, {0x2A6D7, 0x2A6DF}, {0x2B735, 0x2B738}, {0x2CEB0, 0x2EBE0}, {0x30000, 0x3134A},
};

struct UnicodeScripts::Impl {
  struct FreeCode {
    void operator()(pcre2_code *code) const { pcre2_code_free(code); }
  };
  struct FreeData {
    void operator()(pcre2_match_data *data) const { pcre2_match_data_free(data); }
  };
  std::vector<std::unique_ptr<pcre2_code, FreeCode>> codes; // by value; null where PCRE2 is older than the name
  std::unique_ptr<pcre2_match_data, FreeData> data{pcre2_match_data_create(1, nullptr)};
  std::vector<std::vector<uint8_t>> pages = std::vector<std::vector<uint8_t>>(0x1100); // by code point / 256
  uint8_t han = 0, hiragana = 0, katakana = 0;

  bool isHan(uint8_t script) const { return script && (script == han || script == hiragana || script == katakana); }
};

UnicodeScripts::UnicodeScripts() : impl(std::make_unique<Impl>()) {
  impl->codes.emplace_back();
  for (size_t begin = 0; begin < kNames.size();) {
    size_t end = kNames.find(' ', begin);
    const std::string name(kNames.substr(begin, end - begin));
    const std::string pattern = "\\p{sc:" + name + "}";
    int error = 0;
    PCRE2_SIZE offset = 0;
    for (auto [known, value] : {std::pair("Han", &impl->han), {"Hiragana", &impl->hiragana}, {"Katakana", &impl->katakana}})
      if (name == known)
        *value = static_cast<uint8_t>(impl->codes.size());
    impl->codes.emplace_back(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                           PCRE2_UTF | PCRE2_ANCHORED, &error, &offset, nullptr));
    begin = end + 1;
  }
  if (!impl->data)
    throw Error("out of memory for the scripts of characters");
}

UnicodeScripts::~UnicodeScripts() = default;

std::vector<uint8_t> UnicodeScripts::makePage(uint32_t page) const {
  std::vector<uint8_t> scripts(256);
  uint8_t likely = 0; // neighbours mostly share a script
  for (uint32_t i = 0; i < 256; ++i) {
    std::string bytes;
    utf8::append(bytes, page << 8 | i);
    auto has = [&](size_t script) {
      return impl->codes[script] && pcre2_match(impl->codes[script].get(), reinterpret_cast<PCRE2_SPTR>(bytes.data()),
                                                bytes.size(), 0, PCRE2_NO_UTF_CHECK, impl->data.get(), nullptr) >= 0;
    };
    if (!likely || !has(likely)) {
      likely = 0;
      for (size_t script = 1; script < impl->codes.size() && !likely; ++script)
        likely = has(script) ? static_cast<uint8_t>(script) : 0;
    }
    scripts[i] = isAmong(kNewer, page << 8 | i) ? 0 : impl->isHan(likely) ? impl->han : likely;
  }
  return scripts;
}

uint8_t UnicodeScripts::of(uint32_t c) const {
  if (c == ' ' || (c >= 0xD800 && c <= 0xDFFF))
    return 0;
  std::vector<uint8_t> &page = impl->pages[c >> 8];
  if (page.empty())
    page = makePage(c >> 8);
  return page[c & 0xFF];
}

std::vector<size_t> UnicodeScripts::borders(std::string_view text) const {
  std::lock_guard lock(mutex);
  std::vector<size_t> out;
  int last = -1;
  for (size_t i = 0; i < text.size();) {
    utf8::Decoded d = utf8::decode(text.substr(i));
    if (int script = d.codePoint == 0x30FC ? impl->han : of(d.codePoint); script) {
      if (script != last)
        out.push_back(i);
      last = script;
    }
    i += d.length;
  }
  return out;
}
