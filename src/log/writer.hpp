// writer: keeps the lines of the log until its thread has written them.
//
// Threads: add(), drop(), form_now(), reopen() and count() from any. Two buffers of a fixed size:
// callers fill one of them while the writing thread empties the other.
// Invariants
//   L1  `buffer_mutex_` guards which buffer is filled. The bytes below `used` are whole lines.
//   L2  `output_mutex_` is held while lines are written and while the two buffers change places:
//       lines come out in the order in which they were added. A thread that needs both locks it
//       first. The writing thread gives it up when another thread waits (`waiters_`), even while
//       the reader of the log reads nothing: unwritten bytes stay in the buffer, and come
//       first.
//   L3  a fatal signal's handler takes no lock: it reads `used`, and the bytes below it.
// Failures: base::side_channel, one for the file and one for the lines written to it.
// Rejected: a buffer for each thread (lines of several threads would come out of order, and the
// handler would have to walk a list of them); waiting for room (a slow disk would stop the
// program).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/parker.hpp"
#include "log/writer_stages.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/log/log.hpp"

namespace troupe::log {

class writer {
 public:
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

  // The writer of the process. Never destroyed.
  static writer& get() noexcept;

  // order: relaxed  a line may have the form of before
  form form_now() const noexcept { return form_.load(std::memory_order_relaxed); }
  // A whole line. The first one starts the thread.
  void add(std::string_view line) noexcept;
  void drop(std::uint64_t lines = 1) noexcept;
  void configure(options chosen);
  // order: relaxed  seen before the next lines are written
  void reopen() noexcept { reopens_.store(true, std::memory_order_relaxed); }
  void flush() noexcept;
  counts count() const noexcept;

  // In the handler of a fatal signal: writes the buffered lines.
  void write_in_signal() noexcept;

 private:
  struct buffer {
    std::unique_ptr<char[]> bytes;
    std::atomic<std::size_t> used{0};
    std::atomic<std::size_t> written{0};
  };

  writer();
  void start();
  void run() noexcept;
  void end() noexcept;
  void after_fork() noexcept;
  class output_lock;
  enum class end_of_write : std::uint8_t { whole, failed, given_up };
  bool drain() noexcept;
  bool write_buffer(buffer& full) noexcept;
  end_of_write write_lines(const char* bytes, std::size_t size,
                           std::atomic<std::size_t>& written) noexcept;
  void call_with_lines(std::string_view lines) noexcept;
  end_of_write write_some(const char* bytes, std::size_t size, std::size_t& done) noexcept;
  bool await_room() noexcept;
  bool is_over() noexcept;
  void tell_dropped() noexcept;
  void reopen_file() noexcept;
  void set_sink() noexcept;

  // All that a line changes beside the buffer's bytes: one line of the processor's cache.
  alignas(base::line_bytes) base::small_mutex buffer_mutex_;
  std::atomic<unsigned> filled_{0};  // which buffer callers fill
  std::array<buffer, 2> buffers_;
  std::atomic<std::uint64_t> lines_{0};  // changed under buffer_mutex_
  thread_stage thread_stage_;            // by buffer_mutex_
  alignas(base::line_bytes) std::mutex output_mutex_;
  std::atomic<form> form_{form::text};
  std::atomic<std::uint64_t> dropped_{0};
  std::uint64_t dropped_told_ = 0;  // guarded by output_mutex_
  std::atomic<bool> reopens_{false}, ends_{false};
  crash_gate gate_;
  std::atomic<int> file_{2};
  std::atomic<unsigned> waiters_{0};  // threads that wait for output_mutex_
  sink sink_;                         // the five below: by output_mutex_
  std::int64_t end_ns_ = 0;           // when the last write is given up
  std::int64_t patience_end_ns_ = 0;  // when this write is; 0: when another thread waits for it
  std::string path_;
  std::function<void(std::string_view)> callback_;
  base::parker wakes_;
  std::thread thread_;
};

}  // namespace troupe::log
