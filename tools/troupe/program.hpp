// program: a program of troupe, asked through its socket (docs/guide/observation_socket.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "trust/failure.hpp"
#include "trust/place.hpp"

namespace troupe_tool {

using nlohmann::json;

// A connection to a program. Throws failure if it cannot be asked.
//
// The program may be another user's, and hostile: an answer has at most `answer_bytes_max` bytes,
// and comes within `patience` as a whole.
class program {
 public:
  static constexpr std::size_t answer_bytes_max = std::size_t{32} << 20;
  static constexpr std::size_t trace_bytes_max = std::size_t{2} << 30;
  static constexpr std::chrono::seconds patience_max{30};

  explicit program(int pid, std::chrono::seconds patience = patience_max);
  explicit program(program_place where, std::chrono::seconds patience = patience_max);
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  ~program();

  const program_place& where() const noexcept { return where_; }
  // The answer to one question. Throws failure if the program has ended, or refuses the question,
  // or an exception of the library if the answer is no JSON.
  json ask(const std::string& question);
  // The same as it came: one line of JSON.
  std::string ask_text(const std::string& question);
  // Records for that time, and adds the trace to the file. Throws failure, also if it cannot be
  // written.
  void trace(std::chrono::milliseconds duration, std::FILE* to);

 private:
  using clock = std::chrono::steady_clock;
  // The program cuts off what has been idle for long, when others want to ask.
  void connect_again_if_cut_off();
  void send(const std::string& question);
  // Waits for more bytes of the answer. Throws failure if there are none by then.
  void give_up();
  void hear(clock::time_point end);

  const program_place where_;
  const std::chrono::seconds patience_;
  int stream_ = -1;
  std::string heard_;
};

}  // namespace troupe_tool
