#include "jobs/waits/waiting_threads.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "base/threads/at_fork.hpp"
#include "jobs/waits/job_word.hpp"
#include "jobs/waits/wait_cycle.hpp"
#include "task/running/main_lanes.hpp"
#include "troupe/base/error.hpp"

namespace troupe::jobs {
namespace {

// Never destroyed: threads may end after the program's static objects.
struct all_threads {
  std::mutex mutex;
  waiting_thread* free = nullptr;
  waiting_thread_list waiting;  // the newest first
  void remove(waiting_thread& thread) noexcept {
    waiting.remove(thread);
    thread.at = {};
    // order: relaxed  its own thread reads it, and others do under the mutex
    thread.refused.store(false, std::memory_order_relaxed);
  }
  // In the child of a fork(): the threads that wait are not there.
  void forget() noexcept { [[maybe_unused]] const auto gone(std::move(waiting)); }
  static all_threads& get() {
    static all_threads& instance = *[] {
      auto* const all = new all_threads;
      base::hold_at_fork(all->mutex, [] noexcept { get().forget(); });
      return all;
    }();
    return instance;
  }
};

struct giver_back {
  bool armed = false;
  ~giver_back() {
    all_threads& all = all_threads::get();
    std::lock_guard lock(all.mutex);
    this_stack.thread->next_free = all.free;
    all.free = this_stack.thread;
  }
};
thread_local giver_back gives_back;

using word_of_job = job_word<waiter, std::atomic<std::uintptr_t>>;
static_assert(word_of_job::done == job::done);

constexpr const char* words = "troupe: lazy: this would wait for itself: ";

struct undo {
  undo(all_threads& all, waiting_thread& thread) noexcept : all_(all), thread_(thread) {}
  ~undo() { all_.remove(thread_); }
  all_threads& all_;
  waiting_thread& thread_;
};

// The job cannot end before this: the thread that runs it waits, directly or not, for the caller.
[[noreturn]] void leave_refused(job& job, sleeper& waiter) {
  all_threads& all = all_threads::get();
  std::lock_guard lock(all.mutex);  // other threads may leave the same job
  word_of_job(job.word).detach(waiter);
  throw deadlock(waiter.thread.chain);
}

}  // namespace

constinit thread_local own_stack this_stack;

waiting_thread& make_this_thread() {
  all_threads& all = all_threads::get();
  std::lock_guard lock(all.mutex);
  this_stack.thread =
      all.free == nullptr ? new waiting_thread : std::exchange(all.free, all.free->next_free);
  gives_back.armed = true;
  tasks::job_thread = this_stack.thread;
  return *this_stack.thread;
}

waits_for::waits_for(const job& awaited) : self_(this_thread()) {
  all_threads& all = all_threads::get();
  std::lock_guard lock(all.mutex);
  self_.at = {.awaited = &awaited, .top = this_stack.top, .may_refuse = true};
  all.waiting.push_front(self_);
  const waiting_thread* const last = find_cycle(self_, all.waiting);
  if (last == nullptr) return;
  const undo leaves(all, self_);
  throw deadlock(words + name_cycle(*last, self_));
}

waits_for::waits_for(const job& awaited, joins) noexcept : self_(this_thread()) {
  all_threads& all = all_threads::get();
  std::lock_guard lock(all.mutex);
  self_.at = {.awaited = &awaited, .top = this_stack.top};
  all.waiting.push_front(self_);
}

// Each cycle has a thread that waits for a job and may be refused that. A thread that waits for a
// tree, or joins a thread, waits for something younger than everything that its stack held before:
// these alone therefore cannot make a cycle.
waits_for::waits_for(const fork_tree& tree, const std::atomic<bool>& ended) noexcept
    : self_(this_thread()) {
  all_threads& all = all_threads::get();
  std::lock_guard lock(all.mutex);
  self_.at = {.all = &tree, .ended = &ended, .top = this_stack.top};
  all.waiting.push_front(self_);
  while (waiting_thread* const last = find_cycle(self_, all.waiting)) {
    waiting_thread* chosen = last;
    while (chosen != nullptr && !chosen->at.may_refuse) chosen = chosen->reached_from;
    if (chosen == nullptr) return;
    try {
      chosen->chain = words + name_cycle(*last, *chosen);
    } catch (...) {  // no memory for the text
      chosen->chain.clear();
    }
    // order: release  its chain is read under the mutex; pairs with wait_until_done
    chosen->refused.store(true, std::memory_order_release);
    chosen->parker.notify();
  }
}

waits_for::~waits_for() {
  all_threads& all = all_threads::get();
  std::lock_guard lock(all.mutex);
  all.remove(self_);
}

void wake_those_that_want_work(const job_pool& pool) noexcept {
  all_threads& all = all_threads::get();
  std::lock_guard lock(all.mutex);  // a listed tree has not ended
  for (waiting_thread& thread : all.waiting) {
    const fork_tree* const tree = thread.at.all;
    // order: relaxed  a hint
    if (tree != nullptr && tree->pool == &pool && tree->wants_work.load(std::memory_order_relaxed))
      thread.parker.notify();
  }
}

void wait_until_done(job& awaited) {
  const waits_for wait(awaited);
  waiting_thread& self = this_thread();
  sleeper asleep(self);
  if (!attach(awaited, asleep)) return;
  const asleep_span traced(awaited);
  auto span = tasks::main_lanes::time_to_search;
  // order: acquire  the waker is done with it; also sees the result
  while (!asleep.woken.load(std::memory_order_acquire)) {
    // order: acquire  pairs with the thread that has found the cycle
    if (self.refused.load(std::memory_order_acquire)) leave_refused(awaited, asleep);
    if (self.parker.wait_for(span)) continue;
    tasks::main_lanes::search_all_soon();
    span = std::min(2 * span, tasks::main_lanes::longest_to_search);
  }
}

namespace {

// No thread runs a job that has ended.
const void* runner_of(const void* given) noexcept {
  const job& wanted = *static_cast<const job*>(given);
  // order: relaxed  only compared
  return wanted.is_done() ? nullptr : wanted.run_by.load(std::memory_order_relaxed);
}

void for_each_wait(void* context, void (*look)(void* context, const void* thread,
                                               const void* runner, std::uint32_t& seen_in)) {
  all_threads& all = all_threads::get();
  std::lock_guard lock(all.mutex);
  for (waiting_thread& thread : all.waiting) {
    // order: relaxed  under the mutex; a thread that gets a deadlock error leaves
    const bool leaves = thread.refused.load(std::memory_order_relaxed);
    const void* const runner =
        thread.at.awaited == nullptr || leaves ? nullptr : runner_of(thread.at.awaited);
    if (runner != nullptr) look(context, &thread, runner, thread.at.seen_in);
  }
}

}  // namespace

constinit const tasks::job_waits waits_of_threads{&runner_of, &for_each_wait};

bool attach(job& job, waiter& observer) noexcept { return word_of_job(job.word).attach(observer); }

void finish(job& job) noexcept {
  for (waiter* at = word_of_job(job.word).finish(); at != nullptr;) {
    waiter& waiter = *at;
    at = waiter.next;
    waiter.wake(waiter);
  }
}

}  // namespace troupe::jobs
