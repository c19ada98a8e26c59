// connection: one TLS connection: OpenSSL's object, and the bytes between it and the stream below.
//
// OpenSSL reads from `input_` and writes to `pending_`, through a BIO of ours. Nothing here waits.
// The coroutines that move bytes between those buffers and the stream are in stream.cpp. Each of
// them keeps the connection alive. Two coroutines may run on two threads at the same time: one has
// the reader lock, one the writer lock (docs/protocols/tls.md).
// Invariants
//   T1  OpenSSL's object, `pending_`, `failure_` and the locks are touched only under `mutex_`. No
//       coroutine suspends while it holds `mutex_`.
//   T2  the holder of the reader lock fills the input while the input is empty. OpenSSL therefore
//       finds nothing there in the meantime.
//   T3  `flying_` belongs to the holder of the writer lock. Pending bytes go after it, which keeps
//       the order of OpenSSL.
//   T4  A connection is established once, and a server gives its ticket once, with the first write.
//   T5  The reader lock has one holder, and only a holder releases it.
//
// Rejected: BIO_s_mem, which never gives up its largest size; a reader that waits until its alert
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
#include <utility>
#include <vector>

#include "base/invariant.hpp"
#include "tls/ciphertext.hpp"
#include "tls/context_state.hpp"
#include "tls/library.hpp"
#include "tls/simulated/randomness.hpp"
#include "troupe/io/stream.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/future.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::tls {

enum class step : std::uint8_t {
  done,
  wants_input,
  ended,   // the peer has announced that nothing more comes
  failed,  // throw_failure() has the reason
};

enum class lock_kind : std::uint8_t { reader, writer };

class connection_progress {
 public:
  bool is_established() const noexcept { return stage_ != stage::handshake; }
  // Returns true for the first call.
  bool establish() noexcept {
    if (is_established()) return false;
    stage_ = stage::established;
    return true;
  }
  // Returns true for the first call.
  bool begin_to_write() noexcept {
    TROUPE_INVARIANT(is_established(), "T4");
    if (stage_ == stage::writes) return false;
    stage_ = stage::writes;
    return true;
  }

 private:
  enum class stage : std::uint8_t { handshake, established, writes };
  stage stage_ = stage::handshake;
};

class reader_lock {
 public:
  bool is_held() const noexcept { return holder_ != holder::none; }
  // The writer has it for a moment.
  bool is_writers() const noexcept { return holder_ == holder::writer; }
  // Returns false if it is held.
  bool take() noexcept {
    if (is_held()) return false;
    holder_ = holder::reader;
    return true;
  }
  // The lock that was taken just now is the writer's.
  void lend_to_writer() noexcept {
    TROUPE_INVARIANT(holder_ == holder::reader, "T5");
    holder_ = holder::writer;
  }
  void release() noexcept {
    TROUPE_INVARIANT(is_held(), "T5");
    holder_ = holder::none;
  }

 private:
  enum class holder : std::uint8_t { none, reader, writer };
  holder holder_ = holder::none;
};

// The last bytes from the stream.
enum class arrival : std::uint8_t {
  partial,  // less than there was room for
  full,     // perhaps there is more
  end,      // of the stream
};

class connection {
 public:
  static constexpr std::size_t chunk_bytes = 16 * 1024;  // the content of one record

  // `out` is not open when `in` goes both ways. Throws option_error, std::bad_alloc.
  connection(std::shared_ptr<context_state> context, stream&& in, stream&& out, std::string host);
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection();

  step shake();
  // behind: the number of bytes that were put back and belong to an earlier reader (read_ahead).
  step read(std::span<std::byte> buffer, std::size_t behind, std::size_t& bytes);
  // The bytes that a reader has taken and not given to its caller: the next one gets them, behind
  // the first `behind` bytes. Thread: the one that reads.
  void put_back(std::span<const std::byte> taken, std::size_t behind);
  // Takes so many of these bytes out, from the first on.
  void drop_put_back(std::size_t bytes) noexcept;
  step write(std::string_view chunk);
  step say_goodbye();
  // Sends this chunk and the end, as far as the system takes the bytes at once. No operation is
  // under way, and none follows. Thread: any.
  void say_last(std::string_view chunk) noexcept;
  [[noreturn]] void throw_failure();

  stream& in() noexcept { return incoming_; }
  stream& out() noexcept { return two_ways_ ? incoming_ : outgoing_; }
  void close() noexcept;

  // room: where the next bytes from the stream go. arrived: bytes were written there (0: the end of
  // the stream).
  std::span<std::byte> room();
  void arrived(std::size_t bytes);
  // outgoing: the bytes to send next; empty when there are none. sent: so many of them were sent.
  std::string_view outgoing();
  void sent(std::size_t bytes) noexcept { flying_.advance(bytes); }

  // Whether a coroutine that reads has the reader lock; a writer has it for a moment.
  bool is_read() noexcept {
    const std::lock_guard lock(mutex_);
    return reader_.is_held() && !reader_.is_writers();
  }
  // Whether bytes have arrived that OpenSSL has not read.
  bool has_unread() noexcept {
    const std::lock_guard lock(mutex_);
    return input_begin_ != input_end_;
  }
  // Returns false when another coroutine has the lock.
  bool take_lock(lock_kind which) noexcept;
  void release_lock(lock_kind which) noexcept;
  // Takes the reader lock. If another coroutine has it, returns a future for the next news: more
  // bytes have arrived, or the lock is free.
  std::optional<future<>> lock_or_news();
  // The same for a read, when a writer has the lock for a moment. Throws usage_error when another
  // read has the lock.
  std::optional<future<>> lock_after_writer();

  // True when the peer has announced that nothing more comes.
  bool peer_is_done();
  // True when a read would return something from the bytes that have arrived: bytes, the end, or a
  // failure.
  bool has_input() noexcept;
  // No operation will be under way for a while: gives memory back.
  void rest() noexcept;
  // Throws the failure, if the connection has failed. Throws usage_error before the handshake.
  void check_usable();
  void keep_session(session_ptr session) noexcept;
  // For a server: it also speaks this protocol, and prefers it to the options' protocols, if these
  // name `beside`. Call it before the handshake.
  void also_speaks(std::string protocol, std::string beside) {
    also_ = std::move(protocol);
    beside_ = std::move(beside);
  }
  const std::string& also() const noexcept { return also_; }
  const std::string& beside() const noexcept { return beside_; }
  const std::string& name() const noexcept { return name_; }

  // Calls `at` with OpenSSL's object, under the mutex.
  template <class Look>
  auto inspect(Look&& at) {
    const inside lock(*this);
    return at(*ssl_);
  }

 private:
  static constexpr std::size_t small_bytes = 1024;  // the buffer of an idle connection
  // The most unsent answers that reading may leave. A writer leaves at most a quarter of that.
  static constexpr std::size_t unsent_bytes_max = 64 * 1024;

  static const BIO_METHOD* bio_method();
  static int bio_read(BIO* bio, char* to, std::size_t room, std::size_t* count) noexcept;
  static int bio_write(BIO* bio, const char* from, std::size_t count,
                       std::size_t* written) noexcept;
  static long bio_control(BIO* bio, int command, long number, void* data) noexcept;

  // Held around calls to OpenSSL.
  struct inside {
    explicit inside(connection& target)
        : lock(target.mutex_), random(target.random_), entered(target) {
      entered.is_inside_ = true;
    }
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;
    ~inside() { entered.is_inside_ = false; }
    const std::lock_guard<std::mutex> lock;
    const randomness::use random;
    connection& entered;
  };

  void verify_host();
  step after(int result, const char* operation);
  step must_not_end(step how, const char* operation);
  std::optional<future<>> take_or_await_news();
  void fail(const char* operation);
  // A client begins as a request of HTTP does: with a capital letter.
  bool begins_like_http() const noexcept {
    return context_->server() && first_byte_ >= 'A' && first_byte_ <= 'Z';
  }
  void count_handshake(std::size_t bytes);
  void keep_renewed_session() noexcept;
  void tell_news() noexcept;

  const std::shared_ptr<context_state> context_;
  stream incoming_, outgoing_;
  std::string also_, beside_;
  const std::string host_, name_;  // the server's host name; the peer's name in errors
  const bool two_ways_;
  std::mutex mutex_;
  randomness random_;
  ssl_ptr ssl_;
  std::optional<tls_error> failure_;
  std::optional<event> news_;  // news of the reader, for a writer that waits for it
  connection_progress progress_;
  reader_lock reader_;
  bool writing_ = false;    // the writer lock is held
  bool is_inside_ = false;  // OpenSSL is being called, under the mutex
  bool memory_failed_ = false;
  // set in write(): no bytes are to be sent before those that OpenSSL writes
  bool sends_at_once_ = false;
  arrival last_input_ = arrival::partial;
  std::size_t input_begin_ = 0, input_end_ = 0;
  const std::byte* input_ = nullptr;  // points into one of the next two
  std::size_t handshake_bytes_ = 0;   // that the peer has sent before the handshake was done
  char first_byte_ = '\0';            // that the peer has sent
  using small_block = std::array<std::byte, small_bytes>;
  std::unique_ptr<small_block> small_;  // null while the connection rests
  ciphertext large_;
  ciphertext pending_, flying_;
  std::vector<std::byte> put_back_;  // before the bytes that OpenSSL has
};

[[noreturn]] void refuse_lock(lock_kind which);

// Holds a lock for a scope.
class held_lock {
 public:
  // Throws usage_error when another coroutine has the lock.
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
