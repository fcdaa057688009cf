//===- Ptxas.cpp - finds and runs NVIDIA's assembler ----------------------===//
#include "llmc/Support/Error.h"
#include "llmc/Support/ScratchFolder.h"
#include "llmc/Support/Text.h"
#include "llmc/Target/Cubin.h"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llmc;
namespace fs = std::filesystem;

extern char **environ;

namespace {
std::string variable(const char *name) { return std::getenv(name) ? std::getenv(name) : ""; }

struct Outcome {
  int status;         // of waitpid
  std::string output; // both streams
};

Outcome run(const std::vector<std::string> &arguments, const ScratchFolder &scratch) {
  std::vector<char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(const_cast<char *>(argument.c_str()));
  pointers.push_back(nullptr);
  std::string log = scratch.file("ptxas.log");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = -1;
  int failed = posix_spawn(&pid, arguments[0].c_str(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed)
    throw Error(arguments[0] + ": cannot start: " + std::strerror(failed));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      throw Error(arguments[0] + ": cannot wait for it: " + std::strerror(errno));
  return {status, readFile(log)};
}

/// "13.0.88" of "Cuda compilation tools, release 13.0, V13.0.88"; empty where it is no ptxas.
std::string versionOf(const std::string &path) {
  if (access(path.c_str(), X_OK) != 0 || !fs::is_regular_file(path))
    return "";
  ScratchFolder scratch;
  Outcome outcome = run({path, "--version"}, scratch);
  size_t at = outcome.output.find(", V");
  if (outcome.status != 0 || at == std::string::npos)
    return "";
  return outcome.output.substr(at + 3, outcome.output.find_first_of("\r\n ", at + 3) - at - 3);
}

std::vector<std::string> places() {
  std::error_code ignored;
  std::vector<std::string> folders = {fs::read_symlink("/proc/self/exe", ignored).parent_path()};
  if (std::string home = variable("CUDA_HOME"); !home.empty())
    folders.push_back(home + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  std::string path = variable("PATH");
  for (size_t begin = 0; begin < path.size();) {
    size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin)
      folders.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  if (std::string folder = ptxasFolder(); !folder.empty())
    folders.push_back(folder);
  for (std::string &folder : folders)
    folder += "/ptxas";
  return folders;
}
} // namespace

std::string llmc::ptxasFolder() {
  if (std::string folder = variable("XDG_CACHE_HOME"); !folder.empty())
    return folder + "/llmc/ptxas/bin";
  std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/llmc/ptxas/bin";
}

std::optional<Ptxas> llmc::findPtxas() {
  if (std::string given = variable("LLMC_PTXAS"); !given.empty()) {
    std::string version = versionOf(given);
    if (version.empty())
      throw Error("LLMC_PTXAS: expected the path of a ptxas that runs, got " + quote(given));
    return Ptxas{given, version};
  }
  for (const std::string &place : places())
    if (std::string version = versionOf(place); !version.empty())
      return Ptxas{place, version};
  return {};
}

void llmc::assemble(GPUKernel &kernel, const std::string &ptxas, const std::string &chip) {
  ScratchFolder scratch;
  std::string source = scratch.file("kernel.ptx"), result = scratch.file("kernel.cubin");
  writeFile(source, kernel.ptx);
  Outcome outcome = run({ptxas, "-arch=" + chip, "-v", source, "-o", result}, scratch);
  PtxasReport report = parsePtxasOutput(outcome.output);
  if (!WIFEXITED(outcome.status))
    throw Error("ptxas was stopped by signal " + std::to_string(WTERMSIG(outcome.status)));
  if (int code = WEXITSTATUS(outcome.status)) {
    std::string what = report.complaints.empty() ? outcome.output.substr(0, outcome.output.find('\n')) : report.complaints[0];
    if (size_t at = what.find(scratch.file("")); at != std::string::npos)
      what.erase(at, scratch.file("").size());
    throw Error("ptxas exited with " + std::to_string(code) + ": " + what);
  }
  if (!report.complaints.empty())
    throw GateError("expected no spills, no stack and no remark C75xx from ptxas, got: " + report.complaints[0]);
  kernel.cubin = readFile(result);
  kernel.registers = report.registers;
}
