//===- Flags.cpp ----------------------------------------------------------===//
#include "runtime/tool/Flags.h"
#include "runtime/chat/ToolFormat.h"
#include "runtime/tool/Numbers.h"

#include <algorithm>
#include <cstdlib>

namespace llmc {

namespace {

[[noreturn]] void wrong(const std::string &flag, const std::string &expected, const std::string &got) {
  throw CLI::ValidationError(flag, "expected " + expected + ", got '" + got + "'");
}

std::string name(const std::string &flag) { return flag.substr(flag.rfind(',') + 1); }

} // namespace

void addCount(CLI::App &app, const std::string &flag, uint64_t &value, const std::string &help, uint64_t least,
              uint64_t most) {
  app.add_option_function<std::string>(
         flag,
         [=, &value](const std::string &text) {
           if (!parseCount(text, value) || value < least || value > most)
             wrong(name(flag),
                   "a whole number from " + std::to_string(least) +
                       (most == UINT64_MAX ? " on" : " to " + std::to_string(most)),
                   text);
         },
         help)
      ->type_name("N");
}

void addCounts(CLI::App &app, const std::string &flag, std::vector<uint64_t> &values, const std::string &help, uint64_t least,
               uint64_t most) {
  app.add_option_function<std::string>(
         flag,
         [=, &values](const std::string &text) {
           values.clear();
           for (size_t at = 0; at <= text.size();) {
             const size_t comma = std::min(text.find(',', at), text.size());
             uint64_t value = 0;
             if (!parseCount(text.substr(at, comma - at), value) || value < least || value > most)
               wrong(name(flag), "whole numbers from " + std::to_string(least) + " to " + std::to_string(most) +
                                     " with commas between them", text);
             values.push_back(value);
             at = comma + 1;
           }
         },
         help)
      ->type_name("N,N,...");
}

void addInteger(CLI::App &app, const std::string &flag, int32_t &value, const std::string &help) {
  app.add_option_function<std::string>(
         flag,
         [=, &value](const std::string &text) {
           int64_t number = 0;
           if (!parseInteger(text, number))
             wrong(name(flag), "a whole number", text);
           value = int32_t(std::clamp<int64_t>(number, INT32_MIN, INT32_MAX));
         },
         help)
      ->type_name("N");
}

void addReal(CLI::App &app, const std::string &flag, float &value, const std::string &help, double least, double most) {
  app.add_option_function<std::string>(
         flag,
         [=, &value](const std::string &text) {
           double number = 0;
           if (!parseReal(text, number) || !(number >= least && number <= most)) {
             char range[64];
             std::snprintf(range, sizeof range, "a number from %g to %g", least, most);
             wrong(name(flag), range, text);
           }
           value = float(number);
         },
         help)
      ->type_name("X");
}

void addChoice(CLI::App &app, const std::string &flag, std::string &value, const std::vector<std::string> &names,
               const std::string &help) {
  std::string list, type;
  for (size_t i = 0; i < names.size(); ++i) {
    list += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
    type += (i ? "|" : "") + names[i];
  }
  app.add_option_function<std::string>(
         flag,
         [=, &value](const std::string &text) {
           if (std::find(names.begin(), names.end(), text) == names.end())
             wrong(name(flag), list, text);
           value = text;
         },
         help)
      ->type_name(type);
}

void addSize(CLI::App &app, const std::string &flag, uint64_t &value, const std::string &help) {
  app.add_option_function<std::string>(
         flag,
         [=, &value](const std::string &text) {
           static const std::pair<const char *, uint64_t> units[] = {
               {"", 1},           {"B", 1},          {"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30},
               {"KB", 1000},      {"MB", 1000000},   {"GB", 1000000000},  {"K", 1ull << 10},   {"M", 1ull << 20},
               {"G", 1ull << 30}, {"TiB", 1ull << 40}};
           char *stop = nullptr;
           const double number = std::strtod(text.c_str(), &stop);
           for (auto [unit, factor] : units)
             if (stop != text.c_str() && std::string(stop) == unit && number > 0 && number * double(factor) < 0x1p62) {
               value = uint64_t(number * double(factor));
               return;
             }
           wrong(name(flag), "a size such as 512MiB or 2GB", text);
         },
         help)
      ->type_name("SIZE");
}

void addWeightsFlags(CLI::App &app, LoadFlags &flags) {
  app.add_option("--package", flags.package, "load this package instead of the executable's own")->group("");
  app.add_option("--weights-dir", flags.weightsDir, "folder of the weights' shard files (default: beside the package)")
      ->type_name("DIR");
  addCount(app, "--threads", flags.threads, "CPU threads (default: every CPU that this process may use)", 1, 1024);
}

void addLoadFlags(CLI::App &app, LoadFlags &flags) {
  addWeightsFlags(app, flags);
  app.add_option("--isa", flags.isa, "force an instruction set of the package: amxbf16, avx512bf16, avx512vnni, avx2; neon_dotprod")->type_name("ISA");
  app.add_flag("--mmap", flags.map, "serve from the file mapping; do not copy the weights into huge pages");
  addSize(app, "--kv-memory", flags.kvBytes, "memory of the KV cache (default: what the context needs)");
  addSize(app, "--swap-memory", flags.swapBytes,
          "host memory for requests that have lost their place in the KV cache (default: none, they are computed anew)");
  addCount(app, "--context", flags.context, "longest context in tokens (default: what the request needs, at most the model's)",
           1);
  addCount(app, "--device", flags.device, "GPU to use, for a package compiled for GPUs (default 0)", 0, 1023);
  app.add_flag("--ptx", flags.ptx, "GPU: let the driver compile the kernels' PTX, even where the package has machine code");
  app.add_flag("--no-graphs", flags.noGraphs, "GPU: launch the kernels of every step one by one, without CUDA graphs");
  app.add_flag("--sync-launches", flags.syncLaunches, "GPU: wait for every kernel, so that an error names the one that failed");
}

template <typename Format> static std::vector<std::string> namesOf(std::span<const Format> formats) {
  std::vector<std::string> names{"auto", "none"};
  for (const Format &format : formats)
    names.push_back(format.name);
  return names;
}

void addFormatFlags(CLI::App &app, LoadFlags &flags) {
  addChoice(app, "--tool-format", flags.toolFormat, namesOf(toolFormats()), "how the model writes calls of tools (default: found out from its chat template)");
  addChoice(app, "--reasoning-format", flags.reasoningFormat, namesOf(reasoningFormats()),
            "how it marks what it thinks; none: that is content (default: found out from its chat template)");
}

void addPrefixCacheFlag(CLI::App &app, bool &on, const std::string &help) {
  app.add_option_function<std::string>(
         "--prefix-cache",
         [&on](const std::string &text) {
           if (text != "on" && text != "off")
             wrong("--prefix-cache", "off or on", text);
           on = text == "on";
         },
         help)
      ->type_name("off|on");
}

} // namespace llmc
