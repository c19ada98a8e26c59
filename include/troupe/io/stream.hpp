// stream: bytes in order, in both directions. The common base of tcp_stream, unix_stream and pipes.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/io/buffer.hpp"
#include "troupe/io/file.hpp"
#include "troupe/io/operations/suspension.hpp"

namespace troupe {

namespace io {

class arrival;
struct at_once;
class read_ahead;

// `shared`: other processes share the descriptor, so that the library must not make it
// non-blocking.
enum class stream_kind : std::uint8_t { socket, pipe, shared };

class read_job {
 public:
  using result = std::size_t;
  static constexpr action opcode = action::read;
  // behind: as operation::behind.
  read_job(descriptor& from, stream_kind kind, std::span<std::byte> buffer, bool whole,
           std::size_t behind = 0) noexcept
      : from_(&from), buffer_(buffer), behind_(behind), whole_(whole), kind_(kind) {}
  descriptor& prepare(operation_suspension& wait) const noexcept {
    wait.behind = behind_;
    wait.data = buffer_.data();
    wait.bytes = buffer_.size();
    wait.whole = whole_;
    wait.socket = kind_ == stream_kind::socket;
    wait.asks_first = kind_ == stream_kind::shared;
    return *from_;
  }
  // If bytes have arrived, they are returned, whatever happened after them.
  std::size_t finish(operation_suspension& wait) const {
    if (whole_) {
      wait.check_whole("read_exact");
    } else if (wait.done == 0) {
      wait.check("read");
    }
    return wait.done;
  }

 private:
  descriptor* from_;
  std::span<std::byte> buffer_;
  std::size_t behind_;
  bool whole_;
  stream_kind kind_;
};

// Bytes: a view of the caller's bytes, or a string that was moved in.
template <class Bytes>
class write_job {
 public:
  using result = std::size_t;
  static constexpr action opcode = action::write;
  write_job(descriptor& to, stream_kind kind, Bytes bytes, bool whole) noexcept
      : to_(&to), bytes_(std::move(bytes)), whole_(whole), kind_(kind) {}
  // Sends as much as the system accepts at once, without a wait. Returns true if that completes the
  // operation.
  bool done_at_once(tasks::coroutine& awaiter) noexcept {
    if (kind_ != stream_kind::socket) return false;
    sent_ = write_at_once(awaiter, *to_, bytes_, whole_);
    return sent_ > 0 && (!whole_ || given_at_once() == bytes_.size());
  }
  std::size_t given_at_once() const noexcept { return static_cast<std::size_t>(sent_); }
  void give_up_rest() noexcept {
    if (sent_ > 0) io::give_up_rest(*to_);
  }
  descriptor& prepare(operation_suspension& wait) noexcept {
    if (sent_ < 0) {
      wait.result = sent_;
    } else {
      wait.done = static_cast<std::size_t>(sent_);
    }
    // The cast is safe, since the system does not write to the buffer.
    wait.data = reinterpret_cast<std::byte*>(const_cast<char*>(bytes_.data()));
    wait.bytes = bytes_.size();
    wait.whole = whole_;
    wait.socket = kind_ == stream_kind::socket;
    wait.asks_first = kind_ == stream_kind::shared;
    return *to_;
  }
  std::size_t finish(operation_suspension& wait) const {
    if (whole_ || wait.done == 0) wait.check(whole_ ? "write_all" : "write");
    return wait.done;
  }

 private:
  descriptor* to_;
  Bytes bytes_;
  bool whole_;
  stream_kind kind_;
  std::int32_t sent_ = 0;  // bytes sent at once; or -errno
};

// A read whose buffer is leased only when data has arrived.
class lease_job {
 public:
  using result = io_buffer;
  static constexpr action opcode = action::read;
  lease_job(descriptor& from, stream_kind kind) noexcept : from_(&from), kind_(kind) {}
  descriptor& prepare(operation_suspension& wait) const noexcept;
  io_buffer finish(operation_suspension& wait) const;

 private:
  descriptor* from_;
  stream_kind kind_;
};

class send_file_job {
 public:
  using result = std::size_t;
  static constexpr action opcode = action::send_file;
  send_file_job(descriptor& to, stream_kind kind, open_file_ptr from, std::uint64_t offset,
                std::size_t bytes, bool whole) noexcept
      : to_(&to),
        from_(std::move(from)),
        offset_(offset),
        bytes_(bytes),
        whole_(whole),
        kind_(kind) {}
  descriptor& prepare(operation_suspension& wait) const;
  std::size_t finish(operation_suspension& wait) const;

 private:
  descriptor* to_;
  open_file_ptr from_;
  std::uint64_t offset_;
  std::size_t bytes_;
  bool whole_;
  stream_kind kind_;
};

}  // namespace io

// Use: co_await the return values of all operations, at once, in a handler or a task, optionally
// with .timeout(span) and .stop(token).
//
// Thread: an operation suspends the coroutine and never blocks the thread. Cost: a block of the
// pool; one system call for an operation that is done at once. An actor whose operations never wait
// yields after 2 of them (after 64 accepts). Limits: one read and one write may be under way at a
// time; further ones of the same kind queue.
//
// Errors: io_error if the system refuses, timed_out, or cancelled, which a token, the stop of the
// actor, or a close() of the stream causes. When co_await returns or throws, for whatever reason,
// the operation has ended, and nothing touches the buffer any more. Lifetime: buffers belong to the
// caller, and lie in the frame of the coroutine that awaits, or in its actor. The caller must not
// let other code shrink a buffer meanwhile (a member of a reentrant actor). A string that is moved
// in is kept until the operation has ended.
//
// Example (declarations):
//     troupe::task<> copy(troupe::stream& from, troupe::stream& to) {
//       std::array<std::byte, 4096> buffer;
//       for (;;) {
//         const std::size_t bytes = co_await from.read(buffer);
//         if (bytes == 0) co_return;
//         co_await to.write_all(std::span<const std::byte>(buffer.data(), bytes));
//       }
//     }
class stream {
 public:
  // For streams::lines and similar functions, which put back the bytes that they read ahead.
  using read_ahead = io::read_ahead;

  stream() = default;  // not open

  // Reads the available bytes, up to the size of the buffer. Waits for at least one byte; returns 0
  // at the end of the stream, and at once if the buffer is empty.
  io::awaitable<io::read_job> read(std::span<std::byte> to) noexcept { return reads(to, false); }
  io::awaitable<io::read_job> read(std::span<char> to) noexcept {
    return reads(std::as_writable_bytes(to), false);
  }

  // Fills the whole buffer; an empty buffer completes at once. Throws end_of_stream if the peer
  // closes first. After a timeout, a stop or a cancelled call, the next read gets the bytes that
  // have arrived.
  io::awaitable<io::read_job> read_exact(std::span<std::byte> to) noexcept {
    return reads(to, true);
  }
  io::awaitable<io::read_job> read_exact(std::span<char> to) noexcept {
    return reads(std::as_writable_bytes(to), true);
  }

  // Reads the available bytes into a leased buffer, which is empty at the end of the stream. While
  // the operation waits it has no buffer: an idle connection costs none. Also throws io_error
  // (not_enough_memory).
  io::awaitable<io::lease_job> read_some() noexcept {
    return io::awaitable<io::lease_job>(std::in_place, descriptor_, kind_);
  }

  // Writes as many bytes as the system accepts. Returns their number.
  io::awaitable<io::write_job<std::string_view>> write(std::string_view bytes) noexcept {
    return writes(bytes, false);
  }
  io::awaitable<io::write_job<std::string_view>> write(std::span<const std::byte> bytes) noexcept {
    return writes(as_text(bytes), false);
  }

  // Writes all bytes.
  io::awaitable<io::write_job<std::string_view>> write_all(std::string_view bytes) noexcept {
    return writes(bytes, true);
  }
  io::awaitable<io::write_job<std::string_view>> write_all(const char* text) noexcept {
    return writes(std::string_view(text), true);
  }
  io::awaitable<io::write_job<std::string_view>> write_all(
      std::span<const std::byte> bytes) noexcept {
    return writes(as_text(bytes), true);
  }
  io::awaitable<io::write_job<std::string_view>> write_all(const io_buffer& bytes) noexcept {
    return writes(bytes.text(), true);
  }
  io::awaitable<io::write_job<std::string>> write_all(std::string&& bytes) noexcept {
    return writes(std::move(bytes), true);
  }

  // Sends `bytes` bytes of a file, from `offset` on, without a copy in the program: sendfile(2).
  // Counts as a write. Also throws end_of_file if the file has fewer bytes; the existing bytes are
  // then sent. Data that the system does not have in memory is read from the disk by the sending
  // thread, which blocks for that time.
  io::awaitable<io::send_file_job> send_file(const file& from, std::uint64_t offset,
                                             std::size_t bytes) noexcept {
    return io::awaitable<io::send_file_job>(std::in_place, descriptor_, kind_, from.open_, offset,
                                            bytes, true);
  }
  // Sends as many of these bytes as the system accepts. Returns their number; 0 at the end of the
  // file.
  io::awaitable<io::send_file_job> send_file_some(const file& from, std::uint64_t offset,
                                                  std::size_t bytes) noexcept {
    return io::awaitable<io::send_file_job>(std::in_place, descriptor_, kind_, from.open_, offset,
                                            bytes, false);
  }

  bool is_open() const noexcept { return descriptor_.is_open(); }
  // Operations that are under way end as cancelled.
  void close() noexcept { descriptor_.close(); }
  // The descriptor, for direct system calls; this stream still owns it. -1 if it is not open.
  int fd() const noexcept { return descriptor_.fd(); }

 protected:
  explicit stream(io::descriptor&& open, io::stream_kind kind) noexcept
      : descriptor_(std::move(open)), kind_(kind) {}
  [[no_unique_address]] io::descriptor descriptor_;  // a derived class uses its padding

 private:
  friend io::arrival;
  friend io::at_once;
  friend io::read_ahead;
  static std::string_view as_text(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  io::awaitable<io::read_job> reads(std::span<std::byte> to, bool whole) noexcept {
    return io::awaitable<io::read_job>(std::in_place, descriptor_, kind_, to, whole);
  }
  template <class Bytes>
  io::awaitable<io::write_job<Bytes>> writes(Bytes bytes, bool whole) noexcept {
    return io::awaitable<io::write_job<Bytes>>(std::in_place, descriptor_, kind_, std::move(bytes),
                                               whole);
  }
  io::stream_kind kind_ = io::stream_kind::socket;
};

}  // namespace troupe
