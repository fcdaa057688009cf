//===- LineInput.h - lines of standard input, and Ctrl-C --------*- C++ -*-===//
//
// Works on terminals, pipes and files. While an object lives, SIGINT does not end
// the process: it is noted, and wakes a read that waits.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_LINEINPUT_H
#define LLMC_RUNTIME_TOOL_LINEINPUT_H

#include <csignal>
#include <string>

namespace llmc {

class LineInput {
public:
  enum class Event { Line, End, Interrupted };

  LineInput();
  ~LineInput();
  LineInput(const LineInput &) = delete;
  LineInput &operator=(const LineInput &) = delete;

  /// The next line without its end ("\n" or "\r\n"); a last line without one counts. Throws Error beyond 64 MiB.
  Event read(std::string &line);
  /// A message: a line; lines that end in a backslash and the one after them; or all lines between two """. The end of
  /// the input ends the message, too.
  Event readMessage(std::string &message);
  /// Whether Ctrl-C came since the last call of this or of read().
  static bool interrupted();
  bool terminal() const { return terminal_; }
  /// Shown on terminals before every line: "> ", or ". " within a message.
  static constexpr const char *kPrompt = "> ", *kMore = ". ";

private:
  Event readQuoted(std::string &message);
  Event next(std::string &line, const char *prompt);

  std::string buffer_;
  bool end_ = false, terminal_;
  struct sigaction before_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_LINEINPUT_H
