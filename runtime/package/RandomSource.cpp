//===- RandomSource.cpp ---------------------------------------------------===//
#include "runtime/package/RandomSource.h"
#include "llmc/Support/Error.h"

#include <algorithm>
#include <cstring>

namespace llmc {

namespace {

// Above any real weight, and small enough that no product of two overflows.
constexpr uint64_t kMostRows = uint64_t(1) << 31;

} // namespace

Manifest::Recipe recipeOf(const PackSpec &spec) {
  Manifest::Recipe recipe{storageName(spec.storage), spec.vector, spec.interleave, {}, spec.value};
  for (const PackSource &source : spec.sources)
    recipe.sources.push_back({source.tensor, source.row, source.rows, source.deinterleave});
  return recipe;
}

PackSpec specOf(const Manifest::Weight &weight, const std::string &where) {
  auto fail = [&](const std::string &message) { throw Error(where + ": weight " + weight.name + ": " + message); };
  if (!weight.recipe)
    fail("expected a recipe, got none");
  const Manifest::Recipe &recipe = *weight.recipe;
  PackSpec spec;
  spec.name = weight.name;
  const std::optional<uint32_t> layout = layoutOf(weight.layout);
  if (!layout)
    fail("expected a known layout, got " + weight.layout);
  spec.layout = llmc_layout(*layout);
  const std::optional<DType> storage = storageOf(recipe.storage);
  if (!storage)
    fail("expected a known storage, got " + recipe.storage);
  spec.storage = *storage;
  if (weight.rows == 0 || weight.cols == 0 || weight.rows > kMostRows || weight.cols > kMostRows)
    fail("expected 1 to " + std::to_string(kMostRows) + " rows and columns, got " + std::to_string(weight.rows) + " x " +
         std::to_string(weight.cols));
  spec.rows = weight.rows;
  spec.cols = weight.cols;
  spec.vector = recipe.vector;
  spec.interleave = recipe.interleave;
  spec.value = recipe.value;
  for (const Manifest::Recipe::Source &source : recipe.sources)
    spec.sources.push_back({0, 0, source.rows, source.deinterleave, source.tensor, source.row});
  if (spec.bytes() != weight.bytes)
    fail("expected " + std::to_string(spec.bytes()) + " packed bytes, got " + std::to_string(weight.bytes));
  return spec;
}

RandomSource::RandomSource(const Manifest &manifest, const std::string &where)
    : bytes_(manifest.weightsOrigin.bytes), seed_(manifest.weightsOrigin.seed) {
  for (const Manifest::Weight &weight : manifest.weights) {
    PackSpec spec = specOf(weight, where);
    try {
      entries_.push_back({weight.offset, weight.offset + weight.bytes, WeightPacker(spec, RandomWeights{seed_})});
    } catch (const Error &error) {
      throw Error(where + ": " + error.what());
    }
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry &a, const Entry &b) { return a.offset < b.offset; });
  for (size_t i = 1; i < entries_.size(); ++i)
    if (entries_[i].offset < entries_[i - 1].end)
      throw Error(where + ": weight " + entries_[i].packer.spec().name + ": expected an offset from " +
                  std::to_string(entries_[i - 1].end) + " on, got " + std::to_string(entries_[i].offset));
}

void RandomSource::readWeight(const Entry &entry, uint64_t begin, uint64_t end, uint8_t *to) const {
  const uint64_t part = entry.packer.unitBytes();
  thread_local std::vector<uint8_t> whole;
  while (begin < end) {
    const uint64_t unit = begin / part, skip = begin % part, count = std::min(end - begin, part - skip);
    if (count == part) {
      entry.packer.pack(unit, to);
    } else { // a cut part
      whole.resize(part);
      entry.packer.pack(unit, whole.data());
      std::memcpy(to, whole.data() + skip, count);
    }
    begin += count;
    to += count;
  }
}

void RandomSource::read(uint64_t offset, void *to, uint64_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset)
    throw Error(describe() + " weights: expected a range inside " + std::to_string(bytes_) + " bytes, got " +
                std::to_string(bytes) + " at " + std::to_string(offset));
  auto *out = static_cast<uint8_t *>(to);
  uint64_t at = offset, end = offset + bytes;
  auto entry = std::partition_point(entries_.begin(), entries_.end(), [&](const Entry &e) { return e.end <= offset; });
  for (; entry != entries_.end() && entry->offset < end; ++entry) {
    if (entry->offset > at) { // a gap
      std::memset(out, 0, entry->offset - at);
      out += entry->offset - at;
      at = entry->offset;
    }
    const uint64_t stop = std::min(entry->end, end);
    readWeight(*entry, at - entry->offset, stop - entry->offset, out);
    out += stop - at;
    at = stop;
  }
  std::memset(out, 0, end - at);
}

std::string RandomSource::describe() const { return "random, seed " + std::to_string(seed_); }

} // namespace llmc
