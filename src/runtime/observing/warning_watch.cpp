#include "runtime/observing/warning_watch.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <new>

#include "base/atomics.hpp"
#include "base/clock.hpp"
#include "base/threads/thread_clock.hpp"
#include "observe/numbers/registry.hpp"
#include "observe/ticks.hpp"
#include "runtime/core/runtime_core.hpp"
#include "runtime/observing/core_parts.hpp"
#include "runtime/observing/numbers/sums.hpp"
#include "runtime/observing/warnings/repetition.hpp"
#include "runtime/observing/warnings/warning_texts.hpp"

namespace troupe::observing {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000, ns_per_s = 1'000'000'000;
// How often it looks at running parts: twice in a row, as far apart as a handler may take.
constexpr std::int64_t running_pause_ns = 20 * ns_per_ms, idle_pause_ns_max = 100 * ns_per_ms;
constexpr std::int64_t share_of_long_looks = 50;
constexpr std::size_t growing_max = 10'000;

std::int64_t ns_of(std::chrono::nanoseconds span) { return span.count(); }

std::int64_t period_of(const warning_limits& limits) {
  std::int64_t period = ns_per_s;
  for (const std::int64_t limit :
       {ns_of(limits.mailbox), ns_of(limits.growth), ns_of(limits.ask), ns_of(limits.lock)}) {
    if (limit != 0) period = std::min(period, limit / 4);
  }
  return std::max(period, 5 * ns_per_ms);
}

// The number of messages of a handler that this thread has begun; of all threads that are no
// workers, if it is none.
std::uint64_t messages_of(const actor::message_counts& counts, const tasks::running_work& work,
                          const actor::cell_type* type) {
  std::uint64_t sum = 0;
  counts.for_each_thread([&](const actor::thread_counts& thread) {
    if (thread.worker() != work.worker) return;
    thread.for_each_handler([&](const actor::handler_count& handler) {
      if (handler.method == work.method && handler.type == type) sum += handler.messages.get();
    });
  });
  return sum;
}

constexpr const char* advice_for_handler =
    "That holds up whatever else its thread has to do: let it co_await what it waits for, give "
    "calls that block to blocking(), or split the work.";

}  // namespace

warning_watch::warning_watch(runtime_core& core)
    : core_(core),
      limits_(core.options.warnings),
      began_ns_(base::now_ns()),
      period_ns_(period_of(limits_)),
      next_running_ns_(limits_.handler.count() == 0 ? INT64_MAX : began_ns_),
      next_all_ns_(began_ns_ + period_ns_),
      last_all_ns_(began_ns_),
      list_(core.options),
      waits_(*core.system, core.options, began_ns_),
      counts_(*core.system, core.options),
      numbers_(core.options.warnings) {}

std::int64_t warning_watch::look(std::int64_t now) noexcept {
  tell_stalls();
  try {
    if (now >= next_running_ns_) look_at_running(now);
    if (now >= next_all_ns_) look_at_all(now);
  } catch (const std::bad_alloc&) {  // the next look may find memory
    next_all_ns_ = now + ns_per_s;
    if (next_running_ns_ <= now) next_running_ns_ = now + ns_per_s;
  }
  return std::min(next_running_ns_, next_all_ns_);
}

// ---- handlers that take long ----

std::vector<warning_watch::running_part> warning_watch::what_runs(std::int64_t now) const {
  std::vector<running_part> seen;
  tasks::for_each_running(*core_.system, [&](const tasks::running_work& work) {
    // jobs compute: they may take long
    if (work.actor != nullptr || work.is_posted) seen.push_back({work, nullptr, work.begun, now});
  });
  for (running_part& part : seen) {
    if (part.work.actor == nullptr || core_.system->counts == nullptr) continue;
    part.type = actor::find_type(part.work.actor);
    part.number += messages_of(*core_.system->counts, part.work, part.type);
  }
  return seen;
}

// A part that is seen at two looks has run for the whole time between them.
void warning_watch::look_at_running(std::int64_t now) {
  std::vector<running_part> seen = what_runs(now);
  for (running_part& part : seen) {
    const auto before = std::ranges::find_if(
        running_, [&](const running_part& other) { return part.is_same_as(other); });
    if (before != running_.end()) part = *before;
  }
  running_ = std::move(seen);
  looks_twice_ = !looks_twice_ && !running_.empty();
  idle_ns_ = running_.empty() ? std::min(idle_ns_ + running_pause_ns, idle_pause_ns_max) : 0;
  const std::chrono::nanoseconds again(looks_twice_
                                           ? std::max(ns_of(limits_.handler), ns_per_ms / 10)
                                           : running_pause_ns + idle_ns_);
  next_running_ns_ = time_span(again).after(std::chrono::nanoseconds(now)).count();
  for (running_part& part : running_) {
    if (now - part.first_ns >= ns_of(limits_.handler))
      add_running(part, now, !std::exchange(part.counted, true));
  }
}

void warning_watch::add_running(const running_part& part, std::int64_t now, bool is_new) {
  const tasks::running_work& work = part.work;
  finding found{warning_kind::long_handler};
  found.method = work.is_posted ? "a posted procedure" : name_of(work.method);
  found.subject = found.method;
  if (work.actor != nullptr) {
    found.actor_id = core_.system->slots.find_number(work.actor);
    if (part.type == nullptr || found.actor_id == 0) return;  // it has ended meanwhile
    if (part.type->may_block) return;
    found.actor = part.type->name;
    found.subject += " of " + std::string(part.type->name) + " #" + std::to_string(found.actor_id);
  }
  found.times = is_new ? 1 : 0;
  found.lasted_ns = now - part.first_ns;
  found.text =
      found.subject + " has run for " + time_text(found.lasted_ns) + " so far on " +
      (work.worker == 0 ? "a thread that is no worker, and "
                        : "worker " + std::to_string(work.worker) + ", and ") +
      (base::is_blocked(work.system_thread) ? "is blocked there in a call of the system or by a "
                                              "lock."
                                            : "computes, or waits for a processor.");
  found.advice = advice_for_handler;
  list_.add(std::move(found));
}

void warning_watch::look_at_samples() {
  if (limits_.handler.count() == 0 || core_.system->counts == nullptr) return;
  const observe::tick_scale now;
  const double ns = static_cast<double>(now.ns - core_.observed_since.ns);
  if (ns <= 0) return;
  const auto least =
      static_cast<std::uint64_t>(static_cast<double>(ns_of(limits_.handler)) *
                                 static_cast<double>(now.ticks - core_.observed_since.ticks) / ns);
  struct long_calls {
    std::uint64_t count = 0;
    std::uint64_t longest = 0;  // ticks
  };
  std::map<std::pair<std::string_view, std::string_view>, long_calls> sums;
  core_.system->counts->for_each_thread([&](const actor::thread_counts& counts) {
    counts.for_each_handler([&](const actor::handler_count& handler) {
      const std::uint64_t count = handler.type->may_block ? 0 : handler.busy.count_above(least);
      if (count == 0) return;
      long_calls& calls = sums[{handler.type->name, name_of(handler.method)}];
      observe::value_counts all;
      handler.busy.add_to(all);
      calls.count += count;
      calls.longest = std::max(calls.longest, all.quantile(1));
    });
  });
  const double ns_per_tick = ns / static_cast<double>(now.ticks - core_.observed_since.ticks);
  for (const auto& [name, calls] : sums) {
    const std::uint64_t more = calls.count - std::exchange(sampled_[name], calls.count);
    if (more == 0) continue;
    finding found{warning_kind::long_handler, name.first, name.second, 0, more};
    found.lasted_ns = static_cast<std::int64_t>(static_cast<double>(calls.longest) * ns_per_tick);
    found.subject = std::string(name.second) + " of " + std::string(name.first);
    found.text = found.subject + " took more than " + time_text(ns_of(limits_.handler)) +
                 " in about " + std::to_string(calls.count) +
                 " calls so far, as samples show; the longest took about " +
                 time_text(found.lasted_ns) + ".";
    found.advice = advice_for_handler;
    list_.add(std::move(found));
  }
}

// ---- conditions that take a look at all actors ----

// The processor time counts: on a busy machine a look lasts much longer, and warnings would lapse
// if the next one came the later for it.
void warning_watch::look_at_all(std::int64_t now) {
  const std::int64_t used_before = base::own_cpu_ns();
  look_at_samples();
  look_at_mailboxes(now);
  waits_.look(now, list_);
  look_at_counts(now);
  look_at_blocking_pool();
  look_at_descriptors();
  look_at_membarrier();
  list_.forget_old();
  const std::int64_t used = base::own_cpu_ns() - used_before;
  const std::int64_t pause = std::max(period_ns_, share_of_long_looks * used);
  next_all_ns_ = now + pause;
  // On a busy machine the thread begins its looks late.
  const std::int64_t since_last = now - std::exchange(last_all_ns_, now);
  list_.set_pause(std::chrono::nanoseconds(std::max(pause, since_last)));
}

namespace {

// The messages of threads that are no workers.
std::uint64_t count_from_outside(const actor::message_counts* counts) {
  std::uint64_t sum = 0;
  if (counts == nullptr) return sum;
  counts->for_each_thread([&](const actor::thread_counts& thread) {
    thread.for_each_edge([&](const actor::edge_count& edge) {
      if (edge.sender == nullptr) sum += edge.messages.get();
    });
  });
  return sum;
}

}  // namespace

void warning_watch::look_at_counts(std::int64_t now) {
  const runtime_metrics metrics = core_.metrics();
  counts_.look(
      now, [this](std::string_view name) { return waits_.is_in_cycle(name); }, list_);
  counts_.look_at_dead_letters(metrics.dead_letters, now, list_);
  numbers_.look(now, list_, [this](observe::row_sink& rows) {
    core_.components->collect(rows, "");
    observe::collect_sources(rows);
  });
  // Each of these only rises.
  std::uint64_t others = metrics.total.spawned + metrics.failures + metrics.dead_letters;
  for (const auto& [name, all] : sum_up(reactor_of(core_))) {
    others += all.operations;
    counts_.look_at_operation(name, all.timed.took, ns_per_tick_of(core_), now, list_);
  }
  for (const auto& [name, all] : sum_up(core_.jobs->counts())) others += all.computed;
  for (const auto& source : core_.clock->count_by_source()) others += source.expired;
  others += count_from_outside(core_.system->counts.get());
  if (core_.options.policy == policy::simulated) return;  // whose time is virtual
  counts_.look_at_progress(metrics.total.messages, others, now, list_);
  counts_.look_at_timers(*core_.clock, now, list_);
}

bool warning_watch::has_grown(const actor::seen_actor& seen, std::int64_t now, grown& of_class) {
  const auto found = growing_.find(seen.id);
  if (found == growing_.end()) {
    if (growing_.size() < growing_max)
      growing_.insert({seen.id, {now, seen.mail, seen.mail, looks_, false}});
    return false;
  }
  growth& course = found->second;
  if (seen.mail < course.last) course = {now, seen.mail, seen.mail, looks_, false};
  course.last = seen.mail;
  course.look = looks_;
  const bool grew = course.last > course.first || seen.has_more;
  if (now - course.since_ns < ns_of(limits_.mailbox) || !grew) return false;
  of_class.more += std::exchange(course.counted, true) ? 0 : 1;
  if (seen.mail < of_class.longest.mail) return true;
  of_class.longest = seen;
  of_class.since_ns = course.since_ns;
  return true;
}

void warning_watch::look_at_mailboxes(std::int64_t now) {
  if (limits_.mailbox.count() == 0) return;
  ++looks_;
  std::map<std::string_view, grown> classes;
  mail_.clear();
  actor::scan_actors(*core_.system, 0, [&](const actor::seen_actor& seen) {
    if (seen.mail == 0) return true;
    class_mail& all = mail_[seen.type->name];
    all.messages += seen.mail;
    all.longest = std::max<std::uint64_t>(all.longest, seen.mail);
    if (seen.mail < limits_.mailbox_messages) return true;
    grown none;
    const auto known = classes.find(seen.type->name);
    grown& of_class = known == classes.end() ? none : known->second;
    if (has_grown(seen, now, of_class) && known == classes.end())
      classes.emplace(seen.type->name, none);
    return true;
  });
  std::erase_if(growing_, [this](const auto& entry) { return entry.second.look != looks_; });
  for (const auto& [name, mail] : classes) {
    finding found{warning_kind::growing_mailbox, name, {}, mail.longest.id, mail.more};
    found.lasted_ns = now - mail.since_ns;
    found.subject = "the mailbox of " + std::string(name) + " #" + std::to_string(mail.longest.id);
    found.text = found.subject + " has grown for " + time_text(found.lasted_ns) + ", to " +
                 (mail.longest.has_more ? "more than " : "") + std::to_string(mail.longest.mail) +
                 " messages: the actor " +
                 (mail.longest.state == actor::seen_state::suspended
                      ? "is suspended, and a dump says what it waits for."
                      : "handles fewer than it gets.");
    found.advice =
        "Let its senders wait (spawn_options::mailbox), send it less, or share its work among "
        "several actors.";
    list_.add(std::move(found));
  }
}

// ---- shortages of the process ----

// Only when the pool is full at two looks: short bursts do not matter.
void warning_watch::look_at_blocking_pool() {
  const std::size_t calls = core_.aside.count(), threads = core_.options.blocking_threads;
  const bool is_full = limits_.blocking_pool && calls > threads;
  if (std::exchange(pool_was_full_, is_full) && is_full) {
    finding found{warning_kind::blocking_pool_full};
    found.subject = "all " + std::to_string(threads) + " threads for blocking calls";
    found.text = found.subject + " are in use, and " + counted(calls - threads, "call") +
                 (calls - threads == 1 ? " waits." : " wait.");
    found.advice = "Raise runtime_options::blocking_threads, or call what does not block.";
    list_.add(std::move(found));
  }
}

void warning_watch::look_at_descriptors() {
  ::rlimit limit{};
  if (limits_.descriptors_percent == 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  struct ::stat all {};
  if (::stat("/proc/self/fd", &all) != 0) return;
  auto open = static_cast<std::uint64_t>(all.st_size);
  if (open == 0) {  // before Linux 6.2
    std::error_code none;
    for (std::filesystem::directory_iterator at("/proc/self/fd", none), end; at != end;
         at.increment(none))
      ++open;
  }
  if (limit.rlim_cur == RLIM_INFINITY || open < limit.rlim_cur / 100 * limits_.descriptors_percent)
    return;
  finding found{warning_kind::descriptors_run_out};
  found.subject = "the process";
  found.text = "the process has opened " + std::to_string(open) + " of " +
               std::to_string(limit.rlim_cur) + " descriptors.";
  found.advice =
      "Raise the limit (ulimit -n), limit the connections, or look for streams that are never "
      "closed.";
  list_.add(std::move(found));
}

void warning_watch::look_at_membarrier() {
  const std::uint64_t more = rise_of(refusals_, base::asymmetric::refusals());
  if (!limits_.others || more == 0) return;
  finding found{warning_kind::membarrier_refused};
  found.times = more;
  found.subject = "the system call membarrier";
  found.text =
      "the system call membarrier was allowed when the runtime started, and is refused now: a "
      "worker gets the work of another one only when that one answers.";
  found.advice =
      "Allow membarrier in the filter of system calls, or install the filter before the first "
      "runtime.";
  list_.add(std::move(found));
}

// ---- stalls ----

void warning_watch::tell_stalls() noexcept try {
  stall_notes::taken noted = core_.stalls.take();
  if (noted.times == 0) return;
  finding found{warning_kind::stall};
  found.times = noted.times;
  found.subject = "run()";
  found.text = std::move(noted.text);
  found.advice = "Keep or break the promises for which these turns wait.";
  list_.add(std::move(found));
} catch (const std::bad_alloc&) {
  // run() has thrown the same
}

}  // namespace troupe::observing
