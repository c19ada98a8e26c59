// rate_limiter: a token bucket that limits how often something may happen.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

#include "troupe/base/time_span.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

// How often: `tokens` in each `per`, and at most `burst` at once. A value that makes no sense is an
// option_error of the limiter's constructor.
struct rate_limit {
  // Default 1; at least 1, at most a million million.
  std::uint64_t tokens = 1;
  // Default 1 s; at least 1 ns, at most 1,000 days.
  time_span per = std::chrono::seconds(1);
  // How many unused tokens are kept. 0 (default): as many as `tokens`. At most a million million.
  std::uint64_t burst = 0;
};

namespace kit {

struct limiter_state;

// The operation that acquire() awaits.
class token_call {
 public:
  using result = void;
  token_call(std::shared_ptr<limiter_state> from, std::uint64_t tokens) noexcept
      : from_(std::move(from)), tokens_(tokens) {}
  task<> start(tasks::limits within) &&;
  void block(time_span at_most, const std::stop_token& stop) &&;

 private:
  std::shared_ptr<limiter_state> from_;
  std::uint64_t tokens_;
};

}  // namespace kit

// A token bucket: it fills at a steady rate up to `burst`, with which it begins, and each limited
// operation takes tokens. Copies refer to the same limiter.
//
// Thread: any. Cost: try_acquire 32 ns; acquire 45 ns when there are enough tokens. Memory: 140
// bytes. Errors: option_error; usage_error for more tokens at once than the burst.
//
// Example:
//     troupe::task<> poll(troupe::rate_limiter ten_a_second) {
//       for (int i = 0; i < 30; ++i) co_await ten_a_second.acquire();
//       std::cout << troupe::now() / std::chrono::seconds(1) << " s\n";  // 2 s, and a little
//     }
//     int main() {
//       troupe::runtime rt({.policy = troupe::policy::simulated});
//       rt.spawn(poll(troupe::rate_limiter({.tokens = 10})));
//       rt.run();
//     }
class rate_limiter {
 public:
  explicit rate_limiter(rate_limit limit = {});

  // Takes tokens. Returns false, and takes none, if there are not enough now, or if other callers
  // wait.
  [[nodiscard]] bool try_acquire(std::uint64_t tokens = 1) const;

  // Waits for tokens and takes them: co_await it in a handler or a task, optionally with timeout()
  // or stop(); on a plain thread get() blocks. Waiting callers get their tokens in the order in
  // which they began to wait. Errors: timed_out, as soon as it is certain that the tokens will not
  // be there in time; cancelled. In both cases none were taken. get() throws usage_error in a
  // handler, and where it would wait for the virtual time of a simulated program.
  using acquiring = tasks::limited_task<kit::token_call>;
  acquiring acquire(std::uint64_t tokens = 1) const;

  // The time until this number of tokens is available, after the waiting callers got theirs: for a
  // Retry-After. Zero: try_acquire would succeed now.
  std::chrono::nanoseconds wait_time(std::uint64_t tokens = 1) const;

  // The number of tokens that are available now.
  std::uint64_t available() const;

 private:
  void check(std::uint64_t tokens) const;
  std::shared_ptr<kit::limiter_state> state_;
};

}  // namespace troupe
