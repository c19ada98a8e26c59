// at_once: a write that is tried without suspending a coroutine. For small answers, which the
// system nearly always takes. Internal to the library.
#pragma once

#include <cerrno>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "io/reactor/reactor.hpp"
#include "troupe/io/stream.hpp"
#include "troupe/task/async_call.hpp"

namespace troupe::io {

struct at_once {
  // Call it in a turn, for a stream that was used before. Returns how many bytes the system took.
  // Returns 0 when it takes none now, when other writes are queued, or when it refuses: an awaited
  // write then waits, or reports the error.
  static std::size_t write(stream& target, std::string_view bytes) noexcept {
    slot* const at = target.kind_ == stream_kind::socket ? target.descriptor_.bound() : nullptr;
    const std::ptrdiff_t sent = at == nullptr ? 0 : at->owner->write_at_once(*at, bytes, false);
    if (sent > 0 && at->owner->counted != nullptr) [[unlikely]]
      at->owner->counted->add_write(sent);
    return sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }

  // The same for the last bytes before the stream is closed. Thread: any. No operation is under
  // way.
  static void write_last(const stream& target, std::string_view bytes) noexcept {
    slot* const at = target.kind_ == stream_kind::socket ? target.descriptor_.bound() : nullptr;
    if (at == nullptr) return;
    const std::lock_guard lock(at->mutex);
    while (at->fd >= 0 && !bytes.empty()) {
      const std::ptrdiff_t sent =
          at->owner->calls.send(at->fd, bytes.data(), bytes.size(), nullptr, 0);
      if (sent == -EINTR) continue;
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  // co_await it before each of several such writes. The result is true when this turn has done as
  // much as operations that need not wait may do, so that other turns are to run. Without it, a
  // coroutine that writes to a peer that takes everything would keep its worker.
  class turn_is_over {
   public:
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> handle) noexcept {
      tasks::async_call& call = *handle.promise().call;
      is_over_ = !call.spend(share);
      if (is_over_) call.refill();
      return false;
    }
    bool await_resume() const noexcept { return is_over_; }

   private:
    // Units of the 128 (async_call::spend). With this share a turn sends 8 records of TLS, 128 KiB,
    // in about 0.1 ms. With 2 records in a turn, sending files over 4 connections at a time costs 4
    // % more (io/tls_bulk).
    static constexpr std::uint8_t share = 14;
    bool is_over_ = false;
  };
};

}  // namespace troupe::io
