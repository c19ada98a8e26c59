// Invariants, all under the mutex
//   L1  `level` is the number of tokens, in units of a token for each ns of `per`: a nanosecond
//       therefore adds exactly `tokens` units, and nothing is ever rounded.
//   L2  `wanted` is the sum of the tokens of those who wait. While it is not zero, only the
//       holder of `turn` takes tokens: no caller overtakes another.
#include "troupe/kit/rate_limiter.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>

#include "base/clock.hpp"
#include "base/invariant.hpp"
#include "kit/clock_and_random.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/kit/stoppable_sleep.hpp"
#include "troupe/sync/permits.hpp"
#include "troupe/sync/waiting.hpp"
#include "troupe/task/current_actor.hpp"

namespace troupe {

namespace kit {

__extension__ using wide = unsigned __int128;

struct limiter_state {
  explicit limiter_state(const rate_limit& given) noexcept : limit(given), level(most()) {}

  wide units(std::uint64_t tokens) const noexcept {
    return wide{tokens} * static_cast<std::uint64_t>(limit.per.count());
  }
  wide most() const noexcept { return units(limit.burst); }
  void fill() noexcept {
    const std::int64_t now_ns = clock.now_ns();
    if (now_ns > filled_ns && filled_ns != 0)
      level = std::min(most(),
                       level + wide{static_cast<std::uint64_t>(now_ns - filled_ns)} * limit.tokens);
    filled_ns = now_ns;
    TROUPE_INVARIANT(level <= most(), "L1");
  }
  bool take(std::uint64_t tokens) noexcept {
    if (level < units(tokens)) return false;
    level -= units(tokens);
    return true;
  }
  // How long it takes until there are so many units.
  std::chrono::nanoseconds until(wide wanted_units) const noexcept {
    if (wanted_units <= level) return std::chrono::nanoseconds(0);
    const wide ns = (wanted_units - level + limit.tokens - 1) / limit.tokens;
    return ns > wide{INT64_MAX} ? std::chrono::nanoseconds::max()
                                : std::chrono::nanoseconds(static_cast<std::int64_t>(ns));
  }

  const rate_limit limit;
  base::small_mutex mutex;
  object_clock clock;
  std::int64_t filled_ns = 0;
  wide level;
  wide wanted = 0;
  sync::permits turn{1};  // its holder is the first of those who wait
};

namespace {

// The wait to be the first.
struct token_turn : sync::permit_waiter {
  static constexpr const char* name = "tokens of a rate_limiter";
  explicit token_turn(sync::permits& turn) noexcept : permits(&turn) {}
  token_turn(token_turn&& other) noexcept : permits(other.permits) {}
  bool start() noexcept { return permits->take_or_wait(*this); }
  bool withdraw() noexcept { return permits->withdraw(*this); }
  bool put_back() noexcept {
    permits->give(1);
    return true;
  }
  void finish() noexcept {}
  sync::permits* permits;
};

class turn_holder {
 public:
  explicit turn_holder(sync::permits& turn) noexcept : turn_(turn) {}
  turn_holder(const turn_holder&) = delete;
  turn_holder& operator=(const turn_holder&) = delete;
  ~turn_holder() { turn_.give(1); }

 private:
  sync::permits& turn_;
};

// Counts the tokens that a party waits for, as long as it waits.
class wanted_tokens {
 public:
  wanted_tokens(limiter_state& limiter, std::uint64_t tokens) noexcept
      : limiter_(limiter), tokens_(tokens) {}
  wanted_tokens(const wanted_tokens&) = delete;
  wanted_tokens& operator=(const wanted_tokens&) = delete;
  ~wanted_tokens() {
    if (!waits_) return;
    const std::lock_guard lock(limiter_.mutex);
    end_waiting();
  }
  // Returns true if the tokens were there; else the party waits from now on.
  bool take_or_wait() noexcept {
    const std::lock_guard lock(limiter_.mutex);
    limiter_.fill();
    if (limiter_.wanted == 0 && limiter_.take(tokens_)) return true;
    limiter_.wanted += tokens_;
    waits_ = true;
    return false;
  }
  // The same for the first of those who wait; returns how long it must wait. Throws usage_error for
  // a thread whose wait would never end.
  std::chrono::nanoseconds take() {
    const std::lock_guard lock(limiter_.mutex);
    limiter_.fill();
    if (!limiter_.take(tokens_)) {
      if (limiter_.clock.is_frozen())
        throw usage_error(
            "troupe: rate_limiter: its clock is a simulated program's, which does not advance "
            "while a plain thread waits; await acquire() in a task of that program");
      return limiter_.until(limiter_.units(tokens_));
    }
    end_waiting();
    waits_ = false;
    return std::chrono::nanoseconds(0);
  }

 private:
  // Under the mutex.
  void end_waiting() noexcept {
    TROUPE_INVARIANT(limiter_.wanted >= tokens_, "L2");
    limiter_.wanted -= tokens_;
  }

  limiter_state& limiter_;
  const std::uint64_t tokens_;
  bool waits_ = false;
};

void refuse_stopped(const std::stop_token& stop) {
  if (stop.stop_requested())
    throw cancelled("troupe: rate_limiter: a stop was requested before the wait for tokens");
}

void refuse_late(std::chrono::nanoseconds span, std::chrono::nanoseconds left) {
  if (span > left) throw timed_out("troupe: rate_limiter: the tokens will not be there in time");
}

// Blocks the thread for so long, or until a stop is requested.
void block_for(std::chrono::nanoseconds span, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, span, [] { return false; });
  if (stop.stop_requested())
    throw cancelled("troupe: rate_limiter: a stop was requested during the wait for tokens");
}

task<> acquire_tokens(std::shared_ptr<limiter_state> from, std::uint64_t tokens,
                      tasks::limits within) {
  refuse_stopped(within.stop());
  wanted_tokens wanted(*from, tokens);
  if (wanted.take_or_wait()) co_return;
  sync::awaiting<token_turn> turn(std::in_place, from->turn);
  co_await std::move(turn).timeout(within.left()).stop(within.stop());
  const turn_holder first(from->turn);
  for (;;) {
    const std::chrono::nanoseconds span = wanted.take();
    if (span.count() == 0) co_return;
    refuse_late(span, within.left());
    auto pause = stoppable_sleep(span);
    co_await std::move(pause).stop(within.stop());
  }
}

}  // namespace

task<> token_call::start(tasks::limits within) && {
  return acquire_tokens(std::move(from_), tokens_, std::move(within));
}

void token_call::block(time_span at_most, const std::stop_token& stop) && {
  tasks::check_may_block("tokens of a rate_limiter");
  refuse_stopped(stop);
  wanted_tokens wanted(*from_, tokens_);
  if (wanted.take_or_wait()) return;
  const std::int64_t began = base::now_ns();
  const auto left = [&]() -> std::chrono::nanoseconds {
    const std::chrono::nanoseconds waited(base::now_ns() - began);
    return at_most == time_span::max() ? at_most : at_most - waited;
  };
  sync::awaiting<token_turn> turn(std::in_place, from_->turn);
  std::move(turn).timeout(left()).stop(stop).get();
  const turn_holder first(from_->turn);
  for (;;) {
    const std::chrono::nanoseconds span = wanted.take();
    if (span.count() == 0) return;
    refuse_late(span, left());
    block_for(span, stop);
  }
}

}  // namespace kit

rate_limiter::rate_limiter(rate_limit limit) {
  constexpr std::uint64_t most = 1'000'000'000'000;
  if (limit.burst == 0) limit.burst = limit.tokens;
  if (limit.tokens == 0 || limit.tokens > most || limit.burst > most)
    throw option_error("troupe: rate_limiter: tokens and burst must be between 1 and 10^12");
  if (limit.per.count() <= 0 || limit.per > std::chrono::hours(24'000))
    throw option_error("troupe: rate_limiter: `per` must be between 1 ns and 1,000 days");
  state_ = std::make_shared<kit::limiter_state>(limit);
}

void rate_limiter::check(std::uint64_t tokens) const {
  if (tokens <= state_->limit.burst) return;
  throw usage_error("troupe: rate_limiter: " + std::to_string(tokens) +
                    " tokens are more than its burst of " + std::to_string(state_->limit.burst) +
                    ", and will never be there at once");
}

bool rate_limiter::try_acquire(std::uint64_t tokens) const {
  check(tokens);
  const std::lock_guard lock(state_->mutex);
  state_->fill();
  return state_->wanted == 0 && state_->take(tokens);
}

rate_limiter::acquiring rate_limiter::acquire(std::uint64_t tokens) const {
  check(tokens);
  return acquiring(std::in_place, state_, tokens);
}

std::chrono::nanoseconds rate_limiter::wait_time(std::uint64_t tokens) const {
  check(tokens);
  const std::lock_guard lock(state_->mutex);
  state_->fill();
  const auto per = static_cast<std::uint64_t>(state_->limit.per.count());
  return state_->until((state_->wanted + tokens) * per);
}

std::uint64_t rate_limiter::available() const {
  const std::lock_guard lock(state_->mutex);
  state_->fill();
  return static_cast<std::uint64_t>(state_->level /
                                    static_cast<std::uint64_t>(state_->limit.per.count()));
}

}  // namespace troupe
