// The spans that a test has made, in the place of an exporter.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "task/traces/spans.hpp"

namespace troupe::test {

// Records while it exists, in the place of an exporter.
class recording {
 public:
  explicit recording(double rate = 1, std::size_t most = 100'000, bool parent_based = true) {
    EXPECT_TRUE(tasks::ended_spans.open(most, most, rate, parent_based));
  }
  recording(const recording&) = delete;
  recording& operator=(const recording&) = delete;
  ~recording() { tasks::ended_spans.close(); }
  // Those that have ended so far, by their names.
  std::multimap<std::string, const tasks::span_record*>& take() {
    std::size_t count = 0;
    for (tasks::span_record* span = tasks::ended_spans.take_all(); span != nullptr;
         span = span->next, ++count) {
      kept_.emplace_back(span);
      by_name_.emplace(span->own_name.empty() ? span->name : span->own_name, span);
    }
    tasks::ended_spans.forget(count);
    return by_name_;
  }
  const tasks::span_record& only(const std::string& name) {
    static const tasks::span_record none({}, {}, tasks::span_kind::internal, "none");
    EXPECT_EQ(take().count(name), 1u) << name;
    return has(name) ? *take().find(name)->second : none;
  }
  bool has(const std::string& name) { return take().count(name) == 1; }

 private:
  std::vector<tasks::span_ptr> kept_;
  std::multimap<std::string, const tasks::span_record*> by_name_;
};

inline std::string text_of(const tasks::span_record& span, const std::string& key) {
  for (const tasks::span_attribute& each : span.attributes) {
    if (key != each.key) continue;
    if (const auto* number = std::get_if<std::int64_t>(&each.value)) return std::to_string(*number);
    if (const auto* literal = std::get_if<const char*>(&each.value)) return *literal;
    return std::get<std::string>(each.value);
  }
  return "none";
}

}  // namespace troupe::test
