//===- KernelCompiler.cpp - a few worker processes at a time --------------===//
#include "llmc/Target/KernelCompiler.h"

#include "llmc/Support/Error.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llmc;

extern char **environ;

namespace {

/// Files of job i in the scratch folder.
struct WorkerFiles {
  std::string in, out, errors;
  WorkerFiles(const ScratchFolder &scratch, size_t i)
      : in(scratch.file(std::to_string(i) + ".mlirbc")), out(scratch.file(std::to_string(i) + ".out")),
        errors(scratch.file(std::to_string(i) + ".err")) {}
};

pid_t start(const KernelJob &job, const WorkerFiles &files) {
  writeFile(files.in, job.bytecode);
  const std::string arguments[] = {"llmc", "--worker", files.in, files.out, job.isa, job.form, job.name, job.ptxas};
  std::vector<char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(const_cast<char *>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, files.errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t pid = -1;
  int failed = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed)
    throw Error("kernel " + job.name + ": cannot start a worker: " + std::strerror(failed));
  return pid;
}

/// The first line that the worker wrote with "error:", or its first line.
std::string complaint(const std::string &errors) {
  size_t at = errors.find("error: ");
  at = at == std::string::npos ? 0 : at + 7;
  return errors.substr(at, errors.find('\n', at) - at);
}

void check(const KernelJob &job, int status, const std::string &errorFile) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return;
  std::string errors;
  try {
    errors = complaint(readFile(errorFile));
  } catch (const Error &) {
  }
  std::string what = WIFSIGNALED(status) ? std::string("the worker was stopped by signal ") +
                                               std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")"
                                         : "the worker exited with " + std::to_string(WEXITSTATUS(status));
  throw Error("kernel " + job.name + ": " + what + (errors.empty() ? "" : ": " + errors));
}

/// The running workers; ends them when a job fails, so that none outlives the compiler.
class Workers {
public:
  ~Workers() {
    for (auto &[pid, job] : running) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  size_t size() const { return running.size(); }
  void add(pid_t pid, size_t job) { running[pid] = job; }

  /// Waits for one of them: (job, wait status).
  std::pair<size_t, int> next() {
    while (true) {
      int status = 0;
      pid_t pid = waitpid(-1, &status, 0);
      if (pid < 0 && errno == EINTR)
        continue;
      if (pid < 0)
        throw Error(std::string("cannot wait for a worker: ") + std::strerror(errno));
      auto found = running.find(pid);
      if (found == running.end())
        continue;
      size_t job = found->second;
      running.erase(found);
      return {job, status};
    }
  }

private:
  std::map<pid_t, size_t> running;
};

} // namespace

std::vector<std::string> llmc::compileKernels(const std::vector<KernelJob> &jobs, const KernelCompilerOptions &options,
                                              const std::function<void(const KernelProgress &)> &progress) {
  std::vector<std::string> code(jobs.size()), keys(jobs.size());
  KernelCache cache(options.cacheFolder);
  std::vector<size_t> waiting;
  KernelProgress counts{0, jobs.size(), 0};
  for (size_t i = 0; i < jobs.size(); ++i) {
    keys[i] = cache.key(jobs[i]);
    if (auto found = cache.load(keys[i])) {
      code[i] = std::move(*found);
      ++counts.done, ++counts.cached;
    } else {
      waiting.push_back(i);
    }
  }
  progress(counts);
  if (waiting.empty())
    return code;

  ScratchFolder scratch;
  Workers workers;
  for (size_t next = 0; next < waiting.size() || workers.size();) {
    if (next < waiting.size() && workers.size() < std::max(1u, options.jobs)) {
      size_t job = waiting[next++];
      workers.add(start(jobs[job], WorkerFiles(scratch, job)), job);
      continue;
    }
    auto [job, status] = workers.next();
    WorkerFiles files(scratch, job);
    check(jobs[job], status, files.errors);
    code[job] = readFile(files.out);
    std::remove(files.out.c_str());
    cache.store(keys[job], code[job]);
    ++counts.done;
    progress(counts);
  }
  return code;
}
