#include "troupe/kit/retry.hpp"

#include <algorithm>
#include <cmath>

#include "kit/clock_and_random.hpp"
#include "troupe/base/error.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe {
namespace {

void check(const retry_policy& policy) {
  if (policy.attempts == 0) throw option_error("troupe: retry: attempts must be at least 1");
  if (policy.delay.count() < 0 || policy.delay_max.count() < 0)
    throw option_error("troupe: retry: delay and delay_max must not be negative");
  if (!(policy.factor >= 1) || !std::isfinite(policy.factor))
    throw option_error("troupe: retry: the factor must be at least 1");
  if (policy.attempt_time.count() <= 0 || policy.total_time.count() <= 0)
    throw option_error("troupe: retry: attempt_time and total_time must be longer than zero");
}

// How long the error itself asks to wait; zero for most errors. The second of the others is a guess
// for those who have no delay of their own: the policy's is better.
std::chrono::nanoseconds asked_for(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const try_later& later) {
    return later.retry_after();
  } catch (...) {
    return std::chrono::nanoseconds(0);
  }
}

}  // namespace

bool retry_any_error::operator()(const std::exception_ptr& failure) const {
  const std::optional<verdict> known = kit::verdict_of(failure);
  return !known || known->retry != verdict::again::never;
}

namespace kit {

bool is_cancellation(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::optional<verdict> verdict_of(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const error& known) {
    return known.judged();
  } catch (...) {
    return std::nullopt;
  }
}

retry_course::retry_course(const retry_policy& policy, const retry_budget* budget)
    : policy_(policy),
      budget_(budget),
      began_(now()),
      delay_ns_(static_cast<double>(policy.delay.count())) {
  check(policy_);
  if (budget_ != nullptr) budget_->count_call();
}

std::chrono::nanoseconds retry_course::begin() {
  ++attempt_.number;
  // The report until the attempt has ended: a cancelled attempt reports nothing more.
  end(retry_report::end::cancelled);
  if (policy_.total_time == std::chrono::nanoseconds::max()) return policy_.attempt_time;
  const std::chrono::nanoseconds left = policy_.total_time - (now() - began_);
  // A delay ends late by some time: an attempt that was begun still gets a little time.
  return std::min<std::chrono::nanoseconds>(policy_.attempt_time,
                                            std::max(left, std::chrono::nanoseconds(1)));
}

std::chrono::nanoseconds retry_course::next_delay(std::chrono::nanoseconds at_least) noexcept {
  constexpr double longest_ns = 1e18;  // 31 years, which an std::int64_t surely holds
  const double most = std::min(static_cast<double>(policy_.delay_max.count()), longest_ns);
  double span = std::min(delay_ns_, most);
  delay_ns_ = std::min(delay_ns_ * policy_.factor, most);
  if (policy_.jitter == retry_jitter::full) {
    span *= random_part();
  } else if (policy_.jitter == retry_jitter::equal) {
    span *= 0.5 + 0.5 * random_part();
  }
  return std::max(at_least, std::chrono::nanoseconds(static_cast<std::int64_t>(span)));
}

std::chrono::nanoseconds retry_course::after(std::exception_ptr failed, bool wanted) {
  attempt_.last_error = std::move(failed);
  if (is_cancellation(attempt_.last_error)) give_up(retry_report::end::cancelled);
  if (!wanted) give_up(retry_report::end::refused);
  if (attempt_.number >= policy_.attempts) give_up(retry_report::end::attempts);
  const std::chrono::nanoseconds delay = next_delay(asked_for(attempt_.last_error));
  if (policy_.total_time != std::chrono::nanoseconds::max() &&
      delay >= policy_.total_time - (now() - began_))
    give_up(retry_report::end::total_time);
  if (budget_ != nullptr && !budget_->take()) give_up(retry_report::end::budget);
  waited_ += delay;
  end(retry_report::end::cancelled);  // as in begin()
  return delay;
}

void retry_course::end(retry_report::end how) noexcept {
  if (policy_.report == nullptr) return;
  policy_.report->attempts = attempt_.number;
  policy_.report->waited = waited_;
  policy_.report->took = now() - began_;
  policy_.report->ended = how;
}

void retry_course::give_up(retry_report::end how) {
  end(how);
  std::rethrow_exception(std::exchange(attempt_.last_error, nullptr));
}

}  // namespace kit

}  // namespace troupe
