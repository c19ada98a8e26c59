// warning_list: the warnings of one runtime. A new warning, and one that lasts, is reported by the
// callback, or in a line on standard error.
//
// Thread: the observer's alone; at the end the one that destroys the runtime.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "runtime/observing/numbers/json_text.hpp"
#include "troupe/runtime/options.hpp"

namespace troupe::observing {

// The result of a look at the runtime.
struct finding {
  warning_kind kind;
  std::string_view actor = {}, method = {};
  std::uint64_t actor_id = 0;
  std::uint64_t times = 1;  // since the last look; 0: an earlier finding lasts
  std::string subject = {};
  std::string text = {};
  std::string_view advice = {};
  std::int64_t lasted_ns = 0;  // 0: only the time for which the warning is active counts
};

class warning_list {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit warning_list(const runtime_options& options) : options_(options) {}

  // How far apart the looks that find lasting trouble are now.
  void set_pause(std::chrono::nanoseconds between_looks) noexcept {
    lasts_ = std::max<std::chrono::nanoseconds>(warning_lasts, looks_kept * between_looks);
  }
  // A warning is active until it was not found for this time: warning_lasts, or longer if three
  // looks take longer, so that no warning ends while its cause lasts.
  std::chrono::nanoseconds lasts() const noexcept { return lasts_; }

  // Throws std::bad_alloc.
  void add(finding shown);
  // Forgets the warnings that were found too long ago.
  void forget_old();

  // An array of all, and an object with how often each kind was found.
  void write_all(json_text& out) const;
  void write_counts(json_text& out) const;
  // How often each kind was found, how many of its warnings are active, and how often one of them
  // has become active.
  struct kind_counts {
    std::uint64_t found = 0, active = 0, begun = 0;
  };
  // Calls `look` with the name of each kind and its kind_counts.
  void for_each_kind(auto look, time_point now = std::chrono::steady_clock::now()) const {
    std::array<kind_counts, warning_kinds> counts = counts_;
    for (const auto& [kind, shown] : all_)
      counts[static_cast<std::size_t>(shown.kept.kind)].active += is_active(shown.kept, now);
    for (std::size_t i = 0; i < counts.size(); ++i)
      look(name_of(static_cast<warning_kind>(i)), counts[i]);
  }

  // Different warnings that are kept; of others only the kind is counted.
  static constexpr std::size_t kept_max = 256;

 private:
  struct entry {
    warning kept;
    std::uint64_t told_times = 0;
    time_point told{};
  };
  using key = std::tuple<warning_kind, std::string, std::string>;
  bool is_active(const warning& shown, time_point now) const noexcept {
    return now - shown.last < lasts_;
  }
  // The warning of that finding; null if there are too many.
  entry* find(finding& shown, time_point now);
  void tell(entry& shown);
  void write_line(const warning& shown);

  static constexpr int looks_kept = 3;

  const runtime_options& options_;
  std::chrono::nanoseconds lasts_ = warning_lasts;
  std::map<key, entry> all_;
  std::array<kind_counts, warning_kinds> counts_{};  // `active` is counted by a reader
  time_point minute_began_{};
  unsigned lines_ = 0;  // in that minute
};

}  // namespace troupe::observing
