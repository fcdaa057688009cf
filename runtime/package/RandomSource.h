//===- RandomSource.h - weights made from their recipe ----------*- C++ -*-===//
#ifndef LLMC_RUNTIME_PACKAGE_RANDOMSOURCE_H
#define LLMC_RUNTIME_PACKAGE_RANDOMSOURCE_H

#include "llmc/Target/Packing.h"
#include "runtime/package/WeightSource.h"

#include <vector>

namespace llmc {

/// Packs what is asked for when it is asked for; holds nothing but the recipes.
class RandomSource final : public WeightSource {
public:
  /// Throws Error naming the weight whose recipe does not give its bytes.
  RandomSource(const Manifest &manifest, const std::string &where);

  uint64_t size() const override { return bytes_; }
  void read(uint64_t offset, void *to, uint64_t bytes) const override;
  std::string describe() const override;

private:
  struct Entry {
    uint64_t offset, end;
    WeightPacker packer;
  };
  void readWeight(const Entry &entry, uint64_t begin, uint64_t end, uint8_t *to) const;

  uint64_t bytes_, seed_;
  std::vector<Entry> entries_; // by offset, apart from each other
};

/// The recipe that packs `spec`, and back. `where` names the package in the Error for an unknown storage or layout.
Manifest::Recipe recipeOf(const PackSpec &spec);
PackSpec specOf(const Manifest::Weight &weight, const std::string &where);

} // namespace llmc

#endif // LLMC_RUNTIME_PACKAGE_RANDOMSOURCE_H
