#include "http/server/calls/call_end.hpp"

#include <exception>

#include "base/invariant.hpp"
#include "troupe/base/error.hpp"
#include "troupe/task/limits.hpp"
#include "troupe/task/scope.hpp"

namespace troupe::http {

void call_end::end(cause why) noexcept {
  cause none = cause::none;
  // order: release  pairs with why/acquire (E2)
  why_.compare_exchange_strong(none, why, std::memory_order_release, std::memory_order_relaxed);
  TROUPE_INVARIANT(none == cause::none || why_.load(std::memory_order_relaxed) == none, "E1");
  TROUPE_INVARIANT(why_.load(std::memory_order_relaxed) != cause::none, "E2");
  stop_.request_stop();
}

task<bool> call_end::run(task<> function) {
  tasks::task_limits limits;
  limits.stop = stop_.get_token();
  limits.is_last_resort = true;  // a deadlock of the function is still one
  task<> limited = tasks::run_within(std::move(function), std::move(limits));
  bool was_cancelled = false;
  try {
    co_await std::move(limited);
  } catch (const cancelled&) {
    if (why() == cause::none) throw;
    was_cancelled = true;
  }
  co_return !was_cancelled;
}

task<bool> call_end::run(task<> function, task<> watch) {
  bool has_returned = false;
  std::exception_ptr failed;
  const auto body = [&](task_scope& branches) -> task<> {
    branches.spawn(std::move(watch));
    task<bool> running = run(std::move(function));
    try {
      has_returned = co_await std::move(running);
    } catch (...) {
      failed = std::current_exception();
    }
    branches.cancel();
  };
  co_await scope(body);
  if (failed != nullptr) std::rethrow_exception(std::move(failed));
  co_return has_returned;
}

}  // namespace troupe::http
