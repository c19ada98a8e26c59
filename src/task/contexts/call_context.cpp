#include "task/contexts/call_context.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "task/running/running.hpp"
#include "troupe/base/error.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::tasks {

call_context::call_context(call_context* parent, timers& clock) noexcept
    : suspension(&act_on),
      timer(&on_time, timer_source::deadline),
      parent_(parent),
      top_(parent == nullptr ? *this : parent->top_),
      clock_(clock) {
  if (parent == nullptr) return;
  parent->hold();
  set_trace(parent->trace_);
  is_limited_ = parent->is_limited_;
  due_ns_ = parent->due_ns_;
  std::lock_guard lock(top_.mutex_);
  // order: relaxed (both)  guarded by the mutex
  ended_.store(parent->ended_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  next_beside_ = parent->first_within_;
  beside_link_ = &parent->first_within_;
  if (next_beside_ != nullptr) next_beside_->beside_link_ = &next_beside_;
  parent->first_within_ = this;
}

// A loop, since a chain of contexts may be long.
void call_context::drop() noexcept {
  call_context* node = this;
  // order: acq_rel  the thread that frees it sees the writes of the others
  while (node != nullptr && node->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    call_context* const above = node->parent_;
    if (above != nullptr) {
      std::lock_guard lock(node->top_.mutex_);
      *node->beside_link_ = node->next_beside_;
      if (node->next_beside_ != nullptr) node->next_beside_->beside_link_ = node->beside_link_;
    }
    node->~call_context();
    memory::deallocate(node, sizeof(call_context));
    node = above;
  }
}

// False: another thread is about to free it.
bool call_context::hold_if_used() noexcept {
  // order: relaxed  only compared
  std::uint32_t seen = refs_.load(std::memory_order_relaxed);
  while (seen != 0) {
    // order: relaxed  the mutex keeps the node from being freed meanwhile
    if (refs_.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

void call_context::limit(std::chrono::nanoseconds at_most, std::stop_token stop) {
  if (at_most.count() <= 0) return end(outcome::timed_out);
  if (stop.stop_requested()) return end(outcome::cancelled);
  if (at_most != std::chrono::nanoseconds::max()) {
    const std::int64_t due = due_in(clock_, at_most);
    if (due < due_ns_) {
      due_ns_ = due;
      arm(clock_, *this, due);
      armed_ = true;
    }
  }
  if (stop.stop_possible()) stop_.emplace(std::move(stop), on_stop{*this});
}

void call_context::set_trace(call_context* next) noexcept {
  if (next != nullptr && next != this) next->hold();
  call_context* const before = std::exchange(trace_, next);
  if (before != nullptr && before != this) before->drop();
}

void call_context::begin_trace(const trace_context& where, span_ptr span) {
  call_context& alone = make(nullptr, clock_);
  alone.traced_ = where;
  alone.span_ = std::move(span);
  alone.set_trace(&alone);
  set_trace(&alone);
  alone.drop();
  observe::watch(observe::watched::trace_contexts);
}

void call_context::begin_span(span_kind kind, const char* name) {
  const trace_context* const outer = trace_ == nullptr ? nullptr : &trace_->traced_;
  if (outer != nullptr && !outer->sampled) return;
  const trace_context own = outer == nullptr ? ended_spans.begin_trace() : outer->child();
  span_ptr span;
  if (own.sampled)
    span = std::make_unique<span_record>(
        own, outer == nullptr ? std::array<std::uint8_t, 8>() : outer->span_id, kind, name);
  begin_trace(own, std::move(span));
}

// The context is one that has a trace and nothing else.
void call_context::end_span(const std::exception_ptr& failure) noexcept {
  span_ptr ended;
  {
    std::lock_guard lock(mutex_);
    ended = std::move(span_);
  }
  if (ended == nullptr) return;
  ended->end(failure);
  ended_spans.put(std::move(ended));
}

void call_context::bind(async_call& call, async_call& root) noexcept {
  std::lock_guard lock(top_.mutex_);
  // order: relaxed (both)  guarded by the mutex
  bound_.store(&call, std::memory_order_relaxed);
  bound_root_ = &root;
  if (ended_.load(std::memory_order_relaxed) == open) return;
  hold();
  call.at->go_on(call.actor, *this);
}

void call_context::leave() noexcept {
  stop_.reset();  // waits for a callback that is running
  if (std::exchange(armed_, false)) tasks::cancel(clock_, *this);
  std::lock_guard lock(top_.mutex_);
  bound_.store(nullptr, std::memory_order_relaxed);  // order: relaxed  guarded by the mutex
}

// The next node of the tree under `top`: each before those within it.
call_context* call_context::next_within(const call_context& top) noexcept {
  if (first_within_ != nullptr) return first_within_;
  call_context* at = this;
  while (at != &top && at->next_beside_ == nullptr) at = at->parent_;
  return at == &top ? nullptr : at->next_beside_;
}

void call_context::end_one(outcome how) noexcept {
  // order: release  pairs with was_ended/acquire
  ended_.store(how, std::memory_order_release);
  // order: relaxed  guarded by the mutex
  async_call* const call = bound_.load(std::memory_order_relaxed);
  if (call == nullptr) return;
  hold();
  call->at->go_on(call->actor, *this);
}

void call_context::end(outcome how) noexcept {
  if (was_ended()) return;  // then so are all nodes within it, and no new one can begin
  call_context* ended = nullptr;
  {
    std::lock_guard lock(top_.mutex_);
    for (call_context* node = this; node != nullptr; node = node->next_within(*this)) {
      if (node->was_ended() || !node->hold_if_used()) continue;
      node->next_ended_ = std::exchange(ended, node);
      node->end_one(how);
    }
  }
  // The user's functions run outside of the mutex. This node comes last in the list, if it is
  // there, and it holds the top.
  while (ended != nullptr) {
    call_context& node = *ended;
    ended = node.next_ended_;
    std::stop_source source(std::nostopstate);
    {
      std::lock_guard lock(top_.mutex_);
      source = node.source_;
    }
    if (source.stop_possible()) source.request_stop();
    node.drop();
  }
}

std::exception_ptr call_context::error() const noexcept try {
  // order: acquire  as was_ended
  if (ended_.load(std::memory_order_acquire) == outcome::cancelled)
    return std::make_exception_ptr(
        cancelled("troupe: the call was stopped: by with_stop, or with its scope"));
  return std::make_exception_ptr(timed_out("troupe: with_deadline: the time is over"));
} catch (const std::bad_alloc&) {
  return std::current_exception();
}

std::stop_token call_context::token() {
  std::stop_source source(std::nostopstate);
  {
    std::lock_guard lock(top_.mutex_);
    if (!source_.stop_possible()) source_ = std::stop_source();
    source = source_;
  }
  if (was_ended()) source.request_stop();
  return source.get_token();
}

const char* call_context::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "the end of a deadline";
  if (act != sched::message_act::handle && act != sched::message_act::discard) return nullptr;
  auto& self = static_cast<call_context&>(*static_cast<suspension*>(base));
  if (act == sched::message_act::handle) self.cancel_bound();
  self.drop();
  return nullptr;
}

// In a turn of the call's actor; the call may be gone.
void call_context::cancel_bound() noexcept {
  // order: relaxed  the turn's own
  async_call* const call = bound_.load(std::memory_order_relaxed);
  if (call == nullptr || call->done) return;
  async_call* const before = exchange_running(bound_root_);
  call->cancel();
  static_cast<void>(exchange_running(before));
  call->at->resume(*call);
}

void hold_context(call_context& context) noexcept { context.hold(); }
void drop_context(call_context& context) noexcept { context.drop(); }
void stop_context(call_context& context) noexcept { context.end(outcome::cancelled); }
context_ref context_ref::make_within(call_context* outer, timers& clock) noexcept try {
  context_ref created;
  created.context_ = &call_context::make(outer, clock);
  return created;
} catch (const std::bad_alloc&) {
  return {};
}
context_ref context_ref::current_trace() noexcept {
  const call_context* const current = current_context();
  context_ref found;
  if (current != nullptr && current->trace() != nullptr) {
    found.context_ = current->trace();
    found.context_->hold();
  }
  return found;
}
bool is_over(const call_context& context) noexcept { return context.is_over(); }
call_context* trace_of(const call_context& context) noexcept { return context.trace(); }
std::exception_ptr context_error(const call_context& context) noexcept { return context.error(); }

context_ref context_ref::make_traced(const trace_context& where) noexcept try {
  // order: relaxed  the thread's own
  const runtime_state* const runtime = running_here().runtime.load(std::memory_order_relaxed);
  if (!is_running() || runtime == nullptr) return {};
  context_ref created;
  created.context_ = &call_context::make(nullptr, *runtime->host.clock);
  created.context_->begin_trace(where);
  return created;
} catch (const std::bad_alloc&) {
  return {};
}

context_ref context_ref::make_spanned(call_context& outer, span_kind kind,
                                      const char* name) noexcept try {
  if (!observe::is_watched(observe::watched::spans)) return {};
  if (outer.trace() == nullptr || !outer.trace()->traced().sampled) return {};
  context_ref created;
  created.context_ = &call_context::make(&outer, outer.clock());
  created.context_->begin_span(kind, name);
  return created;
} catch (const std::bad_alloc&) {
  return {};
}

context_ref context_ref::make_span_from(const trace_context* caller, span_kind kind,
                                        const char* name) noexcept try {
  // order: relaxed  the thread's own
  const runtime_state* const runtime = running_here().runtime.load(std::memory_order_relaxed);
  if (!is_running() || runtime == nullptr) return {};
  const trace_context own =
      caller == nullptr ? ended_spans.begin_trace() : ended_spans.continue_trace(*caller);
  span_ptr span;
  if (own.sampled)
    span = std::make_unique<span_record>(
        own, caller == nullptr ? std::array<std::uint8_t, 8>() : caller->span_id, kind, name);
  context_ref created;
  created.context_ = &call_context::make(nullptr, *runtime->host.clock);
  created.context_->begin_trace(own, std::move(span));
  return created;
} catch (const std::bad_alloc&) {
  return {};
}

context_ref inside_span::begin(call_context& within, const char* name,
                               const char* function) noexcept {
  context_ref created = context_ref::make_spanned(within, span_kind::internal, name);
  if (created.get() != nullptr) add_to_span(*created.get(), "code.function.name", function);
  return created;
}
void inside_span::end() noexcept { end_span(*span_.get(), nullptr); }

bool is_in_span(const call_context& context, span_kind kind) noexcept {
  bool found = false;
  const_cast<call_context&>(context).change_span(
      [&](span_record& span) { found = span.kind == kind; });
  return found;
}
void name_span(call_context& context, std::string_view name) noexcept {
  context.change_span([&](span_record& span) { span.own_name = name; });
}
void add_to_span(call_context& context, const char* key, std::int64_t value) noexcept {
  context.change_span([&](span_record& span) { span.attributes.push_back({key, value}); });
}
void add_to_span(call_context& context, const char* key, const char* value) noexcept {
  context.change_span([&](span_record& span) { span.attributes.push_back({key, value}); });
}
void add_to_span(call_context& context, const char* key, std::string_view value) noexcept {
  context.change_span([&](span_record& span) {
    span.attributes.push_back({key, std::string(value)});
  });
}
void fail_span(call_context& context, const std::exception_ptr& failure) noexcept {
  context.change_span([&](span_record& span) {
    if (failure != nullptr) return span.fail(failure);
    span.failed = true;
  });
}
void end_span(call_context& context, const std::exception_ptr& failure) noexcept {
  if (context.trace() != nullptr) context.trace()->end_span(failure);
}

// Without memory for a node, the call gets no notice, and its waits end as if it had no context.
void watch_context(async_call& call) noexcept try {
  call_context& own = call_context::make(call.context, call.context->clock());
  call.context = &own;
  own.bind(call, call);
} catch (const std::bad_alloc&) {
  call.context = nullptr;
}

void leave_context(async_call& call) noexcept {
  call_context& own = *call.context;
  if (!own.is_bound_to(call)) return;
  own.leave();
  own.drop();
}

}  // namespace troupe::tasks

namespace troupe::this_call {

std::chrono::nanoseconds deadline() noexcept {
  const tasks::call_context* const within = tasks::current_context();
  return within == nullptr ? std::chrono::nanoseconds::max()
                           : std::chrono::nanoseconds(within->due_ns());
}

std::chrono::nanoseconds remaining() noexcept {
  const tasks::call_context* const within = tasks::current_context();
  if (within == nullptr || within->due_ns() == INT64_MAX) return std::chrono::nanoseconds::max();
  return std::chrono::nanoseconds(within->due_ns() - within->now_ns());
}

std::optional<trace_context> trace() noexcept {
  const tasks::call_context* const within = tasks::current_context();
  if (within == nullptr || within->trace() == nullptr) return std::nullopt;
  return within->trace()->traced();
}

std::stop_token stop_token() {
  tasks::call_context* const within = tasks::current_context();
  return within == nullptr ? std::stop_token() : within->token();
}

}  // namespace troupe::this_call
