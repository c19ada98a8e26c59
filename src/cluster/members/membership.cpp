#include "cluster/members/membership.hpp"

#include <algorithm>
#include <utility>

#include "base/invariant.hpp"
#include "durable/memory/outside_calls.hpp"

namespace troupe::cluster::parts {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t events_kept = 4'096;

// How long an answer may be under way: of a node whose lease has expired, and of one that has left
// in good order, which has answered all that it was asked.
constexpr milliseconds answers_of_the_dead{250}, answers_of_leavers{2'000};

// Members that are in `rows` and not in `others`.
void add_events(std::vector<member_event>& events, const std::vector<member_row>& rows,
                const std::vector<member_row>& others, bool joined) {
  for (const member_row& row : rows) {
    if (!std::ranges::binary_search(others, row)) events.push_back({joined, {row.id, row.name}});
  }
}

}  // namespace

void membership::change(std::vector<member_row> now) {
  std::vector<channel<member_event>> watchers;
  std::vector<std::stop_source> ended, left;
  std::vector<member_event> events;
  {
    std::lock_guard held(mutex_);
    for (member_row& row : now) {
      if (std::exchange(row.is_leaving, false)) leaving_.insert(row.id);  // it is still there
    }
    std::ranges::sort(now);
    add_events(events, members_, now, false);
    add_events(events, now, members_, true);
    members_ = std::move(now);
    TROUPE_INVARIANT(std::ranges::adjacent_find(members_, {}, &member_row::id) == members_.end(),
                     "N8");
    watchers = watchers_;
    for (const member_event& event : events) {
      if (event.joined) continue;
      const bool has_left = leaving_.erase(event.node.id) != 0;
      if (auto end = ends_.extract(event.node.id))
        (has_left ? left : ended).push_back(std::move(end.mapped()));
    }
  }
  end_later(std::move(ended), answers_of_the_dead);
  end_later(std::move(left), answers_of_leavers);
  for (const auto& watcher : watchers) {
    for (const member_event& event : events) static_cast<void>(watcher.try_send(event));
  }
}

void membership::end_later(std::vector<std::stop_source> asks, milliseconds pause) {
  if (asks.empty()) return;
  const auto ends = [all = std::move(asks)]() mutable {
    for (auto& ask : all) ask.request_stop();
  };
  const durable::parts::outside_calls none;
  static_cast<void>(on_.after(pause, ends, {.weak = true}));
}

channel<member_event> membership::watch() {
  const auto events = channel<member_event>::bounded(events_kept);
  std::lock_guard held(mutex_);
  for (const member_row& row : members_)
    static_cast<void>(events.try_send(member_event{true, {row.id, row.name}}));
  watchers_.push_back(events);
  return events;
}

std::vector<cluster::member> membership::now() const {
  std::lock_guard held(mutex_);
  std::vector<cluster::member> all;
  for (const member_row& row : members_) all.push_back({row.id, row.name});
  return all;
}

std::size_t membership::size() const {
  std::lock_guard held(mutex_);
  return members_.size();
}

std::stop_token membership::end_of(const std::string& member) {
  std::lock_guard held(mutex_);
  return ends_[member].get_token();
}

void membership::close() noexcept {
  std::vector<channel<member_event>> watchers;
  {
    std::lock_guard held(mutex_);
    watchers.swap(watchers_);
  }
  for (const auto& watcher : watchers) watcher.close();
}

}  // namespace troupe::cluster::parts
