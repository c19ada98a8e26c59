// Invariants, all under the mutex
//   C1  `period_` changes whenever the state does, so that a permit of an earlier state counts
//       nothing.
//   C2  in the state half_open, `trials_` permits are out or have succeeded, at most
//       options_.trials.
#include "troupe/kit/circuit_breaker.hpp"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/invariant.hpp"
#include "kit/clock_and_random.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/small_mutex.hpp"

namespace troupe {

namespace kit {

class circuit_state : public std::enable_shared_from_this<circuit_state> {
 public:
  explicit circuit_state(const circuit_options& options) noexcept : options_(options) {}

  circuit_breaker::permit enter();
  void leave(std::uint64_t period) noexcept;
  void count(std::uint64_t period, bool succeeded) noexcept;
  circuit_counts counts();
  void reset() noexcept;

 private:
  // The counts of one tenth of the window.
  struct step {
    std::int64_t number = -1;
    std::uint64_t succeeded = 0, failed = 0;
  };
  static constexpr std::int64_t steps_max = 10;

  std::int64_t look() noexcept;
  void be(circuit next) noexcept;
  void count_in_window(std::int64_t now_ns, bool succeeded) noexcept;
  step sum(std::int64_t now_ns) const noexcept;
  std::int64_t step_of(std::int64_t now_ns) const noexcept {
    return now_ns / (options_.window.count() / steps_max);
  }
  void open(std::int64_t now_ns) noexcept {
    be(circuit::open);
    opened_ns_ = now_ns;
    ++opened_;
  }

  const circuit_options options_;
  base::small_mutex mutex_;
  object_clock clock_;
  circuit state_ = circuit::closed;
  std::uint64_t period_ = 0;
  std::uint32_t trials_ = 0, trials_succeeded_ = 0;
  std::int64_t opened_ns_ = 0;
  std::uint64_t refused_ = 0, opened_ = 0;
  std::array<step, steps_max> steps_{};
};

void circuit_state::be(circuit next) noexcept {
  state_ = next;
  ++period_;
  trials_ = trials_succeeded_ = 0;
  steps_.fill({});
}

// Returns the time, after the changes that are due by then.
std::int64_t circuit_state::look() noexcept {
  const std::int64_t now_ns = clock_.now_ns();
  if (state_ == circuit::open && now_ns - opened_ns_ >= options_.open_for.count())
    be(circuit::half_open);
  return now_ns;
}

circuit_breaker::permit circuit_state::enter() {
  std::chrono::nanoseconds retry_after{0};
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t now_ns = look();
    const bool is_trial = state_ == circuit::half_open && trials_ < options_.trials;
    if (state_ == circuit::closed || is_trial) {
      if (is_trial) ++trials_;
      return {shared_from_this(), period_};
    }
    ++refused_;
    // While trials are under way it is unknown when they end: an open circuit's time is a fair
    // guess.
    retry_after = options_.open_for;
    if (state_ == circuit::open) retry_after -= std::chrono::nanoseconds(now_ns - opened_ns_);
  }
  throw circuit_open(
      "troupe: circuit_breaker: most calls failed, and this one was not made; wait for "
      "retry_after() before the next",
      retry_after);
}

void circuit_state::leave(std::uint64_t period) noexcept {
  const std::lock_guard lock(mutex_);
  if (period != period_ || state_ != circuit::half_open) return;
  TROUPE_INVARIANT(trials_ > trials_succeeded_, "C2");
  --trials_;
}

void circuit_state::count(std::uint64_t period, bool succeeded) noexcept {
  const std::lock_guard lock(mutex_);
  const std::int64_t now_ns = look();
  if (period != period_) return;
  TROUPE_INVARIANT(state_ != circuit::open, "C1");
  if (state_ == circuit::closed) return count_in_window(now_ns, succeeded);
  TROUPE_INVARIANT(state_ == circuit::half_open && trials_ <= options_.trials, "C2");
  if (!succeeded) return open(now_ns);
  if (++trials_succeeded_ == options_.trials) be(circuit::closed);
}

void circuit_state::count_in_window(std::int64_t now_ns, bool succeeded) noexcept {
  const std::int64_t number = step_of(now_ns);
  step& now = steps_[static_cast<std::size_t>(number % steps_max)];
  if (now.number != number) now = {number, 0, 0};
  ++(succeeded ? now.succeeded : now.failed);
  if (succeeded) return;
  const step all = sum(now_ns);
  const std::uint64_t calls = all.succeeded + all.failed;
  if (calls >= options_.calls_min &&
      static_cast<double>(all.failed) >= options_.failure_rate * static_cast<double>(calls))
    open(now_ns);
}

circuit_state::step circuit_state::sum(std::int64_t now_ns) const noexcept {
  const std::int64_t newest = step_of(now_ns);
  step all{newest, 0, 0};
  for (const step& counted : steps_) {
    if (counted.number <= newest - steps_max || counted.number > newest) continue;
    all.succeeded += counted.succeeded;
    all.failed += counted.failed;
  }
  return all;
}

circuit_counts circuit_state::counts() {
  const std::lock_guard lock(mutex_);
  const std::int64_t now_ns = look();
  const step all = sum(now_ns);
  circuit_counts seen{state_, all.succeeded, all.failed, refused_, opened_, {}};
  if (state_ == circuit::open)
    seen.retry_after = options_.open_for - std::chrono::nanoseconds(now_ns - opened_ns_);
  return seen;
}

void circuit_state::reset() noexcept {
  const std::lock_guard lock(mutex_);
  be(circuit::closed);
}

bool shows_nothing(const std::exception_ptr& failure) noexcept {
  if (is_cancellation(failure)) return true;
  const std::optional<verdict> known = verdict_of(failure);
  if (!known || known->ran != verdict::effect::none) return false;
  return known->fault == verdict::party::caller || known->fault == verdict::party::us;
}

}  // namespace kit

bool fault_of_service::operator()(const std::exception_ptr& failure) const {
  const std::optional<verdict> known = kit::verdict_of(failure);
  return !known || known->fault == verdict::party::upstream || known->fault == verdict::party::peer;
}

circuit_breaker::circuit_breaker(circuit_options options) {
  if (!(options.failure_rate > 0 && options.failure_rate <= 1))
    throw option_error("troupe: circuit_breaker: the failure rate must be above 0 and at most 1");
  if (options.calls_min == 0 || options.trials == 0)
    throw option_error("troupe: circuit_breaker: calls_min and trials must be at least 1");
  if (options.window.count() < 10 || options.open_for.count() < 1)
    throw option_error(
        "troupe: circuit_breaker: the window must be at least 10 ns, and open_for at least 1 ns");
  state_ = std::make_shared<kit::circuit_state>(options);
}

circuit_breaker::permit circuit_breaker::enter() const { return state_->enter(); }
circuit circuit_breaker::state() const { return state_->counts().state; }
circuit_counts circuit_breaker::counts() const { return state_->counts(); }
void circuit_breaker::reset() const { state_->reset(); }

circuit_breaker::permit::~permit() {
  if (circuit_ != nullptr) circuit_->leave(period_);
}
void circuit_breaker::permit::succeed() noexcept {
  if (const auto circuit = std::exchange(circuit_, nullptr)) circuit->count(period_, true);
}
void circuit_breaker::permit::fail() noexcept {
  if (const auto circuit = std::exchange(circuit_, nullptr)) circuit->count(period_, false);
}

}  // namespace troupe
