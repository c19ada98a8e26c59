#include "task/traces/spans.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <typeinfo>
#include <utility>

#include "base/clock.hpp"
#include "observe/numbers/exemplars.hpp"
#include "task/running/running.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::tasks {

constinit span_list ended_spans;

namespace {

// Only libstdc++ returns the type without a throw.
const std::type_info* type_in(const std::exception_ptr& error) {
#if defined(_LIBCPP_VERSION)
  if (error == nullptr) return nullptr;
  try {
    std::rethrow_exception(error);
  } catch (...) {
    return abi::__cxa_current_exception_type();
  }
#else
  return error.__cxa_exception_type();
#endif
}

// The name of its class; its text may hold secrets.
std::string type_of(const std::exception_ptr& failure) {
  const std::type_info* const type = type_in(failure);
  if (type == nullptr) return "unknown";
  char* const name = abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr);
  std::string text = name == nullptr ? type->name() : name;
  std::free(name);
  return text;
}

// For the exemplars of histograms.
bool read_trace(observe::exemplar& example) noexcept {
  const std::optional<trace_context> trace = this_call::trace();
  if (!trace || !trace->sampled) return false;
  example.trace_id = trace->trace_id;
  example.span_id = trace->span_id;
  example.unix_ns = wall_now_ns();
  return true;
}

}  // namespace

span_record::span_record(const trace_context& where, const std::array<std::uint8_t, 8>& above,
                         span_kind recorded_kind, const char* named)
    : at(where), parent(above), kind(recorded_kind), name(named) {
  attributes.reserve(4);
  began_unix_ns = wall_now_ns();
  began_ns_ = base::now_ns();
}

void span_record::fail(const std::exception_ptr& failure) noexcept try {
  failed = true;
  attributes.push_back({"error.type", type_of(failure)});
} catch (const std::bad_alloc&) {
}

void span_record::end(const std::exception_ptr& failure) noexcept {
  ended_unix_ns = began_unix_ns + (base::now_ns() - began_ns_);
  if (failure != nullptr) fail(failure);
}

bool span_list::open(std::size_t most, std::size_t batch, double rate, bool parent_based) noexcept {
  // order: acquire  the exporter before has left; pairs with close/release
  if (is_open_.exchange(true, std::memory_order_acquire)) return false;
  forget_all();
  records_.limit(most, batch);
  // order: relaxed (both)  read as limits; a thread may see them a little late
  parent_based_.store(parent_based, std::memory_order_relaxed);
  const double below = std::ldexp(std::clamp(rate, 0.0, 1.0), 64);
  const std::uint64_t limit =
      below >= std::ldexp(1.0, 64) ? UINT64_MAX : static_cast<std::uint64_t>(below);
  sampled_below_.store(limit, std::memory_order_relaxed);
  // order: relaxed  a function of the program; nothing else is published
  observe::reads_trace.store(&read_trace, std::memory_order_relaxed);
  observe::watch(observe::watched::spans);
  return true;
}

void span_list::close() noexcept {
  // order: relaxed  a thread may see it a little late
  observe::reads_trace.store(nullptr, std::memory_order_relaxed);
  observe::unwatch(observe::watched::spans);
  forget_all();
  // order: release  pairs with open/acquire
  is_open_.store(false, std::memory_order_release);
}

void span_list::forget_all() noexcept { records_.forget(records_.free_all(records_.take_all())); }

void span_list::put(span_ptr ended) noexcept {
  if (observe::is_watched(observe::watched::spans)) records_.put(std::move(ended));
}

bool span_list::is_within_rate(const trace_context& trace) const noexcept {
  std::uint64_t number = 0;
  std::memcpy(&number, trace.trace_id.data() + 8, sizeof number);
  // order: relaxed  a limit
  const std::uint64_t limit = sampled_below_.load(std::memory_order_relaxed);
  return limit != 0 && number <= limit;  // a caller may choose the number 0
}

trace_context span_list::begin_trace() const {
  trace_context trace = trace_context::begin();
  trace.sampled = is_within_rate(trace);
  return trace;
}

trace_context span_list::continue_trace(const trace_context& caller) const {
  trace_context trace = caller.child();
  // order: relaxed  a limit
  if (!parent_based_.load(std::memory_order_relaxed)) trace.sampled = is_within_rate(trace);
  return trace;
}

}  // namespace troupe::tasks
