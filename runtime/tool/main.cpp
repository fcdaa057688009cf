//===- main.cpp - the executable that llmc compile makes ------------------===//
#include "llmc/Support/Error.h"
#include "runtime/tool/Commands.h"

#include <csignal>
#include <cstring>
#include <new>
#include <unistd.h>

namespace {

std::string programName; // basename, for messages

// The package is mapped: if another process cuts it short while it is in use, reading it faults. Sizes were
// checked at load, so this is the only way to get here; say so instead of a core dump.
void onBusError(int) {
  static const char text[] = ": error: the package was changed or truncated while in use\n";
  (void)!write(2, programName.data(), programName.size());
  (void)!write(2, text, sizeof text - 1);
  _exit(1);
}

int fail(const std::string &message, int code) {
  std::fprintf(stderr, "%s: error: %s\n", programName.c_str(), message.c_str());
  return code;
}

} // namespace

int main(int argc, char **argv) {
  const char *path = argc > 0 && argv[0] ? argv[0] : "llmc-runtime";
  const char *slash = std::strrchr(path, '/');
  programName = slash ? slash + 1 : path;
  std::signal(SIGBUS, onBusError);

  CLI::App app{"A language model compiled by llmc into this one file.", programName};
  app.require_subcommand(1);
  const std::string shown = path;
  app.footer("Examples:\n  " + shown + " run \"What is the capital of France?\"\n  " + shown + " chat\n  " + shown + " info\n  " + shown +
             " bench --threads 2\n  " + shown + " verify --per-layer\nEvery subcommand has its own --help.");
  const llmc::Command commands[] = {llmc::addRun(app, shown),        llmc::addChat(app, shown),
                                    llmc::addBatch(app, shown),      llmc::addServe(app, shown),
                                    llmc::addTokenize(app, shown),   llmc::addDetokenize(app, shown),
                                    llmc::addPerplexity(app, shown), llmc::addInfo(app, shown),
                                    llmc::addBench(app, shown),      llmc::addVerify(app, shown),
                                    llmc::addSimulate(app, shown),  llmc::addReplay(app, shown),
                                    llmc::addLogits(app, shown),     llmc::addWeights(app, shown),
                                    llmc::addLicenses(app, shown)};
  try {
    app.parse(argc, argv);
    for (const llmc::Command &command : commands)
      if (command.app->parsed())
        return command.run();
    return 0;
  } catch (const CLI::CallForHelp &) {
    for (const llmc::Command &command : commands)
      if (command.app->parsed() || command.app->get_help_ptr()->count()) {
        std::fputs(command.app->help().c_str(), stdout);
        return 0;
      }
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError &error) {
    return fail(std::string(error.what()) + " (see --help)", 2);
  } catch (const llmc::Error &error) {
    return fail(error.what(), 1);
  } catch (const std::bad_alloc &) {
    return fail("out of memory", 1);
  } catch (const std::exception &error) {
    return fail(error.what(), 1);
  }
}
