#include "troupe/kit/retry_budget.hpp"

#include <algorithm>
#include <mutex>

#include "kit/clock_and_random.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/small_mutex.hpp"

namespace troupe {
namespace {

bool is_within(double value, double least, double most) noexcept {
  return value >= least && value <= most;  // false for a NaN
}

}  // namespace

struct retry_budget::state {
  explicit state(const retry_budget_options& given) noexcept : options(given), tokens(given.kept) {}
  void add(double more) noexcept { tokens = std::min(tokens + more, options.kept); }
  // Adds the tokens of the time that has passed.
  void catch_up() noexcept {
    const std::int64_t now_ns = clock.now_ns();
    if (now_ns > seen_ns && seen_ns != 0)
      add(static_cast<double>(now_ns - seen_ns) * 1e-9 * options.per_second);
    seen_ns = now_ns;
  }
  const retry_budget_options options;
  base::small_mutex mutex;
  kit::object_clock clock;
  std::int64_t seen_ns = 0;
  double tokens;
};

retry_budget::retry_budget(retry_budget_options options) {
  constexpr double most = 1e6;
  if (!is_within(options.ratio, 0, 1000))
    throw option_error("troupe: retry_budget: the ratio must be between 0 and 1000");
  if (!is_within(options.per_second, 0, most))
    throw option_error("troupe: retry_budget: per_second must be between 0 and 1,000,000");
  if (!is_within(options.kept, 1, most))
    throw option_error("troupe: retry_budget: kept must be between 1 and 1,000,000");
  state_ = std::make_shared<state>(options);
}

void retry_budget::count_call() const {
  const std::lock_guard lock(state_->mutex);
  state_->add(state_->options.ratio);
}

bool retry_budget::take() const {
  const std::lock_guard lock(state_->mutex);
  state_->catch_up();
  if (state_->tokens < 1) return false;
  state_->tokens -= 1;
  return true;
}

double retry_budget::left() const {
  const std::lock_guard lock(state_->mutex);
  state_->catch_up();
  return state_->tokens;
}

}  // namespace troupe
