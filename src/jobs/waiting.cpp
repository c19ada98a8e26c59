#include "jobs/waiting.hpp"

#include <mutex>
#include <string>

#include "jobs/job_word.hpp"
#include "troupe/base/error.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::jobs {
namespace {

// Never destroyed: threads may end after the program's statics.
struct all_threads {
  std::mutex mutex;
  waiting_thread* free = nullptr;
  static all_threads& get() {
    static all_threads& instance = *new all_threads;
    return instance;
  }
};

struct giver_back {
  bool armed = false;
  ~giver_back() {
    all_threads& all = all_threads::get();
    std::lock_guard lock(all.mutex);
    own_thread->next_free = all.free;
    all.free = own_thread;
  }
};
thread_local giver_back gives_back;

// order: relaxed (all)  under the mutex; a thread that runs a job said so before it waited for another one
job* next_of(const job& of) noexcept {
  const waiting_thread* thread = of.run_by.load(std::memory_order_relaxed);
  return thread == nullptr ? nullptr : thread->waits_for.load(std::memory_order_relaxed);
}
// order: relaxed  as above
bool runs_on(const job& of, const waiting_thread& self) noexcept { return of.run_by.load(std::memory_order_relaxed) == &self; }

// A chain that is longer has a circle without this thread: one of those in it is being told.
constexpr int links_max = 100'000, links_named = 100;

// A job that has ended in between has no part in a cycle: its thread may wait for another one by now.
bool comes_back(const job& of, const waiting_thread& self) noexcept {
  const job* last = &of;
  for (int links = 0; !runs_on(*last, self); ++links) {
    if (last->is_done() || links == links_max) return false;
    last = next_of(*last);
    if (last == nullptr) return false;
  }
  for (const job* at = &of; at != last; at = next_of(*at)) {
    if (at == nullptr || at->is_done()) return false;
  }
  return !last->is_done();
}

[[noreturn]] void throw_deadlock(const job& of, const waiting_thread& self) {
  std::string chain = of.name;
  const job* at = &of;
  for (int links = 0; links != links_named && at != nullptr && !runs_on(*at, self); ++links) {
    at = next_of(*at);
    if (at != nullptr) chain += std::string(" wants ") + at->name;
  }
  throw deadlock("troupe: lazy: this would wait for itself: " + chain);
}

struct sleeper : waiter {
  explicit sleeper(waiting_thread& of) noexcept : waiter(&wake_up), thread(of) {}
  static void wake_up(waiter& base) noexcept {
    auto& self = static_cast<sleeper&>(base);
    waiting_thread& sleeps = self.thread;
    // order: release  the waker's last touch of it
    self.told.store(true, std::memory_order_release);
    sleeps.parker.notify();
  }
  waiting_thread& thread;
  std::atomic<bool> told{false};
};

}  // namespace

constinit thread_local waiting_thread* own_thread = nullptr;

waiting_thread& make_this_thread() noexcept {
  all_threads& all = all_threads::get();
  std::lock_guard lock(all.mutex);
  own_thread = all.free == nullptr ? new waiting_thread : std::exchange(all.free, all.free->next_free);
  gives_back.armed = true;
  return *own_thread;
}

waits_for::waits_for(job& of) : self_(this_thread()) {
  std::lock_guard lock(all_threads::get().mutex);
  if (!of.is_done() && comes_back(of, self_)) throw_deadlock(of, self_);
  self_.waits_for.store(&of, std::memory_order_relaxed);  // order: relaxed  under the mutex
}

waits_for::~waits_for() {
  std::lock_guard lock(all_threads::get().mutex);
  self_.waits_for.store(nullptr, std::memory_order_relaxed);  // order: relaxed  under the mutex
}

void wait_until_done(job& of) {
  const waits_for here(of);
  waiting_thread& self = this_thread();
  sleeper one(self);
  if (!attach(of, one)) return;
  const char* const name = of.name;
  observe::trace(observe::event::asleep_begin, name);
  // order: acquire  the waker is done with it; and sees the result
  while (!one.told.load(std::memory_order_acquire)) self.parker.wait();
  observe::trace(observe::event::asleep_end, name);
}

using word_of_job = job_word<waiter, std::atomic<std::uintptr_t>>;
static_assert(word_of_job::done == job::done);

bool attach(job& of, waiter& one) noexcept { return word_of_job(of.word).attach(one); }

void finish(job& of) noexcept {
  for (waiter* at = word_of_job(of.word).finish(); at != nullptr;) {
    waiter& one = *at;
    at = one.next;
    one.wake(one);
  }
}

}  // namespace troupe::jobs
