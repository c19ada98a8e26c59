// ready: waits until a descriptor of the program's own is ready: an eventfd, a device, the socket
// of another library.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/io/operations/suspension.hpp"

namespace troupe {

namespace io {

template <action Direction>
class ready_job {
 public:
  using result = void;
  static constexpr action opcode = Direction;
  explicit ready_job(int fd) noexcept : asked_(descriptor::borrow(fd)) {}
  descriptor& prepare(operation_suspension&) noexcept { return asked_; }
  void finish(operation_suspension& wait) {
    wait.check(Direction == action::readable ? "readable" : "writable");
    asked_.close();
  }

 private:
  descriptor asked_;
};

}  // namespace io

// co_await readable(fd): completes when a read would not block, even if the read would fail or
// return the end. writable(fd) is the same for writes. Optionally with .timeout(span) and
// .stop(token). Any number may wait for the same descriptor; all of them are resumed. Files are
// always ready. Cost: two system calls if it is not ready yet; for streams of bytes use a stream.
// Errors: io_error (bad_file_descriptor), timed_out, cancelled. Lifetime: the descriptor stays
// yours; keep it open while you wait.
//
// Example (declarations):
//     troupe::task<std::uint64_t> next_count(int event_fd) {
//       co_await troupe::readable(event_fd).timeout(std::chrono::seconds(1));
//       std::uint64_t count = 0;
//       static_cast<void>(::read(event_fd, &count, sizeof count));
//       co_return count;
//     }
inline io::awaitable<io::ready_job<io::action::readable>> readable(int fd) noexcept {
  return io::awaitable<io::ready_job<io::action::readable>>(std::in_place, fd);
}
inline io::awaitable<io::ready_job<io::action::writable>> writable(int fd) noexcept {
  return io::awaitable<io::ready_job<io::action::writable>>(std::in_place, fd);
}

}  // namespace troupe
