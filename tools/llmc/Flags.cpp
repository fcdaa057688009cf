//===- Flags.cpp ----------------------------------------------------------===//
#include "Flags.h"

#include "llmc/Support/Text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

using namespace llmc;

static std::string spelled(const std::string &name) { return (name.size() == 1 ? "-" : "--") + name; }

void Flags::text(const std::string &name, std::string &target, const std::string &meta, const std::string &help) {
  flags.push_back({name, meta, help, true, [&target](const std::string &value) { target = value; }});
}

void Flags::choice(const std::string &name, std::string &target, const std::vector<std::string> &choices,
                   const std::string &help) {
  flags.push_back({name, join(choices, "|"), help, true, [=, &target](const std::string &value) {
                     if (std::find(choices.begin(), choices.end(), value) == choices.end())
                       throw UsageError(spelled(name) + ": expected " + join(choices, ", ") + ", got " + quote(value));
                     target = value;
                   }});
}

void Flags::number(const std::string &name, int64_t &target, int64_t low, int64_t high, const std::string &help) {
  // A value out of range stands for a default that `help` tells.
  std::string shown = target < low || target > high ? help : help + " (" + std::to_string(target) + ")";
  flags.push_back({name, "N", shown, true, [=, &target](const std::string &value) {
                     int64_t parsed = 0;
                     auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
                     if (error != std::errc() || end != value.data() + value.size() || parsed < low || parsed > high)
                       throw UsageError(spelled(name) + ": expected a number of " + std::to_string(low) + " to " +
                                        std::to_string(high) + ", got " + quote(value));
                     target = parsed;
                   }});
}

void Flags::toggle(const std::string &name, bool &target, bool value, const std::string &help) {
  flags.push_back({name, "", help, false, [&target, value](const std::string &) { target = value; }});
}

void Flags::bytes(const std::string &name, uint64_t &target, const std::string &help) {
  flags.push_back({name, "BYTES", help, true, [=, &target](const std::string &value) {
                     uint64_t parsed = 0, unit = 0;
                     auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
                     std::string rest(end, value.data() + value.size());
                     for (auto [suffix, factor] : {std::pair<const char *, uint64_t>{"", 1}, {"KiB", 1u << 10}, {"MiB", 1u << 20},
                                                   {"GiB", 1u << 30}, {"MB", 1000000}, {"GB", 1000000000}})
                       if (rest == suffix)
                         unit = factor;
                     if (error != std::errc() || unit == 0 || parsed > UINT64_MAX / unit)
                       throw UsageError(spelled(name) + ": expected bytes such as 512MiB or 8GiB, got " + quote(value));
                     target = parsed * unit;
                   }});
}

void Flags::positional(std::string &target, const std::string &meta, const std::string &help) {
  positionalTarget = &target;
  positionalMeta = meta;
  positionalHelp = help;
}

void Flags::section(const std::string &title) { flags.push_back({"", "", title, false, {}}); }

Flags::Flag &Flags::find(const std::string &name) {
  for (Flag &flag : flags)
    if (!flag.name.empty() && flag.name == name)
      return flag;
  throw UsageError("unknown flag " + quote(spelled(name)) + " of " + command + "; see " + command + " --help");
}

bool Flags::parse(int argc, char **argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  bool found = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      help();
      return false;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      if (found || !positionalTarget)
        throw UsageError("unexpected argument " + quote(argument) + " of " + command + "; see " + command + " --help");
      found = true;
      *positionalTarget = argument;
      continue;
    }
    size_t start = argument[1] == '-' ? 2 : 1, equals = argument.find('=');
    std::string name = argument.substr(start, equals == std::string::npos ? equals : equals - start);
    if ((start == 2) != (name.size() > 1))
      throw UsageError("unknown flag " + quote(argument) + " of " + command + "; see " + command + " --help");
    Flag &flag = find(name);
    if (!flag.takesValue && equals != std::string::npos)
      throw UsageError(spelled(name) + ": expected no value, got " + quote(argument.substr(equals + 1)));
    std::string value;
    if (equals != std::string::npos)
      value = argument.substr(equals + 1);
    else if (flag.takesValue && ++i < arguments.size())
      value = arguments[i];
    else if (flag.takesValue)
      throw UsageError(spelled(name) + ": expected a value");
    flag.set(value);
  }
  if (positionalTarget && !found)
    throw UsageError(command + ": expected " + positionalMeta + "; see " + command + " --help");
  return true;
}

void Flags::help() const {
  std::printf("%s\n\nusage: %s%s [flags]\n", about.c_str(), command.c_str(),
              positionalTarget ? (" " + positionalMeta).c_str() : "");
  auto row = [](const std::string &left, const std::string &right) {
    std::printf("  %-34s %s%s\n", left.c_str(), left.size() > 34 ? "\n                                     " : "", right.c_str());
  };
  if (positionalTarget)
    row(positionalMeta, positionalHelp);
  for (const Flag &flag : flags) {
    if (flag.name.empty())
      std::printf("\n%s\n", flag.help.c_str());
    else
      row(spelled(flag.name) + (flag.meta.empty() ? "" : (flag.name.size() == 1 ? " " : "=") + flag.meta), flag.help);
  }
  std::printf("\nexamples\n%s", examples.c_str());
}
