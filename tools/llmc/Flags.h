//===- Flags.h - command lines of the subcommands ---------------*- C++ -*-===//
//
// A table of flags per subcommand; the same table parses, checks and prints --help. Flags are --name=value,
// --name value or --name; single-letter forms -o value.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TOOLS_LLMC_FLAGS_H
#define LLMC_TOOLS_LLMC_FLAGS_H

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace llmc {

/// A wrong command line: exit code 2.
class UsageError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

class Flags {
public:
  Flags(std::string command, std::string about, std::string examples)
      : command(std::move(command)), about(std::move(about)), examples(std::move(examples)) {}

  void text(const std::string &name, std::string &target, const std::string &meta, const std::string &help);
  /// One of `choices`.
  void choice(const std::string &name, std::string &target, const std::vector<std::string> &choices, const std::string &help);
  void number(const std::string &name, int64_t &target, int64_t low, int64_t high, const std::string &help);
  /// --name sets `target` to `value`.
  void toggle(const std::string &name, bool &target, bool value, const std::string &help);
  /// Bytes with an optional unit: 512MiB, 8GiB, 1000000.
  void bytes(const std::string &name, uint64_t &target, const std::string &help);
  void positional(std::string &target, const std::string &meta, const std::string &help);
  void section(const std::string &title);

  /// False: help was asked for and printed. Throws UsageError.
  bool parse(int argc, char **argv);

private:
  struct Flag {
    std::string name, meta, help; // name empty: a section title in help
    bool takesValue = false;
    std::function<void(const std::string &)> set;
  };
  Flag &find(const std::string &name);
  void help() const;

  std::string command, about, examples;
  std::vector<Flag> flags;
  std::string *positionalTarget = nullptr;
  std::string positionalMeta, positionalHelp;
};

} // namespace llmc

#endif // LLMC_TOOLS_LLMC_FLAGS_H
