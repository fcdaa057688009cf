//===- Main.cpp - llmc ----------------------------------------------------===//
//
// Exit codes: 0 done, 1 an error in the input or the system, 2 a wrong command line.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"

#include "llmc/Support/Error.h"
#include "llmc/Support/Text.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

using namespace llmc;

namespace {
struct Command {
  const char *name, *summary;
  void (*run)(int, char **);
};
const Command kCommands[] = {
    {"compile", "make an executable of a model (GGUF file or Hugging Face folder)", compileCommand},
    {"explain", "where the time of a step goes: bytes, operations and bound of every kernel", explainCommand},
    {"inspect", "show what a model's files say; reads no weights", inspectCommand},
    {"plan", "memory ledger and predicted speed; reads no weights", planCommand},
};

void usage(std::FILE *stream) {
  std::fprintf(stream, "llmc %s: compiles a language model ahead of time into one executable that serves it\n\n"
                       "usage: llmc COMMAND [arguments]; llmc COMMAND --help explains one\n\n", versionString());
  for (const Command &command : kCommands)
    std::fprintf(stream, "  %-10s %s\n", command.name, command.summary);
  std::fputs("\nexample\n  llmc compile SmolLM2-135M-Instruct.gguf -o smollm2 && ./smollm2 run \"What is a compiler?\"\n", stream);
}

int dispatch(int argc, char **argv) {
  if (argc < 2) {
    usage(stderr);
    return 2;
  }
  std::string name = argv[1];
  if (name == "--worker")
    return runWorker(argc, argv);
  if (name == "--help" || name == "-h" || name == "help") {
    usage(stdout);
    return 0;
  }
  if (name == "--version") {
    std::printf("llmc %s\n", versionString());
    return 0;
  }
  for (const Command &command : kCommands)
    if (name == command.name) {
      command.run(argc - 2, argv + 2);
      return 0;
    }
  throw UsageError("expected a command (compile, explain, inspect, plan), got " + quote(name) + "; see llmc --help");
}
} // namespace

int main(int argc, char **argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return dispatch(argc, argv);
  } catch (const UsageError &error) {
    std::fprintf(stderr, "llmc: error: %s\n", error.what());
    return 2;
  } catch (const std::bad_alloc &) {
    std::fputs("llmc: error: out of memory\n", stderr);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "llmc: error: %s\n", error.what());
  }
  return 1;
}
