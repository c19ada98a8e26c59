#include "runtime/observing/warnings/count_watch.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "actor/counting/message_counts.hpp"
#include "actor/waits/suspended.hpp"
#include "runtime/observing/numbers/sums.hpp"
#include "runtime/observing/warnings/warning_texts.hpp"

namespace troupe::observing {

void count_watch::look(std::int64_t now_ns, const explains& explained, warning_list& list) {
  if (system_.counts == nullptr) return;
  if (options_.warnings.others) look_at_failures(now_ns, list);
  if (options_.warnings.growth.count() != 0) look_at_classes(now_ns, explained, list);
}

void count_watch::look_at_failures(std::int64_t now_ns, warning_list& list) {
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> sums;
  system_.counts->for_each_thread([&](const actor::thread_counts& counts) {
    counts.for_each_handler([&](const actor::handler_count& handler) {
      if (const std::uint64_t count = handler.failures.get())
        sums[{handler.type->name, name_of(handler.method)}] += count;
    });
  });
  for (const auto& [name, count] : sums) {
    seen_failures& seen = failures_[name];
    const std::uint64_t more = rise_of(seen.count, count);
    if (more == 0 || !seen.again.is_again(now_ns, list.lasts())) continue;
    finding found{warning_kind::failing_handler, name.first, name.second, 0, more};
    found.subject = std::string(name.second) + " of " + std::string(name.first);
    found.text = found.subject + " has thrown " + std::to_string(count) + " exceptions so far, " +
                 std::to_string(more) + " of them since the last look.";
    found.advice =
        "Standard error, or on_error, says which: handle them in the handler, or supervise the "
        "actor.";
    list.add(std::move(found));
  }
}

// ---- numbers of actors and of suspended calls ----

void count_watch::look_at_classes(std::int64_t now_ns, const explains& explained,
                                  warning_list& list) {
  std::map<std::string_view, class_sum> sums;
  system_.counts->for_each_thread([&](const actor::thread_counts& counts) {
    counts.for_each_class(
        [&](const actor::class_count& actors) { sums[actors.type->name].add(actors); });
  });
  const std::int64_t least_ns = std::chrono::nanoseconds(options_.warnings.growth).count();
  for (const auto& [name, all] : sums) {
    const std::uint64_t alive = all.alive(), suspended = all.suspended_now();
    seen_class& seen = classes_[name];
    const auto is_long = [&](std::uint64_t count, std::int64_t grown_ns, bool& is_counted) {
      const bool is = count >= options_.warnings.growth_least && grown_ns >= least_ns;
      if (!is) is_counted = false;
      return is;
    };
    // Suspended calls of spawned tasks are actors of their own: one warning is enough.
    const std::int64_t calls_ns = seen.suspended.grown_ns(suspended, now_ns);
    const std::int64_t actors_ns = seen.alive.grown_ns(alive, now_ns);
    if (is_long(suspended, calls_ns, seen.are_suspended_counted)) {
      if (!explained(name))
        add_suspended(name, suspended, calls_ns, !std::exchange(seen.are_suspended_counted, true),
                      list);
    } else if (is_long(alive, actors_ns, seen.is_counted)) {
      add_growing(name, alive, actors_ns, !std::exchange(seen.is_counted, true), list);
    }
  }
}

void count_watch::add_growing(std::string_view name, std::uint64_t alive, std::int64_t grown_ns,
                              bool is_new, warning_list& list) const {
  finding found{warning_kind::growing_class, name, {}, 0, is_new ? 1u : 0u};
  found.subject = std::string(name);
  found.text = found.subject + " has more and more actors, for " + time_text(grown_ns) + ": " +
               std::to_string(alive) + " are alive.";
  found.advice =
      "An actor ends with its last ref, or by stop(): look for refs that are kept, or stop the "
      "actors that are not needed.";
  found.lasted_ns = grown_ns;
  list.add(std::move(found));
}

// Most calls of the class wait at this line.
void count_watch::add_suspended(std::string_view name, std::uint64_t suspended,
                                std::int64_t grown_ns, bool is_new, warning_list& list) const {
  constexpr std::size_t calls_max = 10'000;
  std::map<std::string, std::pair<std::size_t, std::uint64_t>> places;  // calls, and an actor
  if (const actor::actor_system::gate_guard gate(system_); gate.let_in()) {
    for (const actor::suspended_call& call : actor::find_suspended(system_, calls_max).found) {
      if (call.actor != name || !call.waits_for) continue;
      std::string line = std::string(call.method);
      if (call.waits_for->at.line() != 0) line += " at " + actor::place_of(call.waits_for->at);
      line += std::string(" for ") + call.waits_for->event + call.waits_for->method;
      auto& [calls, actor] = places[std::move(line)];
      ++calls;
      actor = call.id;
    }
  }
  finding found{warning_kind::growing_suspended, name, {}, 0, is_new ? 1u : 0u};
  found.subject = std::string(name);
  found.text = found.subject + " has more and more suspended calls, for " + time_text(grown_ns) +
               ": " + std::to_string(suspended) + " wait";
  const auto most =
      std::ranges::max_element(places, {}, [](const auto& place) { return place.second.first; });
  if (most != places.end()) {
    found.text += ", most of them in " + most->first;
    found.actor_id = most->second.second;
  }
  found.text += ".";
  found.advice =
      "Look for a promise that is not kept or an event that does not come; or limit the wait with "
      "a timeout, or the calls with a bounded mailbox.";
  found.lasted_ns = grown_ns;
  list.add(std::move(found));
}

// ---- sums of the whole runtime ----

void count_watch::look_at_dead_letters(std::uint64_t now, std::int64_t now_ns, warning_list& list) {
  const std::uint64_t more = rise_of(dead_letters_, now);
  if (!options_.warnings.others || more == 0 || !dead_letters_again_.is_again(now_ns, list.lasts()))
    return;
  finding found{warning_kind::dead_letters, {}, {}, 0, more};
  found.subject = counted(now, "message");
  found.text = found.subject + " were sent to actors that have ended, " + std::to_string(more) +
               " of them since the last look.";
  found.advice = "Let go of the refs of actors that have ended, or ask the parent for the new one.";
  list.add(std::move(found));
}

void count_watch::look_at_timers(tasks::timers& clock, std::int64_t now_ns, warning_list& list) {
  // The limit is the last bound, so that the rest is too late.
  const auto limit = static_cast<double>(std::chrono::nanoseconds(options_.warnings.timer).count());
  if (limit == 0) return;
  const std::array bounds{limit};
  const observe::distribution now =
      clock.count_lateness().spread_over(bounds, [](double ns) { return ns; });
  const std::uint64_t all_before = late_.count();
  const std::uint64_t late_before = all_before == 0 ? 0 : late_.counts.back();
  const std::uint64_t more = now.count() - all_before, late = now.counts.back() - late_before;
  late_.counts = now.counts;
  constexpr std::uint64_t one_in = 100;
  if (late == 0 || late * one_in < more || !late_again_.is_again(now_ns, list.lasts())) return;
  finding found{warning_kind::late_timers, {}, {}, 0, late};
  found.subject = counted(late, "timer");
  found.text = found.subject + " of " + std::to_string(more) + " expired more than " +
               time_text(static_cast<std::int64_t>(limit)) + " late since the last look.";
  found.advice =
      "Too many timers expire at once, or the processors are overloaded: arm fewer of them, or one "
      "for many waits.";
  list.add(std::move(found));
}

// A read waits for its peer, which may be silent for good reasons.
void count_watch::look_at_operation(std::string_view name, const observe::value_counts& took,
                                    double ns_per_tick, std::int64_t now_ns, warning_list& list) {
  const auto limit = static_cast<double>(std::chrono::nanoseconds(options_.warnings.io).count());
  const bool may_be_slow = name == "connect" || name == "write" || name == "send";
  if (limit == 0 || !may_be_slow) return;
  const std::array bounds{limit};
  const std::uint64_t slow =
      took.spread_over(bounds, [&](double ticks) { return ticks * ns_per_tick; }).counts.back();
  seen_operation& seen = operations_[name];
  const std::uint64_t more = rise_of(seen.slow, slow);
  if (more == 0 || !seen.again.is_again(now_ns, list.lasts())) return;
  finding found{warning_kind::long_io, {}, name, 0, more};
  found.subject = std::string(name);
  found.text = found.subject + " took more than " + time_text(static_cast<std::int64_t>(limit)) +
               " in " + counted(slow, "sample") + " so far, " + std::to_string(more) +
               " of them since the last look.";
  found.advice = "A peer does not answer, or does not read: give the operation a timeout.";
  list.add(std::move(found));
}

// ---- messages without any other work ----

void count_watch::look_at_progress(std::uint64_t messages, std::uint64_t others,
                                   std::int64_t now_ns, warning_list& list) {
  constexpr std::uint64_t least_per_second = 1000;
  constexpr std::uint64_t ns_per_s = 1'000'000'000;
  seen_progress before = progress_;
  progress_ = {messages, others, now_ns, before.since_ns, before.is_counted};
  const auto passed =
      static_cast<std::uint64_t>(std::max<std::int64_t>(now_ns - before.look_ns, 1));
  const std::uint64_t per_second = (messages - before.messages) * ns_per_s / passed;
  if (before.look_ns == 0 || others != before.others || per_second < least_per_second) {
    progress_.since_ns = now_ns;
    progress_.is_counted = false;
    return;
  }
  const std::int64_t least_ns = std::chrono::nanoseconds(options_.warnings.growth).count();
  if (!options_.warnings.others || least_ns == 0 || now_ns - before.since_ns < least_ns) return;
  add_livelock(now_ns, per_second, !std::exchange(progress_.is_counted, true), list);
}

void count_watch::add_livelock(std::int64_t now_ns, std::uint64_t per_second, bool is_new,
                               warning_list& list) const {
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> edges;
  if (system_.counts != nullptr) {
    system_.counts->for_each_thread([&](const actor::thread_counts& counts) {
      counts.for_each_edge([&](const actor::edge_count& edge) {
        if (edge.sender != nullptr)
          edges[{edge.sender->name, edge.receiver->name}] += edge.messages.get();
      });
    });
  }
  const auto most =
      std::ranges::max_element(edges, {}, [](const auto& edge) { return edge.second; });
  finding found{warning_kind::livelock, {}, {}, 0, is_new ? 1u : 0u};
  found.subject = "actors";
  if (most != edges.end()) {
    found.actor = most->first.first;
    found.subject = std::string(most->first.first) + " → " + std::string(most->first.second);
  }
  found.lasted_ns = now_ns - progress_.since_ns;
  found.text = found.subject + " and others send " + std::to_string(per_second) +
               " messages per second, and nothing else has happened for " +
               time_text(found.lasted_ns) + ": no I/O, no timer, no lazy, no new actor.";
  found.advice =
      "Actors may answer each other without end: let one of them stop, or wait before it sends "
      "again.";
  list.add(std::move(found));
}

}  // namespace troupe::observing
