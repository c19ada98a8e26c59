// warning_list: the warnings of one runtime, and when each is told: by the callback, or in a line
// on standard error.
//
// Thread: the observer's alone; at the end the one that destroys the runtime.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "runtime/observing/numbers/json_text.hpp"
#include "troupe/runtime/options.hpp"

namespace troupe::observing {

// What a look has found.
struct finding {
  warning_kind kind;
  std::string_view actor = {}, method = {};
  std::uint64_t actor_id = 0;
  std::uint64_t times = 1;  // so often since the last look; 0: what was found before lasts
  std::string text = {};
};

class warning_list {
 public:
  explicit warning_list(const runtime_options& options) : options_(options) {}

  // Throws std::bad_alloc.
  void add(finding one);

  // An array of all, and an object with how often each kind was found.
  void write_all(json_text& to) const;
  void write_counts(json_text& to) const;
  // Calls `look` with the name of each kind and how often it was found.
  void for_each_count(auto look) const {
    for (std::size_t i = 0; i < counts_.size(); ++i)
      look(name_of(static_cast<warning_kind>(i)), counts_[i]);
  }
  // The same with the number of warnings of the kind that were found since then.
  void for_each_active(std::chrono::steady_clock::time_point since, auto look) const {
    std::array<std::uint64_t, warning_kinds> active{};
    for (const auto& [of, one] : all_)
      active[static_cast<std::size_t>(one.its.kind)] += one.its.last >= since;
    for (std::size_t i = 0; i < active.size(); ++i)
      look(name_of(static_cast<warning_kind>(i)), active[i]);
  }

  // Different warnings that are kept; of others only the kind is counted.
  static constexpr std::size_t kept_max = 256;

 private:
  struct entry {
    warning its;
    std::uint64_t told_times = 0;
    std::chrono::steady_clock::time_point told{};
  };
  using key = std::tuple<warning_kind, std::string, std::string>;
  void tell(entry& one);
  void write_line(const warning& one);

  const runtime_options& options_;
  std::map<key, entry> all_;
  std::array<std::uint64_t, warning_kinds> counts_{};
  std::chrono::steady_clock::time_point minute_began_{};
  unsigned lines_ = 0;  // in that minute
};

}  // namespace troupe::observing
