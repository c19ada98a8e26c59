#include "runtime/observing/warning_list.hpp"

#include <unistd.h>

#include <utility>

#include "runtime/failures/failure_lines.hpp"

namespace troupe::observing {
namespace {

std::int64_t ns_of(std::chrono::steady_clock::time_point at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

}  // namespace

void warning_list::add(finding one) {
  counts_[static_cast<std::size_t>(one.kind)] += one.times;
  key of{one.kind, one.actor, one.method};
  auto found = all_.find(of);
  const auto now = std::chrono::steady_clock::now();
  if (found == all_.end()) {
    if (all_.size() == kept_max || one.times == 0) return;
    found = all_.try_emplace(std::move(of)).first;
    warning& made = found->second.its;
    made.kind = one.kind;
    made.actor = one.actor;
    made.method = one.method;
    made.since = now;
  }
  warning& its = found->second.its;
  if (one.actor_id != 0) its.actor_id = one.actor_id;
  its.last = now;
  its.times += one.times;
  its.text = std::move(one.text);
  tell(found->second);
}

void warning_list::tell(entry& one) {
  const bool is_new = one.told_times == 0;
  if (!is_new &&
      (one.its.last - one.told < options_.warnings.again || one.told_times == one.its.times))
    return;
  one.told = one.its.last;
  one.told_times = one.its.times;
  options_.on_warning ? options_.on_warning(one.its) : write_line(one.its);
}

void warning_list::write_line(const warning& one) {
  if (options_.warning_lines == 0) return;
  if (one.last - minute_began_ >= std::chrono::minutes(1)) {
    minute_began_ = one.last;
    lines_ = 0;
  }
  if (lines_ == options_.warning_lines) {
    const std::string more = "troupe: warning: … and more within a minute, which `troupe dump " +
                             std::to_string(::getpid()) + "` shows";
    failure_lines::write_text(more.c_str());
  }
  if (lines_++ >= options_.warning_lines) return;
  std::string line = "troupe: warning: " + one.text;
  if (one.times > 1) line += " (" + std::to_string(one.times) + " times so far)";
  failure_lines::write_text(line.c_str());
}

void warning_list::write_all(json_text& to) const {
  to.open('[');
  for (const auto& [of, one] : all_) {
    const warning& its = one.its;
    to.open('{').member("kind", name_of(its.kind)).member("class", its.actor);
    to.member("handler", its.method).member("actor", its.actor_id);
    to.member("since_ns", ns_of(its.since)).member("last_ns", ns_of(its.last));
    to.member("times", its.times).member("text", its.text).close('}');
  }
  to.close(']');
}

void warning_list::write_counts(json_text& to) const {
  to.open('{');
  for_each_count([&](std::string_view kind, std::uint64_t count) { to.member(kind, count); });
  to.close('}');
}

}  // namespace troupe::observing
