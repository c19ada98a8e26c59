// spans: the named parts of traces, from their begin until the exporter takes them (src/otlp).
//
// A call's context has the span in which the call runs (call_context.hpp). A span that has ended
// waits in a list of the process, which one exporter empties. Spans are recorded, and the list is
// open, while there is an exporter (observe::watched::spans).
//
// Threads: any; take_all, forget and wait: the exporter's. The list keeps to the invariants of
// base::record_queue.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/side_channels/record_queue.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/trace_context.hpp"

namespace troupe::tasks {

struct span_attribute {
  const char* key;                                             // a literal
  std::variant<std::int64_t, const char*, std::string> value;  // the second is also a literal
};

struct span_record {
  // Begins now. Throws std::bad_alloc.
  span_record(const trace_context& where, const std::array<std::uint8_t, 8>& above,
              span_kind recorded_kind, const char* named);
  span_record(const span_record&) = delete;
  span_record& operator=(const span_record&) = delete;
  // It ends now; `failure` may be null.
  void end(const std::exception_ptr& failure) noexcept;
  void fail(const std::exception_ptr& failure) noexcept;

  span_record* next = nullptr;
  const trace_context at;
  const std::array<std::uint8_t, 8> parent;  // zeros: none
  const span_kind kind;
  bool failed = false;
  const char* const name;  // a literal
  std::string own_name;    // if not empty, in the place of `name`
  std::vector<span_attribute> attributes;
  std::int64_t began_unix_ns = 0, ended_unix_ns = 0;

 private:
  std::int64_t began_ns_ = 0;  // by the clock that is never set
};
using span_ptr = std::unique_ptr<span_record>;

class span_list {
 public:
  // An exporter begins: at most `most` spans wait for it, and it is woken at each `batch` of them;
  // `rate`: the part of the traces that begin in this process that are recorded, and of those that
  // arrive, if their callers are not asked (`parent_based`). Returns false if there is another
  // exporter.
  bool open(std::size_t most, std::size_t batch, double rate, bool parent_based = true) noexcept;
  // It ends: spans are recorded no longer, and those that wait are freed.
  void close() noexcept;
  // As in base::record_queue.
  span_record* take_all() noexcept { return records_.take_all(); }
  void forget(std::size_t count) noexcept { records_.forget(count); }
  std::uint32_t wakes() const noexcept { return records_.wakes(); }
  void wait(std::uint32_t seen, std::chrono::nanoseconds at_most) noexcept {
    records_.wait(seen, at_most);
  }
  void wake() noexcept { records_.wake(); }
  std::uint64_t dropped() const noexcept { return records_.dropped(); }
  std::size_t waiting() const noexcept { return records_.waiting(); }

  void put(span_ptr ended) noexcept;
  // A new trace, which is sampled by the rate.
  trace_context begin_trace() const;
  // A new span of a trace that another process has begun.
  trace_context continue_trace(const trace_context& caller) const;

 private:
  void forget_all() noexcept;
  bool is_within_rate(const trace_context& trace) const noexcept;

  base::record_queue<span_record> records_;
  std::atomic<std::uint64_t> sampled_below_{0};
  std::atomic<bool> is_open_{false}, parent_based_{true};
};
extern constinit span_list ended_spans;

}  // namespace troupe::tasks
