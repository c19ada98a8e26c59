// call_context: a node of a tree of contexts. Each node keeps its parent by a count, and has links
// to the nodes within it.
//
// Thread: any. The mutex of the tree's root guards the links, `bound_` for other threads than the
// one in the actor's turn, and the stop sources. A node with a call sends itself, as an urgent
// message, to the call's actor, which cancels the call in a turn. It does that under the mutex: a
// call that ends takes the mutex to leave its node, until which its actor exists.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/invariant.hpp"
#include "task/timers/timers.hpp"
#include "task/traces/spans.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/timer.hpp"
#include "troupe/task/trace_context.hpp"

namespace troupe::tasks {

class call_context final : public suspension, public timer {
 public:
  // Throws std::bad_alloc.
  static call_context& make(call_context* parent, timers& clock) {
    return *::new (memory::allocate(sizeof(call_context))) call_context(parent, clock);
  }
  call_context(const call_context&) = delete;
  call_context& operator=(const call_context&) = delete;

  // order: relaxed  the caller has a reference
  void hold() noexcept {
    [[maybe_unused]] const auto before = refs_.fetch_add(1, std::memory_order_relaxed);
    TROUPE_INVARIANT(before != 0, "side_call.A3");
  }
  void drop() noexcept;

  // Before other threads know the node. Throws std::system_error and std::bad_alloc.
  void limit(std::chrono::nanoseconds at_most, std::stop_token stop);
  // In a turn, when the call has suspended: it is cancelled when the node is over.
  void bind(async_call& call, async_call& root) noexcept;
  // In a turn: the call has ended.
  void leave() noexcept;
  // Before other threads know the node. Something outside the call may end it: a time or a stop
  // token, of this node or of one around it. The end of a scope is inside.
  void set_limited() noexcept { is_limited_ = true; }
  bool is_limited() const noexcept { return is_limited_; }
  // In a turn of the call's actor. The node may be another call's, which other threads bind.
  bool is_bound_to(const async_call& call) const noexcept {
    // order: relaxed  only compared: the turn itself has bound this call, if anyone has
    return bound_.load(std::memory_order_relaxed) == &call;
  }

  void end(outcome how) noexcept;
  // order: acquire (both)  pairs with end/release
  bool was_ended() const noexcept { return ended_.load(std::memory_order_acquire) != open; }
  bool is_over() const noexcept { return was_ended() || due_ns_ <= clock_.now_ns(); }
  std::exception_ptr error() const noexcept;
  // Before other threads know the node. Throws std::bad_alloc.
  void begin_trace(const trace_context& where, span_ptr span = nullptr);
  // Before other threads know the node: a span of the trace of the node around it, or the first one
  // of a new trace. Throws std::bad_alloc.
  void begin_span(span_kind kind, const char* name);
  call_context* trace() const noexcept { return trace_; }
  // Calls `change` with the node's span, if it has not ended. Thread: any.
  template <class Change>
  void change_span(Change change) noexcept;
  void end_span(const std::exception_ptr& failure) noexcept;
  const trace_context& traced() const noexcept {
    return traced_;
  }  // of a node that trace() returns
  std::int64_t due_ns() const noexcept { return due_ns_; }
  std::int64_t now_ns() const noexcept { return clock_.now_ns(); }
  timers& clock() const noexcept { return clock_; }
  std::stop_token token();

 private:
  static constexpr outcome open = outcome::arrived;
  struct on_stop {
    call_context& self;
    void operator()() const noexcept { self.end(outcome::cancelled); }
  };

  call_context(call_context* parent, timers& clock) noexcept;
  ~call_context() {
    if (span_ != nullptr) end_span(nullptr);
    set_trace(nullptr);
  }
  void set_trace(call_context* next) noexcept;
  static const char* act_on(sched::message*, void*, sched::message_act);
  static void on_time(timer& self) noexcept {
    static_cast<call_context&>(self).end(outcome::timed_out);
  }
  bool hold_if_used() noexcept;
  void end_one(outcome how) noexcept;
  call_context* next_within(const call_context& top) noexcept;
  void cancel_bound() noexcept;

  std::atomic<std::uint32_t> refs_{1};
  std::atomic<outcome> ended_{open};
  bool armed_ = false;
  bool is_limited_ = false;
  call_context* const parent_;
  call_context& top_;
  base::small_mutex mutex_;  // of the top
  // The tree.
  call_context* first_within_ = nullptr;
  call_context* next_beside_ = nullptr;
  call_context** beside_link_ = nullptr;
  call_context* next_ended_ = nullptr;  // of those that a call of end() has ended

  timers& clock_;
  call_context* trace_ =
      nullptr;  // a node with a trace and nothing else: counted, unless it is this
  trace_context traced_;
  span_ptr span_;  // of a node with a trace and nothing else, until it ends. Guarded by the mutex
  std::int64_t due_ns_ = INT64_MAX;
  std::atomic<async_call*> bound_{nullptr};  // written under the mutex
  async_call* bound_root_ = nullptr;
  std::stop_source source_{std::nostopstate};
  std::optional<std::stop_callback<on_stop>> stop_;
};

template <class Change>
void call_context::change_span(Change change) noexcept {
  if (trace_ == nullptr) return;
  std::lock_guard lock(trace_->mutex_);
  if (trace_->span_ == nullptr) return;
  try {
    change(*trace_->span_);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace troupe::tasks
