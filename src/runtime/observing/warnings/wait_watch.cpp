#include "runtime/observing/warnings/wait_watch.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "runtime/observing/numbers/sums.hpp"
#include "runtime/observing/warnings/wait_cycles.hpp"
#include "runtime/observing/warnings/warning_texts.hpp"
#include "task/running/running.hpp"
#include "troupe/task/future.hpp"

namespace troupe::observing {
namespace {

constexpr std::int64_t ns_per_wait_unit = 10'000'000;  // of look_at_waits

std::int64_t ns_of(std::chrono::nanoseconds span) { return span.count(); }

std::string place_of_wait(const actor::suspended_call& call) {
  return call.waits_for && call.waits_for->at.line() != 0 ? actor::place_of(call.waits_for->at)
                                                          : std::string();
}

}  // namespace

std::int64_t wait_watch::ns_since(std::uint32_t first_seen) const noexcept {
  return base::now_ns() - began_ns_ - (std::int64_t{first_seen} - 1) * ns_per_wait_unit;
}

// A wait that was seen first at that time or earlier has lasted for the limit; 0: no wait has.
std::uint32_t wait_watch::units_before(std::uint32_t now, time_span limit) const noexcept {
  const auto units = static_cast<std::uint32_t>(
      std::min<std::int64_t>(ns_of(limit) / ns_per_wait_unit, UINT32_MAX));
  return units != 0 && now > units ? now - units : 0;
}

// In virtual time there are no late answers, and a look would change the replay of a seed.
void wait_watch::look(std::int64_t now, warning_list& list) {
  if (options_.policy == policy::simulated) return;
  const auto unit_now = static_cast<std::uint32_t>((now - began_ns_) / ns_per_wait_unit + 1);
  const std::uint32_t asks_before = units_before(unit_now, options_.warnings.ask);
  const std::uint32_t locks_before = units_before(unit_now, options_.warnings.lock);
  std::vector<late_ask> asks;
  std::vector<actor::long_wait> locks;
  std::map<const void*, std::uint64_t> ids;
  actor::look_at_waits(
      system_, unit_now, std::max(asks_before, locks_before), [&](const actor::long_wait& wait) {
        if (wait.for_lock) {
          if (wait.first_seen <= locks_before) locks.push_back(wait);
        } else if (wait.first_seen <= asks_before) {
          const void* const asked = wait.call.waits_for ? wait.call.waits_for->asked : nullptr;
          const auto [found, is_new] = ids.try_emplace(asked);
          if (is_new && asked != nullptr) found->second = system_.slots.find_number(asked);
          asks.push_back({wait, found->second});
        }
      });
  add_cycles(asks, std::exchange(asks_before_, asks_before), now, list);
  add_locks(locks, std::exchange(locks_before_, locks_before), list);
  if (options_.warnings.ask.count() != 0) look_at_blocked_threads(now, list);
}

// ---- asks ----

// Warns of the asks that wait for each other, and of the rest.
void wait_watch::add_cycles(std::vector<late_ask>& asks, std::uint32_t before, std::int64_t now_ns,
                            warning_list& list) {
  wait_cycles cycles;
  for (const late_ask& ask : asks) {
    if (ask.asked != 0) cycles.add(ask.wait.call.id, ask.asked);
  }
  cycles.search();
  std::map<std::size_t, group> calls;
  // of each cycle one ask of each actor, by the actor
  std::map<std::size_t, std::map<std::uint64_t, const late_ask*>> of_actors;
  for (const late_ask& ask : asks) {
    const std::size_t cycle = cycles.cycle_of(ask.wait.call.id, ask.asked);
    if (cycle == wait_cycles::none) continue;
    calls[cycle].add(ask.wait, before);
    of_actors[cycle].try_emplace(ask.wait.call.id, &ask);
    actors_in_cycles_[ask.wait.call.id] = now_ns;
    classes_in_cycles_[ask.wait.call.actor] = now_ns;
  }
  for (const auto& [cycle, all] : of_actors) add_cycle(path_of(all), calls[cycle], list);
  const auto is_old = [&](const auto& seen) { return now_ns - seen.second > list.lasts().count(); };
  std::erase_if(actors_in_cycles_, is_old);
  std::erase_if(classes_in_cycles_, is_old);
  std::erase_if(asks, [&](const late_ask& ask) {
    return actors_in_cycles_.contains(ask.wait.call.id) && actors_in_cycles_.contains(ask.asked);
  });
  add_asks(asks, before, list);
}

// From the first actor on, from each actor to the one that it asks.
std::vector<const wait_watch::late_ask*> wait_watch::path_of(
    const std::map<std::uint64_t, const late_ask*>& cycle) {
  std::vector<const late_ask*> path;
  for (auto at = cycle.begin(); at != cycle.end() && path.size() < cycle.size();
       at = cycle.find(at->second->asked)) {
    if (std::ranges::find(path, at->second) != path.end()) break;
    path.push_back(at->second);
  }
  return path;
}

void wait_watch::add_cycle(const std::vector<const late_ask*>& path, const group& calls,
                           warning_list& list) const {
  constexpr std::size_t shown_max = 5;
  finding found{warning_kind::wait_cycle};
  std::string names, lines;
  for (std::size_t i = 0; i < std::min(path.size(), shown_max); ++i) {
    const actor::suspended_call& call = path[i]->wait.call;
    names += std::string(call.actor) + " → ";
    lines += (i == 0 ? "" : ", ") + std::string(call.actor) + " #" + std::to_string(call.id);
    if (const std::string place = place_of_wait(call); !place.empty()) lines += " at " + place;
  }
  if (path.size() > shown_max) names += "… → ";
  const actor::suspended_call& first = path.front()->wait.call;
  found.actor = first.actor;
  found.method = names;
  found.actor_id = first.id;
  found.times = calls.more;
  found.subject = names + first.actor;
  found.lasted_ns = ns_since(calls.longest->first_seen);
  found.text = found.subject + " wait for each other's answers, " + counted(calls.count, "call") +
               ", for " + time_text(found.lasted_ns) + " so far: " + lines + ".";
  found.advice =
      "None of these calls can end before the others: let one actor tell instead of ask, or give "
      "its ask a limit with timeout().";
  list.add(std::move(found));
}

void wait_watch::add_asks(const std::vector<late_ask>& asks, std::uint32_t before,
                          warning_list& list) const {
  std::map<std::pair<std::string_view, std::string_view>, group> groups;
  for (const late_ask& ask : asks)
    groups[{ask.wait.call.actor, ask.wait.call.method}].add(ask.wait, before);
  for (const auto& [key, all] : groups) {
    const actor::suspended_call& call = all.longest->call;
    finding found{warning_kind::unanswered_ask, key.first, key.second, call.id, all.more};
    found.text = actor::line_of(call, system_).substr(3);
    found.subject = found.text.substr(0, found.text.find(" waits"));
    found.lasted_ns = ns_since(all.longest->first_seen);
    found.text += ", for " + time_text(found.lasted_ns) + " so far";
    if (all.count > 1) found.text += "; " + counted(all.count, "such call") + " wait";
    found.text += ".";
    found.advice =
        "See what the actor that is asked does or waits for, or give the ask a limit with "
        "timeout().";
    list.add(std::move(found));
  }
}

// ---- locks ----

void wait_watch::add_locks(const std::vector<actor::long_wait>& waits, std::uint32_t before,
                           warning_list& list) const {
  std::map<std::string, group> groups;  // by the lock in words
  for (const actor::long_wait& late : waits) {
    const actor::awaited& wait = *late.call.waits_for;
    std::string lock = std::string(wait.event) + wait.method;
    if (wait.held_since.line() != 0) lock += " since " + actor::place_of(wait.held_since);
    groups[std::move(lock)].add(late, before);
  }
  for (const auto& [lock, all] : groups) {
    const actor::suspended_call& call = all.longest->call;
    finding found{warning_kind::long_lock, {}, lock, call.id, all.more};
    found.subject = lock;
    found.lasted_ns = ns_since(all.longest->first_seen);
    found.text = lock + " keeps " + counted(all.count, "call") + " waiting, the longest for " +
                 time_text(found.lasted_ns) + " so far: " + call.actor + " #" +
                 std::to_string(call.id) + " in " + call.method;
    if (const std::string place = place_of_wait(call); !place.empty()) found.text += " at " + place;
    found.text += ".";
    found.advice =
        "Do not wait for anything long while you hold a lock: copy what the lock guards, give the "
        "lock back, and wait then; or give lock() a timeout.";
    list.add(std::move(found));
  }
}

// ---- threads that wait in get() ----

void wait_watch::look_at_blocked_threads(std::int64_t now, warning_list& list) {
  struct look {
    wait_watch& self;
    std::int64_t now;
    decltype(blocked_) blocked;
    std::vector<finding> found;
    bool failed = false;
    void add(const tasks::blocked_thread& thread) noexcept try {
      const tasks::ask_link* const asked = thread.waits_for.asked;
      if (asked == nullptr || asked->kind != tasks::ask_link::subject::answer ||
          thread.waits_for.resolved() || self.system_.slots.find_number(asked->asked) == 0)
        return;
      const auto known = self.blocked_.find(thread.number);
      const std::int64_t since = known == self.blocked_.end() ? now : std::abs(known->second);
      const bool is_late = now - since >= ns_of(self.options_.warnings.ask);
      blocked.insert({thread.number, is_late ? -since : since});
      if (!is_late) return;
      finding& late = found.emplace_back(finding{warning_kind::unanswered_ask});
      late.method = "a blocked thread";
      late.times = known->second < 0 ? 0 : 1;  // a negative time: it has been counted
      late.subject = "a thread";
      late.lasted_ns = now - since;
      late.text = "a thread waits in get() for the answer of " +
                  std::string(name_of(asked->method)) + ", for " + time_text(now - since) +
                  " so far.";
      late.advice = "See what the actor that is asked does or waits for.";
    } catch (const std::bad_alloc&) {
      failed = true;
    }
  };
  look all{*this, now, {}, {}};
  static_cast<void>(
      tasks::for_each_blocked(&all, [](void* looking, const tasks::blocked_thread& thread) {
        static_cast<look*>(looking)->add(thread);
      }));
  if (all.failed) throw std::bad_alloc();
  blocked_ = std::move(all.blocked);
  for (finding& late : all.found) list.add(std::move(late));
}

}  // namespace troupe::observing
