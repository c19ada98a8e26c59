// at_once: a write that is tried without a coroutine's wait. For who writes small answers, which
// the system nearly always takes. The library's own.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/reactor/reactor.hpp"
#include "troupe/io/stream.hpp"
#include "troupe/task/async_call.hpp"

namespace troupe::io {

struct at_once {
  // In a turn, of a stream that was used before: how many bytes the system took. 0 when it takes
  // none now, when others write, or when it refuses: a write that is awaited then waits, or says
  // why.
  static std::size_t write(stream& to, std::string_view bytes) noexcept {
    slot* const at = to.kind_ == stream_kind::socket ? to.descriptor_.bound() : nullptr;
    const std::ptrdiff_t sent = at == nullptr ? 0 : at->owner->write_at_once(*at, bytes, false);
    return sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }

  // co_await before each of several: true when as much was done in this turn as by operations that
  // need no wait, and others are to have theirs. Else nobody would be let in by who writes to a
  // peer that takes everything.
  class turn_is_over {
   public:
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> who) noexcept {
      tasks::async_call& in = *who.promise().in;
      is_over_ = in.at_once >= operation_suspension::at_once_max;
      in.at_once = is_over_ ? 0 : static_cast<std::uint8_t>(in.at_once + share);
      return false;
    }
    bool await_resume() const noexcept { return is_over_; }

   private:
    // 8 records of TLS, 128 KiB, and some 0.1 ms: where 4 connections are sent files at a time 2
    // cost 4 % more (io/tls_bulk).
    static constexpr std::uint8_t share = operation_suspension::share / 4;
    bool is_over_ = false;
  };
};

}  // namespace troupe::io
