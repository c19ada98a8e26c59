// readable and writable: when a descriptor of the program's own is ready: an eventfd, a device, a
// library's socket.
#pragma once

#include "troupe/io/operations/suspension.hpp"

namespace troupe {

namespace io {

template <action Direction>
class ready_job {
 public:
  using result = void;
  static constexpr action what = Direction;
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

// co_await readable(fd): until a read of it would not block, be it that it would fail or find the
// end. With .timeout(span) and .stop(token) if you like. It stays yours, and open for as long as
// you wait. Any number may wait for the same one, all of them are told. Files are always ready.
// Throws io_error (bad_file_descriptor), timed_out, cancelled. Cost: two system calls when it is
// not ready yet; for streams of bytes use a stream.
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
