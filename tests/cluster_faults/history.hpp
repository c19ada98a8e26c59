// history: what clients of one process did to durable registers, written down as it happens, so
// that it survives a kill of the process.
//
// A line of the file is `b ID KEY OPERATION FIRST SECOND TIME` when an operation begins, and
// `e ID OUTCOME VALUE TIME WORDS` when it has ended. An operation without the second line has an
// unknown end. Times are those of CLOCK_MONOTONIC in ns, which all processes of a machine have in
// common.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace troupe::test {

enum class act : std::uint8_t { read, write, swap };
// not_run: it is known that the operation had no effect. unknown: it may have had one, or may
// still.
enum class ending : std::uint8_t { done, not_run, unknown };

std::int64_t monotonic_ns() noexcept;

class history_file {
 public:
  explicit history_file(const std::string& path);
  history_file(const history_file&) = delete;
  history_file& operator=(const history_file&) = delete;
  ~history_file();

  // Thread: any. What these have written is there after a kill of the process.
  std::uint64_t begin(std::string_view key, act what, std::int64_t first, std::int64_t second);
  void end(std::uint64_t id, ending how, std::int64_t value, const std::string& words);

 private:
  void write_line(const std::string& line) const;

  int fd_;
  std::mutex mutex_;
  std::uint64_t last_ = 0;
};

}  // namespace troupe::test
