//===- Profile.h - measured times of launches, as a file --------*- C++ -*-===//
//
// What EXE bench --profile writes and llmc explain --profile reads: JSON (docs/explain.md).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_PACKAGE_PROFILE_H
#define LLMC_RUNTIME_PACKAGE_PROFILE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

struct Profile {
  static constexpr uint32_t kFormat = 1;

  struct Launch {
    std::string op, kernel; // "blk.3.attn_output", the variant's name
    int32_t layer = -1;
    double seconds = 0; // median of the runs
  };
  /// Of `sequences` sequences with `tokens` new ones each, `context` in the cache afterwards.
  struct Step {
    uint64_t sequences = 0, tokens = 0, context = 0, runs = 0;
    double seconds = 0; // of the whole step without timing its launches, median
    std::vector<Launch> launches; // in the program's order
  };

  std::string version;          // of llmc
  std::string model;            // its name; may be empty
  uint64_t weightsId = 0;       // Manifest::weightsId() of the package
  std::string isa;              // of the module that ran
  std::string device, detail;   // "cpu", "NVIDIA H200"
  uint64_t threads = 0;
  std::vector<Step> steps;

  std::string serialize() const;
  /// Throws Error naming the key; `where` names the file in messages.
  static Profile parse(std::string_view json, const std::string &where);
};

} // namespace llmc

#endif // LLMC_RUNTIME_PACKAGE_PROFILE_H
