// wire: a connection of libpq, and the task that opens one.
#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "troupe/task/task.hpp"

namespace troupe::postgres {

// Counts the bytes that libpq takes out of a socket, which a server may fill meanwhile; libpq does
// not tell. Threads: one at a time.
class taken_bytes {
 public:
  explicit taken_bytes(PGconn* from) noexcept : pg_(from) {}

  // libpq reads only between the two. `end` returns the bytes that it has taken since.
  void begin() noexcept;
  std::size_t end() noexcept;

 private:
  PGconn* const pg_;
  std::optional<std::uint64_t> total_;  // ever taken from the socket, if it is one of TCP
};

// Closed when the session and the tasks that wait for its socket have let go of it.
struct wire {
  explicit wire(PGconn* opened) noexcept : pg(opened), taken_(opened) {}
  wire(const wire&) = delete;
  wire& operator=(const wire&) = delete;
  ~wire() { PQfinish(pg); }

  // How a reading ended. `more`: bytes are left, and the socket may not show it. `flooded`: libpq
  // may hold more than `most` bytes.
  enum class input : std::uint8_t { all, more, broken, flooded };
  // Reads the bytes that have arrived, in a bounded number of rounds: a server that sends without
  // end keeps no turn busy. The bytes are counted, since libpq keeps each report of a parameter and
  // shows none.
  input read(std::size_t most) noexcept;
  // libpq has given a result, or a piece of a COPY: it holds nothing that came before.
  void note_result() noexcept { unanswered_ = 0; }
  // It has given a message of so many bytes.
  void note_message(std::size_t bytes) noexcept {
    unanswered_ -= bytes < unanswered_ ? bytes : unanswered_;
  }

  PGconn* const pg;
  std::stop_source ends;  // of the waits for the socket
  bool has_more = false;  // the last reading ended with input::more

 private:
  taken_bytes taken_;
  std::size_t unanswered_ = 0;  // bytes that came behind the last result, without the messages
};

// Connects to the first of the hosts, and of their addresses, that answers. Names are resolved on a
// thread that may block, for libpq would block the worker. Throws database::error, cancelled.
task<std::shared_ptr<wire>> open_wire(std::string target, std::chrono::nanoseconds at_most);

}  // namespace troupe::postgres
