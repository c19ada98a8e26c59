// The branch of limits.hpp runs in a context of its own.
#include <chrono>
#include <exception>
#include <utility>

#include "task/contexts/call_context.hpp"
#include "troupe/base/error.hpp"
#include "troupe/observe/trace.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::tasks {

bool limited_branch::suspend(coroutine& awaiting) {
  async_call& call = *awaiting.call;
  call_context* const outer = limits_.within.get();
  own_ = &call_context::make(outer == nullptr ? call.context : outer, *call.at->clock);
  if (limits_.trace) own_->begin_trace(*limits_.trace);
  if (limits_.span != nullptr && limits_.kind == span_kind::internal) branch_.span = limits_.span;
  if (limits_.span != nullptr && observe::is_watched(observe::watched::spans)) {
    own_->begin_span(limits_.kind, limits_.span);
    span_ = own_->trace();
    if (span_ != nullptr) span_->hold();
  }
  // A context with only a trace never ends its branch.
  const bool may_end =
      limits_.at_most != std::chrono::nanoseconds::max() || limits_.stop.stop_possible();
  own_->limit(limits_.at_most, std::move(limits_.stop));
  if (may_end && !limits_.is_last_resort) own_->set_limited();
  if (limits_.running != nullptr) {
    // order: release  pairs with parallel_child_end::finish_task/acquire
    limits_.running->store(&call, std::memory_order_release);
  }
  branch_.context = own_;
  branch_.cancelled = own_->was_ended();
  group_.limited = own_->is_limited();
  if (!group_.start(awaiting, {&branch_, 1})) return false;
  own_->bind(branch_, group_.root());
  return true;
}

void limited_branch::leave() noexcept {
  if (own_ == nullptr) return;
  own_->leave();
  if (own_->was_ended()) over_ = own_->error();
  std::exchange(own_, nullptr)->drop();
}

void limited_branch::end_span(const std::exception_ptr& failure) noexcept {
  call_context* const span = std::exchange(span_, nullptr);
  if (span == nullptr) return;
  span->end_span(failure);
  span->drop();
}

void limited_branch::check(const std::exception_ptr& failure) {
  if (span_ != nullptr) [[unlikely]]
    end_span(failure);
  if (over_ == nullptr || failure == nullptr) return;
  try {
    std::rethrow_exception(failure);
  } catch (const cancelled&) {
  } catch (...) {
    return;
  }
  std::rethrow_exception(over_);
}

}  // namespace troupe::tasks
