// records: the lines of the log with their parts, from their call until the exporter takes them
// (src/otlp). Lines are kept only while there is an exporter of logs, even if the log's buffer
// drops them.
//
// Threads: any; take_all, forget and wait: the exporter's. The list keeps to the invariants of
// base::record_queue.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/side_channels/record_queue.hpp"
#include "troupe/log/log.hpp"
#include "troupe/task/trace_context.hpp"

namespace troupe::log {

struct record_field {
  std::string name;
  std::variant<std::int64_t, std::uint64_t, bool, double, std::string> value;
};

struct record {
  record() noexcept {}
  record* next = nullptr;
  std::int64_t unix_ns = 0;
  level severity = level::info;
  std::string_view logger;  // of a logger_state, which is never freed; empty: without a name
  std::string text;
  std::vector<record_field> fields;
  const char* actor = nullptr;  // the class of the actor in which it was logged; null: in none
  std::uint64_t actor_id = 0;
  std::optional<trace_context> trace;  // of the call in which it was logged
};

class record_list : public base::record_queue<record> {
 public:
  // An exporter begins: at most `most` lines wait for it. Returns false if there is another
  // exporter.
  bool open(std::size_t most, std::size_t batch) noexcept;
  // It ends: lines are kept no longer, and those that wait are freed.
  void close() noexcept;
  // order: relaxed  a thread may see a change a little late
  bool is_kept() const noexcept { return is_kept_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> is_open_{false}, is_kept_{false};
};
extern constinit record_list kept_lines;

}  // namespace troupe::log
