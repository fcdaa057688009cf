//===- PtxasOutput.cpp - the lines of ptxas -v ----------------------------===//
//
//   ptxas info    : Compiling entry function 'k' for 'sm_90a'
//   ptxas info    : Function properties for k
//       336 bytes stack frame, 336 bytes spill stores, 336 bytes spill loads
//   ptxas info    : Used 24 registers, used 0 barriers, 336 bytes cumulative stack size
//   ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ...
//   ptxas k.ptx, line 89; fatal   : Parsing error near ',': syntax error
//
// Remarks come as "info" and do not change the exit code: that is why the lines are read.
//
//===----------------------------------------------------------------------===//
#include "llmc/Target/Cubin.h"

#include <algorithm>
#include <cctype>
#include <charconv>

using namespace llmc;

static std::string_view trimmed(std::string_view line) {
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())))
    line.remove_prefix(1);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())))
    line.remove_suffix(1);
  return line;
}

/// The number right before `what` in the line; 0 where `what` is not there.
static uint64_t numberBefore(std::string_view line, std::string_view what) {
  size_t end = line.find(what);
  if (end == std::string_view::npos)
    return 0;
  while (end > 0 && line[end - 1] == ' ')
    --end;
  size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])))
    --begin;
  uint64_t value = 0;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

/// "(C75" and two digits.
static bool isPerformanceRemark(std::string_view line) {
  size_t at = line.find("(C75");
  return at != std::string_view::npos && at + 6 < line.size() && std::isdigit(static_cast<unsigned char>(line[at + 4])) &&
         std::isdigit(static_cast<unsigned char>(line[at + 5])) && line[at + 6] == ')';
}

/// Without "ptxas info    : ", which says nothing.
static std::string_view message(std::string_view line) {
  size_t colon = line.find(" : ");
  return line.starts_with("ptxas info") && colon != std::string_view::npos ? trimmed(line.substr(colon + 3)) : line;
}

PtxasReport llmc::parsePtxasOutput(std::string_view output) {
  PtxasReport report;
  while (!output.empty()) {
    size_t end = std::min(output.find('\n'), output.size());
    std::string_view line = trimmed(output.substr(0, end));
    output.remove_prefix(std::min(end + 1, output.size()));
    report.registers = std::max(report.registers, uint32_t(numberBefore(line, "registers")));
    bool slow = numberBefore(line, "bytes stack frame") || numberBefore(line, "bytes spill stores") ||
                numberBefore(line, "bytes spill loads") || numberBefore(line, "bytes cumulative stack size");
    bool error = line.find("fatal") != std::string_view::npos || line.find("error") != std::string_view::npos;
    if (slow || isPerformanceRemark(line) || (error && line.starts_with("ptxas")))
      report.complaints.emplace_back(message(line));
  }
  return report;
}
