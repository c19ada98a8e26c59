#include "runtime/observing/warnings/warning_list.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/failures/failure_lines.hpp"

namespace troupe::observing {
namespace {

std::int64_t ns_of(std::chrono::steady_clock::time_point at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

// Trouble of these kinds stops the work that it concerns; the others make it slow or dear.
bool is_severe(warning_kind kind) noexcept {
  constexpr warning_kind severe[] = {warning_kind::growing_mailbox,
                                     warning_kind::growing_suspended,
                                     warning_kind::unanswered_ask,
                                     warning_kind::wait_cycle,
                                     warning_kind::long_lock,
                                     warning_kind::blocking_pool_full,
                                     warning_kind::pool_exhausted,
                                     warning_kind::descriptors_run_out,
                                     warning_kind::stall};
  return std::ranges::find(severe, kind) != std::end(severe);
}

}  // namespace

warning_list::entry* warning_list::find(finding& shown, time_point now) {
  key name{shown.kind, shown.actor, shown.method};
  const auto known = all_.find(name);
  if (known != all_.end()) return &known->second;
  if (all_.size() == kept_max) return nullptr;
  // Trouble that is no longer new may have been unseen until now, or have been another trouble.
  shown.times = std::max<std::uint64_t>(shown.times, 1);
  entry& fresh = all_.try_emplace(std::move(name)).first->second;
  fresh.kept.kind = shown.kind;
  fresh.kept.actor = shown.actor;
  fresh.kept.method = shown.method;
  fresh.kept.last = now - lasts_;
  return &fresh;
}

void warning_list::add(finding shown) {
  kind_counts& counts = counts_[static_cast<std::size_t>(shown.kind)];
  const auto now = std::chrono::steady_clock::now();
  entry* const found = find(shown, now);
  counts.found += shown.times;
  if (found == nullptr) return;
  warning& kept = found->kept;
  if (!is_active(kept, now)) {
    kept.since = now;
    ++counts.begun;
  }
  if (shown.actor_id != 0) kept.actor_id = shown.actor_id;
  kept.last = now;
  kept.times += shown.times;
  const std::chrono::nanoseconds lasted(shown.lasted_ns), active = now - kept.since;
  const std::chrono::nanoseconds longest = shown.lasted_ns != 0 ? lasted : active;
  if (longest > std::chrono::nanoseconds(kept.longest)) kept.longest = longest;
  kept.subject = std::move(shown.subject);
  kept.text = std::move(shown.text);
  kept.advice = shown.advice;
  tell(*found);
}

void warning_list::forget_old() {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(all_, [&](const auto& name) {
    return now - name.second.kept.last > lasts_ + std::chrono::nanoseconds(options_.warnings.kept);
  });
}

void warning_list::tell(entry& shown) {
  const bool is_new = shown.told_times == 0;
  if (!is_new && (shown.kept.last - shown.told < options_.warnings.again ||
                  shown.told_times == shown.kept.times))
    return;
  shown.told = shown.kept.last;
  shown.told_times = shown.kept.times;
  options_.on_warning ? options_.on_warning(shown.kept) : write_line(shown.kept);
}

void warning_list::write_line(const warning& shown) {
  if (options_.warning_lines == 0) return;
  if (shown.last - minute_began_ >= std::chrono::minutes(1)) {
    minute_began_ = shown.last;
    lines_ = 0;
  }
  if (lines_ == options_.warning_lines) {
    const std::string more = "troupe: warning: … and more within a minute, which `troupe dump " +
                             std::to_string(::getpid()) + "` shows";
    failure_lines::write_text(more.c_str());
  }
  if (lines_++ >= options_.warning_lines) return;
  std::string line = "troupe: warning: " + shown.text + " " + shown.advice;
  if (shown.times > 1) line += " (" + std::to_string(shown.times) + " times so far)";
  failure_lines::write_text(line.c_str());
}

void warning_list::write_all(json_text& text) const {
  const auto now = std::chrono::steady_clock::now();
  text.open('[');
  for (const auto& [name, shown] : all_) {
    const warning& kept = shown.kept;
    text.open('{').member("kind", name_of(kept.kind)).member("class", kept.actor);
    text.member("handler", kept.method).member("actor", kept.actor_id);
    text.member("active", is_active(kept, now)).member("severe", is_severe(kept.kind));
    text.member("since_ns", ns_of(kept.since)).member("last_ns", ns_of(kept.last));
    text.member("longest_ns", std::chrono::nanoseconds(kept.longest).count())
        .member("times", kept.times);
    text.member("subject", kept.subject).member("text", kept.text);
    text.member("advice", kept.advice).close('}');
  }
  text.close(']');
}

void warning_list::write_counts(json_text& text) const {
  text.open('{');
  for_each_kind(
      [&](std::string_view kind, const kind_counts& counts) { text.member(kind, counts.found); });
  text.close('}');
}

}  // namespace troupe::observing
