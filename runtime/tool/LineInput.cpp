//===- LineInput.cpp ------------------------------------------------------===//
#include "runtime/tool/LineInput.h"
#include "llmc/Support/Error.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <utility>
#include <utility>

namespace llmc {

namespace {

constexpr size_t kLongestLine = size_t(64) << 20;

// A signal may reach any thread, so that it need not wake the one that reads: a pipe does.
int wakePipe[2] = {-1, -1};
std::atomic<bool> noted;
static_assert(std::atomic<bool>::is_always_lock_free);

void onInterrupt(int) {
  const int error = errno;
  noted.store(true);
  (void)!write(wakePipe[1], "", 1);
  errno = error;
}

void drainPipe() {
  char bytes[64];
  while (::read(wakePipe[0], bytes, sizeof bytes) > 0)
    ;
}

} // namespace

LineInput::LineInput() : terminal_(isatty(STDIN_FILENO)) {
  if (wakePipe[0] < 0 && pipe2(wakePipe, O_NONBLOCK | O_CLOEXEC) != 0)
    throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
  struct sigaction action {};
  action.sa_handler = onInterrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
}

LineInput::~LineInput() { sigaction(SIGINT, &before_, nullptr); }

bool LineInput::interrupted() {
  if (!noted.exchange(false))
    return false;
  drainPipe();
  return true;
}

LineInput::Event LineInput::read(std::string &line) {
  size_t searched = 0;
  for (;;) {
    if (const size_t at = buffer_.find('\n', searched); at != std::string::npos) {
      line = buffer_.substr(0, at > 0 && buffer_[at - 1] == '\r' ? at - 1 : at);
      buffer_.erase(0, at + 1);
      return Event::Line;
    }
    searched = buffer_.size();
    if (end_ || buffer_.size() > kLongestLine) {
      if (!end_)
        throw Error("standard input: expected lines of at most 64 MiB");
      line = std::exchange(buffer_, {});
      return line.empty() ? Event::End : Event::Line;
    }
    pollfd wait[2] = {{STDIN_FILENO, POLLIN, 0}, {wakePipe[0], POLLIN, 0}};
    if (poll(wait, 2, -1) < 0 && errno != EINTR)
      throw Error(std::string("standard input: ") + std::strerror(errno));
    if (interrupted()) {
      if (terminal_) // which has dropped the line, too
        buffer_.clear();
      return Event::Interrupted;
    }
    if (!(wait[0].revents & (POLLIN | POLLHUP | POLLERR | POLLNVAL)))
      continue;
    char bytes[65536];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count > 0)
      buffer_.append(bytes, size_t(count));
    else if (count == 0 || (errno != EINTR && errno != EAGAIN))
      end_ = true;
  }
}

LineInput::Event LineInput::next(std::string &line, const char *prompt) {
  if (terminal_) {
    std::fputs(prompt, stderr);
    std::fflush(stderr);
  }
  return read(line);
}

LineInput::Event LineInput::readMessage(std::string &message) {
  message.clear();
  std::string line;
  Event event = next(line, kPrompt);
  if (event == Event::Line && line.starts_with("\"\"\"")) {
    message = line.substr(3);
    return readQuoted(message);
  }
  while (event == Event::Line && line.ends_with("\\")) {
    message += line.substr(0, line.size() - 1) + "\n";
    line.clear();
    event = next(line, kMore);
  }
  message += line;
  return event == Event::End && !message.empty() ? Event::Line : event;
}

// What follows the opening quotes on their line is `message`; what precedes the closing ones on theirs belongs to it.
LineInput::Event LineInput::readQuoted(std::string &message) {
  bool first = true;
  for (std::string line = std::exchange(message, {});; first = false) {
    if (!first) {
      const Event event = next(line, kMore);
      if (event == Event::Interrupted)
        return event;
      if (event == Event::End)
        return Event::Line;
    }
    const size_t close = line.find("\"\"\"");
    if (!message.empty() && !(close == 0))
      message += '\n';
    message += line.substr(0, close);
    if (close != std::string::npos)
      return Event::Line;
  }
}

} // namespace llmc
