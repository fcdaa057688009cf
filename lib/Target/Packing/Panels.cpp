//===- Panels.cpp - stored blocks to the records of CodedForm.h -----------===//
//
// Block by block over the 16 rows, so that a record is complete before the next one starts.
//
//===----------------------------------------------------------------------===//
#include "lib/Target/Packing/Panels.h"

#include "llmc/Frontend/CodedBlock.h"

#include <cstring>

using namespace llmc;

namespace {
constexpr uint64_t kLanes = kPanelRows;

inline uint32_t load32(const uint8_t *at) {
  uint32_t value;
  std::memcpy(&value, at, 4);
  return value;
}
inline void store16(uint8_t *at, uint16_t value) { std::memcpy(at, &value, 2); }
inline void store32(uint8_t *at, uint32_t value) { std::memcpy(at, &value, 4); }

/// Bits [shift, shift + bits) of 32 codes of one row, four codes at a time.
template <unsigned bits, unsigned shift> void packPlane(const uint8_t *__restrict codes, uint64_t lane, uint8_t *__restrict chunks) {
  constexpr uint32_t mask = ((1u << bits) - 1) * 0x01010101u;
  for (unsigned p = 0; p < bits; ++p) {
    uint32_t word = 0;
    for (unsigned j = 0; j < 8 / bits; ++j)
      word |= (load32(codes + 4 * (p * (8 / bits) + j)) >> shift & mask) << (bits * j);
    store32(chunks + 64 * p + 4 * lane, word);
  }
}

template <CodedForm form> void packFields(const uint8_t *__restrict fields, uint64_t lane, uint8_t *__restrict record) {
  constexpr unsigned count = form.fields();
  uint8_t *low = record + form.fieldOffset() + lane, *high = record + form.highFieldOffset() + lane;
  if constexpr (form.scaleBits == 8) {
    for (unsigned i = 0; i < count; ++i)
      low[kLanes * i] = fields[i];
    return;
  }
  for (unsigned i = 0; i < count / 2; ++i)
    low[kLanes * i] = uint8_t((fields[2 * i] & 15) | fields[2 * i + 1] << 4);
  if constexpr (form.scaleBits == 6)
    for (unsigned i = 0; i < count / 4; ++i, fields += 4)
      high[kLanes * i] = uint8_t(fields[0] >> 4 | fields[1] >> 4 << 2 | fields[2] >> 4 << 4 | fields[3] >> 4 << 6);
}

/// A block into its lane; `group`: its first 32 k in the record.
template <CodedForm form> void packBlock(const CodedBlock &block, unsigned group, uint64_t lane, uint8_t *record) {
  store16(record + 32 * group + 2 * lane, block.d);
  if constexpr (form.minimum)
    store16(record + form.minimumOffset() + 32 * group + 2 * lane, block.m);
  if constexpr (form.scaleBits)
    packFields<form>(block.fields, lane, record);
  uint8_t *chunks = record + form.codeOffset() + group * form.groupBytes();
  for (unsigned i = 0; i < blockValues(form) / 32; ++i, chunks += form.groupBytes()) {
    packPlane<form.lowBits, 0>(block.codes + 32 * i, lane, chunks);
    if constexpr (form.highBits)
      packPlane<form.highBits, form.lowBits>(block.codes + 32 * i, lane, chunks + form.highPlaneOffset());
  }
}

template <DType type> void packCoded(const uint8_t *rows, uint64_t count, uint64_t rowBytes, uint8_t *panel) {
  constexpr CodedForm form = codedForm(type);
  constexpr unsigned perRecord = form.recordK / blockValues(form);
  const uint64_t bytes = blockBytes(type);
  CodedBlock block;
  for (uint64_t i = 0; i < rowBytes / bytes; ++i)
    for (uint64_t lane = 0; lane < count; ++lane) {
      readBlock<type>(rows + lane * rowBytes + i * bytes, block);
      packBlock<form>(block, unsigned(i % perRecord), lane, panel + i / perRecord * form.recordBytes());
    }
}

/// Plain values; `group` neighbours of a row stay together (2 for bf16 and e4m3, where a last single one has a zero beside it).
template <class T, unsigned group> void packPlain(const uint8_t *row, uint64_t rowBytes, uint64_t lane, uint8_t *panel) {
  uint64_t cols = rowBytes / sizeof(T);
  for (uint64_t k = 0; k < cols; ++k)
    std::memcpy(panel + (k / group * kLanes * group + lane * group + k % group) * sizeof(T), row + k * sizeof(T), sizeof(T));
}
} // namespace

void llmc::fillPanel(llmc_layout layout, std::span<uint8_t> panel) {
  std::memset(panel.data(), 0, panel.size());
  const CodedForm form = codedForm(layout);
  if (form.zero == 0)
    return;
  // All chunks of a plane hold the same byte: the zero code's bits, repeated.
  auto repeated = [](unsigned part, unsigned bits) { return int(part & ((1u << bits) - 1)) * (255 / ((1 << bits) - 1)); };
  const uint64_t low = form.highPlaneOffset();
  for (uint64_t at = 0; at < panel.size(); at += form.recordBytes())
    for (uint64_t group = at + form.codeOffset(); group < at + form.recordBytes(); group += form.groupBytes()) {
      std::memset(panel.data() + group, repeated(form.zero, form.lowBits), low);
      if (form.highBits)
        std::memset(panel.data() + group + low, repeated(unsigned(form.zero) >> form.lowBits, form.highBits),
                    form.groupBytes() - low);
    }
}

void llmc::packPanel(DType storage, const uint8_t *rows, uint64_t count, uint64_t rowBytes, std::span<uint8_t> panel) {
  withBlockType(storage, [&](auto type) { packCoded<type.value>(rows, count, rowBytes, panel.data()); });
  if (blockSize(storage) != 1)
    return;
  for (uint64_t lane = 0; lane < count; ++lane) {
    const uint8_t *row = rows + lane * rowBytes;
    if (storage == DType::F32)
      packPlain<uint32_t, 1>(row, rowBytes, lane, panel.data());
    else if (storage == DType::E4M3)
      packPlain<uint8_t, 2>(row, rowBytes, lane, panel.data());
    else if (storage == DType::F16)
      packPlain<uint16_t, 1>(row, rowBytes, lane, panel.data());
    else
      packPlain<uint16_t, 2>(row, rowBytes, lane, panel.data());
  }
}
