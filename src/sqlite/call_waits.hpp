// call_waits: how long the calls of one connection wait, and its statements for locks of the file.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "observe/numbers/registry.hpp"
#include "observe/numbers/sharded.hpp"

namespace troupe::sqlite {

// Threads: any.
class call_waits {
 public:
  // `path` names the connection; a second one of a path is "path (2)".
  explicit call_waits(const std::string& path);

  void begin() noexcept;
  void end(std::chrono::nanoseconds waited) noexcept;
  // A statement has waited as long for another connection's lock of the file.
  void note_lock(std::chrono::nanoseconds waited) noexcept;

 private:
  void collect(observe::row_sink& sink, const std::string& name) const;

  std::atomic<std::int64_t> waiting_{0};
  std::atomic<std::int64_t> lock_ns_{0};
  observe::sharded_histogram waited_;
  const observe::number_source shown_;
};

}  // namespace troupe::sqlite
