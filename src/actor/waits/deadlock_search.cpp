// The search for deadlocks. `collector` is one look at everything that is suspended, `tell` chooses
// the wait that is refused. deadlock_search decides when a search comes (`arm`...), makes its two
// looks (`search_locked`), and refuses waits (`refuse`).
#include "actor/waits/deadlock_search.hpp"

#include <algorithm>
#include <chrono>
#include <compare>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <vector>

#include "actor/mailbox/activation.hpp"
#include "actor/spawned/spawned.hpp"
#include "actor/system/actor_system.hpp"
#include "actor/turn/features.hpp"
#include "actor/waits/suspended.hpp"
#include "actor/waits/two_pass_search.hpp"
#include "actor/waits/wait_graph.hpp"
#include "base/invariant.hpp"
#include "task/running/job_waits.hpp"
#include "task/running/main_lanes.hpp"
#include "task/timers/timers.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/side_call.hpp"
#include "troupe/task/when.hpp"

namespace troupe::actor {
namespace {

// Searches that find no cycle may take at most 1/30 of a thread's time, searches that find one at
// most 1/2.
constexpr std::int64_t share_in_vain = 30, share_of_use = 2;
constexpr std::size_t lines_max = 50;
using waits = wait_node::waits;

// The party that will resolve a state, as far as it is known.
struct source {
  // an async call may be about to answer it, or be the task that gives it
  const tasks::shared_state* state = nullptr;
  const void* actor = nullptr;  // else the actor that will answer it in some later message
  // else the thread that runs the job, or the main thread's lane (src/task/running/main_lanes.hpp)
  const void* thread = nullptr;
  // else the coroutine that holds the lock, or the first one of the child that must end
  const tasks::coroutine* holder = nullptr;
  bool is_child = false;
};

// The caller holds whatever waits for the state. False when the state is resolved.
bool find_source(const tasks::shared_state& state, const tasks::job_waits* jobs,
                 source& found) noexcept {
  const tasks::shared_state* at = &state;
  for (;;) {
    if (at->resolved()) return false;
    found.state = at;
    found.thread = tasks::main_lanes::known_by(tasks::lane_of(*at));
    if (at->asked == nullptr) return true;
    // order: acquire  sees the complete state; pairs with forward_answer/release
    const tasks::shared_state* const next = at->asked->forwarded.load(std::memory_order_acquire);
    if (next == nullptr) break;
    at = next;
  }
  const tasks::ask_link& link = *at->asked;
  if (link.kind != tasks::ask_link::subject::job) {
    found.actor = link.asked;
  } else if (jobs != nullptr) {
    found.thread = jobs->runner_of(link.asked);
  }
  return true;
}

}  // namespace

// The findings of a look. The next look uses the memory again.
struct wait_snapshot {
  struct leaf {
    const tasks::suspension* wait = nullptr;  // null: a thread
    std::uint64_t blocked = 0;  // of a thread: the number of its wait, by which it may be refused
    source from;
    suspended_call call{};  // filled by the second look
  };
  struct call {
    std::uint64_t actor_id;
    std::uint32_t node;
    auto operator<=>(const call&) const = default;
  };
  struct resolver {
    const void* by;
    std::uint32_t node;
  };
  void clear() noexcept {
    nodes.clear();
    leaves.clear();
    calls.clear();
    async_calls.clear();
    ids.clear();
    resolvers.clear();
  }

  std::vector<wait_node> nodes;
  std::vector<leaf> leaves;          // one for each node
  std::vector<std::uint32_t> calls;  // nodes of calls, sorted by their actors' numbers
  // the call that add_call is looking at, and its branches
  std::vector<const tasks::async_call*> async_calls;
  std::vector<call> ids;
  // a party that can resolve a wait, a state, an actor or a thread, and its node
  std::vector<resolver> resolvers;
  // the newest number among the threads' waits, at the first look
  std::uint64_t newest_blocked = 0;
};

namespace {

// Looks at everything that is suspended, and makes a graph of it. The second look takes only waits
// that the first one has seen (D2).
class collector {
 public:
  // The collector uses the snapshot's memory for as long as the collector lives.
  collector(actor_system& system, std::uint32_t number, bool second, wait_snapshot& memory) noexcept
      : nodes(memory.nodes),
        leaves(memory.leaves),
        calls(memory.calls),
        system_(system),
        number_(number),
        second_(second),
        branches_(memory.async_calls),
        ids_(memory.ids),
        resolvers_(memory.resolvers),
        newest_blocked_(memory.newest_blocked) {
    memory.clear();
  }

  void collect() {
    add_main_threads();
    if (!failed_) {
      std::lock_guard lock(system_.looking);
      missed = for_each_held(system_, [this](cell& actor, const tasks::async_call& call) {
        // one that is not reentrant handles nothing else meanwhile
        while_memory_lasts([&] { add_call(actor, call, !actor.type->reentrant); });
      });
    }
    if (!failed_) add_threads();
    if (failed_) throw std::bad_alloc();
    connect();
  }

  using leaf = wait_snapshot::leaf;
  using call = wait_snapshot::call;
  std::vector<wait_node>& nodes;
  std::vector<leaf>& leaves;
  std::vector<std::uint32_t>& calls;
  not_held missed;
  bool has_jobs = false;

 private:
  // Adds the blocked threads that would call run(). The first look takes all of them, the second
  // only those whose waits existed at the first (D2).
  void add_main_threads() {
    const std::uint64_t newest =
        tasks::for_each_blocked(this, [](void* given, const tasks::blocked_thread& thread) {
          auto& self = *static_cast<collector*>(given);
          source from;
          if (thread.main_thread != 0 && self.still_blocked(thread, from)) {
            self.while_memory_lasts([&] { self.add_main_thread(thread, from); });
          }
        });
    if (!second_) newest_blocked_ = newest;
  }
  void add_main_thread(const tasks::blocked_thread& thread, const source& from) {
    main_thread_ = add_thread(from);
    leaves[main_thread_].blocked = thread.number;
    tasks::main_lanes::for_each_of(thread.main_thread, this, [](void* given, const void* lane) {
      auto& self = *static_cast<collector*>(given);
      self.resolvers_.push_back({lane, self.main_thread_});
      if (lane == tasks::main_lanes::known_by(self.system_.main_lane)) self.runs_main_ = lane;
    });
  }

  // The functions called for each turn and each thread let no exception out: collect() throws in
  // the end.
  template <class Step>
  void while_memory_lasts(Step step) noexcept {
    if (failed_) return;
    try {
      step();
    } catch (const std::bad_alloc&) {
      failed_ = true;
    }
  }

  // Adds a call and the tasks that it runs side by side, a node for each; and the nodes that wait
  // for the call: its answer, or any turn of its actor if that handles nothing else meanwhile
  // (holds_actor).
  void add_call(cell& actor, const tasks::async_call& call, bool holds_actor) {
    const auto first = static_cast<std::uint32_t>(nodes.size());
    branches_.assign(1, &call);
    add_node();
    for (std::uint32_t i = first; i < nodes.size(); ++i)
      fill(actor, call, i, *branches_[i - first]);
    const tasks::shared_state* answers = call.answers;
    if (actor.type == &spawned_type)
      answers = static_cast<const spawned_task*>(actor.object())->result;
    if (answers != nullptr) resolvers_.push_back({answers, first});
    if (holds_actor) resolvers_.push_back({&actor, first});
    ids_.push_back({id_of(actor), first});
  }
  void add_node() {
    nodes.emplace_back();
    leaves.emplace_back();
  }

  // Adds a thread that waits for that, and returns its node.
  std::uint32_t add_thread(const source& from) {
    const auto at = static_cast<std::uint32_t>(nodes.size());
    add_node();
    nodes[at].how = waits::for_one;
    leaves[at].from = from;
    return at;
  }

  // Whether the wait of a thread is not over, and was there at the first look (D2).
  bool still_blocked(const tasks::blocked_thread& thread, source& from) const noexcept {
    return (!second_ || thread.number <= newest_blocked_) &&
           find_source(thread.waits_for, system_.waits_for_jobs, from);
  }

  // Sets the target of the wait of node `at`. `call` is the call `root`, or one of the tasks that
  // it runs side by side.
  void fill(const cell& actor, const tasks::async_call& root, std::uint32_t at,
            const tasks::async_call& call) {
    tasks::suspension* const wait = call.awaited;
    if (locks_are_awaited_ && wait != nullptr) add_holders(*wait, at);
    if (runs_main_ != nullptr && system_.needs_run(actor.lives_on()))
      return needs_main_thread(actor, root, at, wait);
    if (wait == nullptr || wait->limited) return;
    if (const tasks::group* const all = tasks::group::of(*wait)) {
      const auto first = static_cast<std::uint32_t>(nodes.size());
      all->for_each_unfinished([this](const tasks::branch& child) {
        branches_.push_back(&child);
        add_node();
      });
      nodes[at] = {all->first_only() ? waits::for_first : waits::for_all, first,
                   static_cast<std::uint32_t>(nodes.size()) - first};
      return;
    }
    if (const tasks::side_wait* const aside = tasks::side_wait::of(*wait)) {
      const auto first = static_cast<std::uint32_t>(nodes.size());
      for (auto* side = aside->first(); side != nullptr; side = side->next_waited()) {
        branches_.push_back(side);
        add_node();
      }
      nodes[at] = {waits::for_first, first, static_cast<std::uint32_t>(nodes.size()) - first};
      return;
    }
    if (second_ && wait->seen_in != number_) return;
    leaf& leaf = leaves[at];
    if (!source_of(*wait, leaf.from)) return;
    if (!second_) wait->seen_in = number_;
    leaf.wait = wait;
    nodes[at].how = waits::for_one;
    if (second_) leaf.call = look_at(actor, root.call, wait);
  }

  // Each coroutine of this call may hold a lock.
  void add_holders(const tasks::suspension& wait, std::uint32_t at) {
    for (const tasks::coroutine* holder = wait.waiter; holder != nullptr;
         holder = holder->waiting_parent())
      resolvers_.push_back({holder, at});
  }

  // False when the wait is over, or the party that will end it is unknown.
  bool source_of(const tasks::suspension& wait, source& found) noexcept {
    if (wait.for_lock) {
      tasks::lock_holder holder;
      if (!is_locked_out(wait, holder)) return false;
      found.holder = holder.by;
      found.is_child = holder.is_child;
      return found.holder != nullptr;
    }
    const tasks::shared_state* const state = tasks::awaited_by(wait);
    if (state == nullptr) return false;
    has_jobs = has_jobs ||
               (state->asked != nullptr && state->asked->kind == tasks::ask_link::subject::job);
    return find_source(*state, system_.waits_for_jobs, found);
  }

  // Whatever this call waits for, it needs a turn on the main thread, which is blocked.
  void needs_main_thread(const cell& actor, const tasks::async_call& root, std::uint32_t at,
                         const tasks::suspension* wait) {
    nodes[at].how = waits::for_one;
    leaves[at].from = {nullptr, nullptr, runs_main_};
    if (second_) leaves[at].call = look_at(actor, root.call, wait);
  }

  // Adds the threads that run jobs and are blocked: for another job, or for an answer.
  void add_threads() {
    if (!has_jobs) return;
    // As with turns: the second look takes only waits that the first one has seen.
    system_.waits_for_jobs->for_each(
        this, [](void* given, const void* thread, const void* runner, std::uint32_t& seen_in) {
          auto& self = *static_cast<collector*>(given);
          if (self.second_ && seen_in != self.number_) return;
          if (!self.second_) seen_in = self.number_;
          self.add_job_thread(thread, {nullptr, nullptr, runner});
        });
    static_cast<void>(
        tasks::for_each_blocked(this, [](void* given, const tasks::blocked_thread& blocked) {
          auto& self = *static_cast<collector*>(given);
          source from;
          if (blocked.job_thread != nullptr && self.still_blocked(blocked, from)) {
            self.add_job_thread(blocked.job_thread, from);
          }
        }));
  }
  void add_job_thread(const void* thread, const source& from) noexcept {
    while_memory_lasts([&] { resolvers_.push_back({thread, add_thread(from)}); });
  }

  // Of several entries for the same resolver the first counts.
  const wait_snapshot::resolver* find(const void* by) const noexcept {
    const auto found =
        std::ranges::lower_bound(resolvers_, by, std::less<>(), &wait_snapshot::resolver::by);
    return found != resolvers_.end() && found->by == by ? &*found : nullptr;
  }

  // Turns the target of each wait into the node that will resolve it. A node whose resolver is no
  // node waits for none: it can resume by itself.
  void connect() {
    std::ranges::sort(resolvers_,
                      [](const wait_snapshot::resolver& a, const wait_snapshot::resolver& b) {
                        return a.by == b.by ? a.node < b.node : std::less<>()(a.by, b.by);
                      });
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].how != waits::for_one) continue;
      const source& from = leaves[i].from;
      for (const void* const by : {static_cast<const void*>(from.state), from.actor, from.thread,
                                   static_cast<const void*>(from.holder)}) {
        if (const auto* const found = by == nullptr ? nullptr : find(by)) {
          nodes[i].target = found->node;
          break;
        }
      }
      if (nodes[i].target == wait_node::none) nodes[i].how = waits::for_none;
    }
    std::ranges::sort(ids_);
    for (const call& call : ids_) calls.push_back(call.node);
  }

  actor_system& system_;
  const std::uint32_t number_;
  const bool second_;
  bool failed_ = false;
  // order: relaxed  set before the search was asked for
  const bool locks_are_awaited_ = tasks::locks_are_awaited.load(std::memory_order_relaxed);
  std::vector<const tasks::async_call*>& branches_;
  std::vector<call>& ids_;
  std::vector<wait_snapshot::resolver>& resolvers_;
  std::uint64_t& newest_blocked_;
  std::uint32_t main_thread_ = wait_node::none;
  // this runtime's main lane, if the thread that runs it is blocked
  const void* runs_main_ = nullptr;
};

constexpr const char* main_thread_words =
    "troupe: deadlock: future::get and wait: the result for which this thread waits needs run(), "
    "which this thread would call: call run() first, or co_await the future in a task. It waits "
    "for:";

// Chooses the wait of the cycle that fails: the blocked thread that would call run(), which then
// continues without the answer; else the youngest actor's wait. Each cycle has one of these, since
// threads that wait only for each other's jobs find that themselves.
refused_wait tell(const collector& seen, std::span<const std::uint32_t> cycle,
                  const actor_system& system) {
  const collector::leaf* chosen = nullptr;
  std::uint64_t blocked = 0;
  std::string names, lines;
  const char* asked = "";
  std::size_t count = 0;
  const auto first = std::ranges::find_if(
      cycle, [&](std::uint32_t node) { return seen.leaves[node].blocked != 0; });
  const auto begin =
      first == cycle.end() ? std::size_t{0} : static_cast<std::size_t>(first - cycle.begin());
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const collector::leaf& leaf = seen.leaves[cycle[(begin + i) % cycle.size()]];
    if (leaf.blocked != 0) blocked = leaf.blocked;
    if (leaf.call.method == nullptr) continue;
    if (leaf.wait != nullptr && (chosen == nullptr || leaf.call.id > chosen->call.id))
      chosen = &leaf;
    if (++count > lines_max) continue;
    names += leaf.call.method;
    names += leaf.wait == nullptr || !leaf.wait->for_lock ? " asks "
             : leaf.from.is_child                         ? " waits for a child in "
                                                          : " waits for a lock of ";
    asked = leaf.call.waits_for ? leaf.call.waits_for->method : "";
    lines += line_of(leaf.call, system);
  }
  if (count > lines_max) lines += "\n  and " + std::to_string(count - lines_max) + " more";
  if (blocked != 0) return {nullptr, main_thread_words + lines, blocked};
  return {chosen == nullptr ? nullptr : chosen->wait,
          "troupe: deadlock: each of these waits for the next, and the last for the first: " +
              names + asked + lines};
}

}  // namespace

deadlock_search::deadlock_search(actor_system& system) noexcept
    : timer(&on_time, tasks::timer_source::runtime, true), system_(system) {}
deadlock_search::~deadlock_search() = default;

// The timer has expired. The search has a thread of its own, since other timers must not wait for
// it; under the simulated policy there is only one thread.
void deadlock_search::on_time(timer& base) noexcept {
  auto& self = static_cast<deadlock_search&>(base);
  const bool asked =
      self.system_.host.clock->has_thread() && self.thread_.ask([&self] { self.make_round(); });
  if (!asked) self.make_round();
}

// Searches, and arms the timer again if a cycle was found or if the search may have missed
// something. Until here the timer counts as armed.
void deadlock_search::make_round() noexcept {
  const actor_system::gate_guard entry(system_);
  if (!entry.let_in()) return;
  rounds_.fetch_add(1, std::memory_order_relaxed);  // order: relaxed  a statistic
  bool ordered = false, was_asked_for = false;
  {
    std::lock_guard lock(arming_);
    TROUPE_INVARIANT(alarm_ != alarm::off, "D4");
    alarm_ = alarm::off;
    // order: relaxed  a hint
    was_asked_for = request_.soon().load(std::memory_order_relaxed);
    ordered = request_.begin();
  }
  const bool refused = search() != 0;
  // order: relaxed (both)  this thread's own, or a hint
  if (refused || !ordered || incomplete_.load(std::memory_order_relaxed)) return arm_anew();
  if (in_flight_.load(std::memory_order_relaxed)) arm_later(was_asked_for);
}

void deadlock_search::search_soon() noexcept {
  if (request_.ask()) arm_first();
}

void deadlock_search::search_after_park() noexcept {
  if (request_.ask_when_parked()) arm_first();
}

// A search was asked for: arms the timer, unless it is armed for that already. One that arm_later
// armed comes too late, and is replaced.
void deadlock_search::arm_first() noexcept {
  std::lock_guard lock(arming_);
  if (alarm_ == alarm::on) return;                                             // soon enough
  if (alarm_ == alarm::late && !system_.host.clock->take_back(*this)) return;  // it is expiring
  alarm_ = alarm::off;
  // order: relaxed  a hint
  arm(next_after_ns_.load(std::memory_order_relaxed));
}

// A turn that was in flight during the search may be waiting now, while its deactivation is
// deferred on a busy worker: then no thread parks its actor, and none asks for a search. One more
// search finds it. A turn that took longer is found by a later search; each of those comes after
// twice the time of the one before.
void deadlock_search::arm_later(bool was_asked_for) noexcept {
  std::lock_guard lock(arming_);
  if (alarm_ != alarm::off) return;
  later_ns_ = was_asked_for ? longest_ns : std::min(latest_ns, 2 * later_ns_);
  // order: relaxed  a hint
  const std::int64_t after_ns = std::max(later_ns_, next_after_ns_.load(std::memory_order_relaxed));
  if (arm(after_ns)) alarm_ = alarm::late;
}

// Replaces a search that is due, however late that was.
void deadlock_search::arm_anew() noexcept {
  std::lock_guard lock(arming_);
  if (alarm_ != alarm::off && !system_.host.clock->take_back(*this)) return;  // it is expiring
  alarm_ = alarm::off;
  request_.expect();
  // order: relaxed  a hint
  arm(next_after_ns_.load(std::memory_order_relaxed));
}

// The caller holds arming_. Returns false if the timer is not needed any more, or cannot be armed.
bool deadlock_search::arm(std::int64_t after_ns) noexcept {
  TROUPE_INVARIANT(alarm_ == alarm::off, "D4");
  // order: relaxed  a hint: once the end has begun no search passes the gate
  if (system_.closing.load(std::memory_order_relaxed)) return false;
  try {
    system_.host.clock->arm(*this,
                            tasks::due_in(*system_.host.clock, std::chrono::nanoseconds(after_ns)));
    alarm_ = alarm::on;
    return true;
  } catch (...) {
    // No thread could be started for the timer: then cycles are found when the program is out of
    // work.
    return false;
  }
}

std::size_t deadlock_search::search() noexcept {
  std::lock_guard lock(searching_);
  if (suspended_turns(system_) == 0 || system_.discarding()) {
    // A turn that has not been suspended itself may have tasks side by side, one of which waits.
    // order: acquire  pairs with the runtime's store
    const auto not_quiet =
        system_.executors[0].load(std::memory_order_acquire)->for_each_quiet([](sched::runnable&) {
        });
    // order: relaxed (both)  hints
    incomplete_.store(not_quiet.threads != 0, std::memory_order_relaxed);
    in_flight_.store(not_quiet.in_flight != 0, std::memory_order_relaxed);
    return 0;
  }
  // under the simulated policy this is virtual time: each run must be the same
  const tasks::timers& clock = *system_.host.clock;
  const std::int64_t began_ns = clock.now_ns();
  bool incomplete = true;
  std::size_t refused = 0;
  try {
    refused = search_locked();
    incomplete =
        refused != 0;  // another cycle may lead through nodes that were connected with this one
  } catch (...) {
    // Memory is out; a later search may have enough.
  }
  // order: relaxed (both)  hints
  if (incomplete) incomplete_.store(true, std::memory_order_relaxed);
  const std::int64_t took_ns = clock.now_ns() - began_ns;
  const std::int64_t next_ns = refused == 0 ? std::max(longest_ns, share_in_vain * took_ns)
                                            : std::max(shortest_ns, share_of_use * took_ns);
  next_after_ns_.store(next_ns, std::memory_order_relaxed);  // order: relaxed  a hint
  return refused;
}

std::size_t deadlock_search::search_locked() {
  struct world {
    collector collect(bool second) {
      collector seen(self.system_, self.number_, second, *self.snapshot_);
      seen.collect();
      if (second) return seen;
      // order: relaxed (both)  hints
      self.incomplete_.store(seen.missed.any() != 0, std::memory_order_relaxed);
      self.in_flight_.store(seen.missed.in_flight != 0, std::memory_order_relaxed);
      return seen;
    }
    // The cycle of the first look was none, or a part of it could not be looked at again.
    // order: relaxed  a hint
    void not_confirmed() { self.incomplete_.store(true, std::memory_order_relaxed); }
    std::size_t refuse(const collector& seen,
                       const std::vector<std::vector<std::uint32_t>>& cycles) {
      std::vector<refused_wait> chosen;
      for (const auto& cycle : cycles) {
        refused_wait wait = tell(seen, cycle, self.system_);
        if (wait.wait != nullptr || wait.blocked != 0) chosen.push_back(std::move(wait));
      }
      return self.refuse(std::move(chosen));
    }
    deadlock_search& self;
  } looks{*this};
  ++number_;
  if (snapshot_ == nullptr) snapshot_ = std::make_unique<wait_snapshot>();
  return search_in_two_passes(looks);
}

// Holds each turn once more. A wait is refused when it is still the very wait that was seen (D1),
// and no other thread is about to end it (D3).
std::size_t deadlock_search::refuse(std::vector<refused_wait> chosen) {
  std::size_t count = 0;
  for (refused_wait& wait : chosen)
    count +=
        wait.blocked != 0 && tasks::refuse_blocked(wait.blocked, std::move(wait.text)) ? 1U : 0U;
  std::erase_if(chosen, [](const refused_wait& wait) { return wait.blocked != 0; });
  if (chosen.empty()) return count;
  std::unordered_map<const tasks::suspension*, std::size_t> index;
  for (std::size_t i = 0; i < chosen.size(); ++i) index.emplace(chosen[i].wait, i);
  std::vector<const tasks::async_call*> async_calls;
  bool failed = false;
  const auto look = [&](const tasks::async_call& call) {
    async_calls.assign(1, &call);
    for (std::size_t i = 0; i < async_calls.size(); ++i) {
      tasks::suspension* const wait = async_calls[i]->awaited;
      if (wait == nullptr) continue;
      if (const tasks::group* const all = tasks::group::of(*wait)) {
        all->for_each_unfinished(
            [&](const tasks::branch& child) { async_calls.push_back(&child); });
      } else if (const tasks::side_wait* const aside = tasks::side_wait::of(*wait)) {
        for (auto* side = aside->first(); side != nullptr; side = side->next_waited())
          async_calls.push_back(side);
      } else if (const auto found = index.find(wait);
                 found != index.end() && wait->seen_in == number_ &&
                 (wait->for_lock || tasks::awaited_by(*wait) != nullptr) && tasks::refuse(*wait)) {
        chosen[found->second].refused = wait;
      }
    }
  };
  // held until the refusals are delivered: until then no thread may take the program for out of
  // work
  std::lock_guard lock(system_.looking);
  for_each_held(system_, [&](const cell&, const tasks::async_call& call) {
    if (failed) return;
    try {
      look(call);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
  });
  for (refused_wait& wait : chosen) {
    if (wait.refused == nullptr) continue;
    keep_text(*wait.refused, std::move(wait.text));
    wait.refused->over(tasks::outcome::deadlock);
    ++count;
  }
  return count;
}

// The caller has detached the wait: only the caller ends it, and its turn takes the text. Hence
// no text stays behind, and a later wait in the same memory finds none.
void deadlock_search::keep_text(const tasks::suspension& refused, std::string text) noexcept try {
  std::lock_guard lock(texts_mutex_);
  texts_.insert_or_assign(&refused, std::move(text));
} catch (const std::bad_alloc&) {
  // The turn gets a shorter text.
}

std::size_t deadlock_search::texts_kept() noexcept {
  std::lock_guard lock(texts_mutex_);
  return texts_.size();
}

std::string deadlock_search::take_text(const tasks::suspension& refused) {
  std::lock_guard lock(texts_mutex_);
  const auto found = texts_.find(&refused);
  if (found == texts_.end()) return "troupe: deadlock: turns wait for each other";
  std::string text = std::move(found->second);
  texts_.erase(found);
  return text;
}

void search_after_park(actor_system& system) noexcept { system.deadlocks->search_after_park(); }

std::string take_refusal(const tasks::suspension& refused) {
  return actor_system::of(*static_cast<const cell*>(refused.waiter->call->actor))
      .deadlocks->take_text(refused);
}

}  // namespace troupe::actor
