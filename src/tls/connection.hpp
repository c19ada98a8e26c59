// connection: one connection of TLS: OpenSSL's object, and what is under way between it and the
// stream below.
//
// OpenSSL reads from `input_` and writes to `pending_`, by a BIO of ours; nothing here waits. The
// coroutines that move bytes between those and the stream are in stream.cpp. They keep the
// connection alive, each for itself. Two coroutines may be at work, on two threads: one has the
// reader lock, one the writer lock (docs/protocols/tls.md). Invariants
//   T1  OpenSSL's object, `pending_`, `failure_` and the locks are touched under `mutex_`; nobody
//   suspends under it. T2  the input is filled by who has the reader lock, while it is empty: so
//   OpenSSL finds nothing there meanwhile. T3  `flying_` belongs to who has the writer lock. What
//   is pending goes after it: the order is that of OpenSSL.
// Rejected: BIO_s_mem, which keeps its largest size for ever; a reader that waits until its alert
// is sent: see tell_peer().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tls/ciphertext.hpp"
#include "tls/context_state.hpp"
#include "tls/library.hpp"
#include "troupe/io/stream.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/future.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::tls {

enum class step : std::uint8_t {
  done,
  wants_input,
  ended,   // the peer has said that nothing more comes
  failed,  // throw_failure() says how
};

enum class lock_kind : std::uint8_t { reader, writer };

class connection {
 public:
  static constexpr std::size_t chunk_bytes = 16 * 1024;  // a record's worth

  // `out` is not open when `in` goes both ways. Throws option_error, std::bad_alloc.
  connection(std::shared_ptr<context_state> context, stream&& in, stream&& out, std::string host);
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection();

  step shake();
  step read(std::span<std::byte> to, std::size_t& bytes);
  step write(std::string_view chunk);
  step say_goodbye();
  [[noreturn]] void throw_failure();

  stream& in() noexcept { return in_; }
  stream& out() noexcept { return two_ways_ ? in_ : out_; }
  void close() noexcept;

  // Where the next bytes from the stream go, and that they have come (0: its end).
  std::span<std::byte> room();
  void arrived(std::size_t bytes);
  // What is to be sent next, and what of it was sent. Empty: nothing.
  std::string_view outgoing();
  void sent(std::size_t bytes) noexcept { flying_.advance(bytes); }

  // False when somebody has it.
  bool take_lock(lock_kind which) noexcept;
  void release_lock(lock_kind which) noexcept;
  // The reader lock, or when somebody has that, what to await: that more has come, or that it is
  // free.
  std::optional<future<>> lock_or_news();
  // For a read: the same, if a writer has the lock for a moment. Throws usage_error when another
  // read has it.
  std::optional<future<>> lock_after_writer();

  // The peer has said that nothing more comes.
  bool peer_is_done();
  // Of what has come a read would have something to say: bytes, the end, or a failure.
  bool has_input() noexcept;
  // Throws the failure, if there was one, and usage_error before the handshake is done.
  void check_usable();
  void keep_session(session_ptr one) noexcept;
  const std::string& name() const noexcept { return name_; }

  // With OpenSSL's object, under the mutex.
  template <class Look>
  auto look(Look&& at) {
    std::lock_guard lock(mutex_);
    return at(*ssl_);
  }

 private:
  static constexpr std::size_t small_bytes = 1024;  // an idle connection waits with that
  // what a writer has there is a quarter of that
  static constexpr std::size_t unsent_bytes_max = 64 * 1024;

  static const BIO_METHOD* bio_method();
  static int bio_read(BIO* bio, char* to, std::size_t room, std::size_t* count) noexcept;
  static int bio_write(BIO* bio, const char* from, std::size_t count,
                       std::size_t* written) noexcept;
  static long bio_control(BIO* bio, int what, long number, void* data) noexcept;

  void verify_host();
  step after(int result, const char* operation);
  step must_not_end(step how, const char* operation);
  std::optional<future<>> take_or_await_news();
  void fail(const char* operation);
  void tell_news() noexcept;

  const std::shared_ptr<context_state> context_;
  stream in_, out_;
  const std::string host_, name_;  // of the server; of the peer, in errors
  const bool two_ways_;
  std::mutex mutex_;
  ssl_ptr ssl_;
  std::optional<tls_error> failure_;
  std::optional<event> news_;  // of the reader, for a writer that waits for it
  bool reading_ = false, writing_ = false;
  bool writer_reads_ = false;  // it has the reader lock as well
  bool established_ = false, ticket_given_ = false, memory_failed_ = false;
  bool sends_at_once_ = false;  // in write(): nothing lies in front of what OpenSSL writes
  bool input_ended_ = false, input_was_full_ = false;
  std::size_t input_begin_ = 0, input_end_ = 0;
  const std::byte* input_ = nullptr;  // in one of these two
  std::array<std::byte, small_bytes> small_;
  ciphertext large_;
  ciphertext pending_, flying_;
};

[[noreturn]] void refuse_lock(lock_kind which);

// A lock for a scope.
class held_lock {
 public:
  // Throws usage_error when somebody has it.
  held_lock(connection& on, lock_kind which) : on_(&on), which_(which) {
    if (!on.take_lock(which)) refuse();
  }
  struct taken {};
  held_lock(connection& on, lock_kind which, taken) noexcept : on_(&on), which_(which) {}
  held_lock(const held_lock&) = delete;
  held_lock& operator=(const held_lock&) = delete;
  ~held_lock() { on_->release_lock(which_); }

 private:
  void refuse() const { refuse_lock(which_); }
  connection* on_;
  lock_kind which_;
};

}  // namespace troupe::tls
