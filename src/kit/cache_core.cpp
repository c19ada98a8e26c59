#include "troupe/kit/cache_core.hpp"

#include "kit/clock_and_random.hpp"
#include "troupe/base/error.hpp"
#include "troupe/kit/retry.hpp"
#include "troupe/task/call_context.hpp"

namespace troupe::kit {

class cache_core::clock_state {
 public:
  object_clock clock;
};

cache_core::cache_core(const cache_options& given)
    : options(given), clock_(std::make_unique<clock_state>()) {
  if (options.entries_max == 0) throw option_error("troupe: cache: entries_max must be at least 1");
  if (options.expire_after_write.count() <= 0 || options.expire_after_access.count() <= 0)
    throw option_error(
        "troupe: cache: expire_after_write and expire_after_access must be longer than zero");
  if (options.keep_failures.count() < 0)
    throw option_error("troupe: cache: keep_failures must not be negative");
}

cache_core::~cache_core() = default;

std::int64_t cache_core::now_ns() noexcept { return clock_->clock.now_ns(); }

bool cache_core::is_expired(const entry_times& times, bool is_failure,
                            std::int64_t now) const noexcept {
  if (is_failure) return now - times.written_ns >= options.keep_failures.count();
  return now - times.written_ns >= options.expire_after_write.count() ||
         now - times.used_ns >= options.expire_after_access.count();
}

bool gave_up(const std::exception_ptr& failed, const tasks::limits& within) {
  if (is_cancellation(failed)) return true;
  if (within.any() && (within.over() || within.stop().stop_requested())) return true;
  return this_call::remaining().count() <= 0 || this_call::stop_token().stop_requested();
}

}  // namespace troupe::kit
