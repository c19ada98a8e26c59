// call_context: the deadline, stop and trace of a call, which apply to all work of the call.
//
// A context is one pointer, null for most calls. The branches of a call have the pointer of the
// call, an ask takes it to the handler that answers, `blocking` and lazies to the thread that runs
// the function. Each with_deadline, with_stop and with_trace makes a context within the one around
// it; when a context ends, all contexts within it end with it, and the calls that run in them are
// cancelled, in whatever actor. A `tell` takes along the trace alone: a context that never ends.
// For the library's own use; users meet with_deadline, with_stop, with_trace and this_call.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <stop_token>
#include <string_view>
#include <utility>

#include "troupe/base/platform.hpp"

namespace troupe {
struct trace_context;
}

namespace troupe::tasks {

class async_call;
class call_context;
class timers;

// The numbers are OTLP's.
enum class span_kind : std::uint8_t { internal = 1, server = 2, client = 3 };

// Counted references. Thread: any.
void hold_context(call_context& context) noexcept;
void drop_context(call_context& context) noexcept;

// The context in which the calling thread runs; null for none.
call_context* current_context() noexcept;
// Sets the context of a branch, a handler or a function that runs; returns the one before.
call_context* exchange_context(call_context* within) noexcept;

// Whether its time is over, or a stop was requested.
bool is_over(const call_context& context) noexcept;
// A stop: ends this context and all contexts within it. Runs the callbacks of their stop tokens.
void stop_context(call_context& context) noexcept;
// Its trace alone, for work that outlives the call; null if it is in no trace.
call_context* trace_of(const call_context& context) noexcept;
// timed_out or cancelled.
std::exception_ptr context_error(const call_context& context) noexcept;

// For the span that was begun with this context; after its end they do nothing.
// They never fail: without memory something is missing in the span. `key` and a `const char*` are
// literals. Thread: any.
bool is_in_span(const call_context& context, span_kind kind) noexcept;
void name_span(call_context& context, std::string_view name) noexcept;
void add_to_span(call_context& context, const char* key, std::int64_t value) noexcept;
void add_to_span(call_context& context, const char* key, const char* value) noexcept;
void add_to_span(call_context& context, const char* key, std::string_view value) noexcept;
// A null exception: the failure is no exception.
void fail_span(call_context& context, const std::exception_ptr& failure) noexcept;
// It ends now, with that failure or with none (null). A span that nothing ends ends with its
// context.
void end_span(call_context& context, const std::exception_ptr& failure) noexcept;

// In a turn: the call, which has suspended, is cancelled when its context is over.
void watch_context(async_call& call) noexcept;
// The call has ended.
void leave_context(async_call& call) noexcept;

// While it exists the calling thread runs in that context, if it is not null.
class inside_context {
 public:
  explicit inside_context(call_context* within) noexcept : within_(within) {
    if (within != nullptr) [[unlikely]]
      before_ = exchange_context(within);
  }
  inside_context(const inside_context&) = delete;
  inside_context& operator=(const inside_context&) = delete;
  ~inside_context() {
    if (within_ != nullptr) [[unlikely]]
      exchange_context(before_);
  }
  bool is_over() const noexcept { return within_ != nullptr && tasks::is_over(*within_); }
  void check() const {  // throws if it is over
    if (is_over()) [[unlikely]]
      std::rethrow_exception(context_error(*within_));
  }

 private:
  call_context* const within_;
  call_context* before_ = nullptr;
};

class context_ref {
 public:
  context_ref() = default;
  static context_ref current() noexcept {
    context_ref found;
    found.context_ = current_context();
    if (found.context_ != nullptr) hold_context(*found.context_);
    return found;
  }
  // The trace alone of that context. Refers to none if the calling thread runs in no trace.
  static context_ref current_trace() noexcept;
  // A second reference to the same.
  context_ref share() const noexcept {
    context_ref other;
    other.context_ = context_;
    if (context_ != nullptr) hold_context(*context_);
    return other;
  }
  // A context within `outer`, which may be null. Refers to none when memory has run out.
  static context_ref make_within(call_context* outer, timers& clock) noexcept;
  // A context with that trace and nothing else. Refers to none when memory has run out, and on
  // threads that run no turn.
  static context_ref make_traced(const trace_context& where) noexcept;
  // A context within `outer`, with a span of its own. Refers to none if `outer` is in no trace
  // that is recorded, and when memory has run out.
  static context_ref make_spanned(call_context& outer, span_kind kind, const char* name) noexcept;
  // A context with a span of its own, whose caller is in another program, if it is not null.
  // Refers to none as make_traced() does.
  static context_ref make_span_from(const trace_context* caller, span_kind kind,
                                    const char* name) noexcept;
  context_ref(context_ref&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
  context_ref& operator=(context_ref other) noexcept {
    std::swap(context_, other.context_);
    return *this;
  }
  ~context_ref() {
    if (context_ != nullptr) drop_context(*context_);
  }
  call_context* get() const noexcept { return context_; }
  // The caller has the reference from now on.
  call_context* release() noexcept { return std::exchange(context_, nullptr); }

 private:
  call_context* context_ = nullptr;
};

// While it exists the calling thread, which runs a function for a call, runs in the call's context,
// and in a span of its own, if spans are recorded. `within` may be null.
class inside_span {
 public:
  inside_span(call_context* within, const char* name, const char* function) noexcept
      : span_(within == nullptr ? context_ref() : begin(*within, name, function)),
        inside_(span_.get() == nullptr ? within : span_.get()) {}
  inside_span(const inside_span&) = delete;
  inside_span& operator=(const inside_span&) = delete;
  ~inside_span() {
    if (span_.get() != nullptr) [[unlikely]]
      end();
  }
  void check() const { inside_.check(); }
  // The function has thrown this.
  void fail(const std::exception_ptr& failure) noexcept {
    if (span_.get() != nullptr) [[unlikely]]
      fail_span(*span_.get(), failure);
  }

 private:
  static context_ref begin(call_context& within, const char* name, const char* function) noexcept;
  void end() noexcept;

  const context_ref span_;
  const inside_context inside_;
};

}  // namespace troupe::tasks

namespace troupe::this_call {

// These functions concern the handler, task, lazy or blocking function that calls them. Thread:
// any; on a thread that runs no call there is no limit. Cost: some ns; stop_token takes a lock.
//
// The time that is left until the nearest deadline of the with_deadline calls around it; the
// largest value when there is none, 0 or less when it is over.
std::chrono::nanoseconds remaining() noexcept;
// The nearest deadline, in the time of troupe::now(); the largest value when there is none.
std::chrono::nanoseconds deadline() noexcept;
// A token that is stopped when the deadline expires or a stop is requested, for code that does not
// wait. Without with_deadline or with_stop around it, no stop is possible.
std::stop_token stop_token();

}  // namespace troupe::this_call
