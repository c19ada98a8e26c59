// number_watch: finds trouble in declared numbers, as their declarations define it
// (observe::trouble). Thread: as warning_list.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "observe/numbers/tables.hpp"
#include "runtime/observing/warnings/repetition.hpp"
#include "runtime/observing/warnings/warning_list.hpp"

namespace troupe::observing {

class number_watch {
 public:
  explicit number_watch(const warning_limits& limits) noexcept : limits_(limits) {}

  // `collect` gives the rows of all things whose numbers may show trouble. It holds locks of these
  // things: the list gets the findings after it. Throws std::bad_alloc.
  template <class Collect>
  void look(std::int64_t now_ns, warning_list& list, Collect collect) {
    ++looks_;
    sink rows(*this, now_ns, list.lasts());
    collect(rows);
    for (named_finding& shown : rows.found_) {
      shown.trouble.method = shown.name;
      list.add(std::move(shown.trouble));
    }
    std::erase_if(seen_, [this](const auto& entry) { return entry.second.look != looks_; });
  }

 private:
  struct seen_number {
    observe::number_value value{};
    repetition again{};
    std::uint64_t look = 0;  // that saw it last
    bool is_known = false;
  };
  // A finding refers to its name.
  struct named_finding {
    finding trouble;
    std::string name;
  };
  struct sink final : observe::row_sink {
    sink(number_watch& watch, std::int64_t now_ns, std::chrono::nanoseconds lasts) noexcept
        : watch_(watch), now_ns_(now_ns), lasts_(lasts) {}
    void take(const observe::number_group& group, std::vector<std::string> labels,
              const void* values) override;
    number_watch& watch_;
    const std::int64_t now_ns_;
    const std::chrono::nanoseconds lasts_;
    std::vector<named_finding> found_;
  };
  using key = std::pair<const observe::number*, std::vector<std::string>>;

  // Whether the number is in trouble, with the end of the sentence about it.
  bool is_in_trouble(const observe::number& number, const observe::number_value& now,
                     const seen_number& before, std::string& text) const;
  bool is_slow(const observe::distribution& now, const seen_number& before, double limit_seconds,
               std::string& text) const;

  const warning_limits& limits_;
  std::map<key, seen_number> seen_;
  std::uint64_t looks_ = 0;
};

}  // namespace troupe::observing
