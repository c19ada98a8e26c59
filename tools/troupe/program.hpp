// program: a running program of troupe, asked through its socket (docs/guide/observing.md).
#pragma once

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe_tool {

using nlohmann::json;

// What the user should know: the message says what to do.
struct failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A connection to the program with that process number. Throws failure if it cannot be asked.
class program {
 public:
  explicit program(int pid);
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  ~program();

  // The answer to one question. Throws failure if the program has ended, or refuses the question.
  json ask(const std::string& question);
  // The same as it came: one line of JSON.
  std::string ask_text(const std::string& question);
  // Records for that time, and adds the trace to the file. Throws failure, also if it cannot be
  // written.
  void trace(std::chrono::milliseconds duration, std::FILE* to);

 private:
  // The program cuts off what has been idle for long, when others want to ask.
  void connect_again_if_cut_off();
  void send(const std::string& question);
  // Waits for more bytes of the answer. Throws failure if there are none.
  void hear();

  const int pid_;
  int stream_ = -1;
  std::string heard_;
};

// The path of that process's socket, whether there is one or not.
std::string socket_of(int pid);
// The process numbers of the user's programs that can be asked, in order.
std::vector<int> programs();

// Throws failure if something that was written to standard output has not arrived there.
void end_output();

}  // namespace troupe_tool
