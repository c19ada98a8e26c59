#include "task/timers/timers.hpp"

#include <algorithm>
#include <chrono>

#include "base/thread_name.hpp"
#include "troupe/base/error.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::tasks {

timers::~timers() { shut_down(); }

void timers::shut_down() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wakes_.notify();
  if (thread_.joinable()) thread_.join();
}

void timers::arm(timer& entry, std::int64_t due_ns) {
  auto lock = turns_.enter(mutex_);
  if (has_thread_ && !thread_.joinable() && !ending_)
    thread_ = std::thread([this] { keep_time(); });
  entry.due_tick = wheel::tick_of(due_ns);
  // A wheel that has been empty for long has not been advanced: catch up first.
  if (wheel_.empty()) wheel_.advance(now_ns() / wheel::tick_ns);
  wheel_.insert(entry);
  count(entry, &source_count::armed);
  if (!entry.weak && armed_++ == 0) runtime_.hold();
  if (entry.due_tick >= sleeps_until_) return;  // or the thread is awake, and will look
  sleeps_until_ = 0;                            // one notification is enough
  lock.unlock();
  wakes_.notify();
}

bool timers::remove(timer& entry) noexcept {
  if (entry.is != timer::state::armed && entry.is != timer::state::due) return false;
  wheel_.remove(entry);
  count(entry, &source_count::cancelled);
  if (!entry.weak && --armed_ == 0) runtime_.release();
  return true;
}

bool timers::take_back(timer& entry) noexcept {
  const auto lock = turns_.enter(mutex_);
  return remove(entry);
}

bool timers::cancel(timer& entry) noexcept {
  auto lock = turns_.enter(mutex_);
  if (remove(entry)) return true;
  await_end(entry, lock);
  return false;
}

void timers::await_end(const timer& entry, held& lock) noexcept {
  ++awaiting_end_;
  while (expiring_ == &entry) {
    // order: relaxed  changed under the mutex; the kernel compares it once more
    const std::uint32_t seen = ends_.load(std::memory_order_relaxed);
    lock.unlock();
    base::kernel_futex::wait(ends_, seen, nullptr);
    lock.lock();
  }
  --awaiting_end_;
}

// The timer's function runs outside of the lock.
void timers::expire_one(timer& entry, held& lock) {
  expiring_ = &entry;
  const bool weak = entry.weak;
  count(entry, &source_count::expired);
  if (counts_sources_) [[unlikely]] {
    const std::int64_t late_ns =
        std::max<std::int64_t>(now_ns() - entry.due_tick * wheel::tick_ns, 0);
    late_ns_.add(observe::value_counts::bucket_of(static_cast<std::uint64_t>(late_ns)), 1);
  }
  lock.unlock();
  observe::trace(observe::event::timer, nullptr);
  entry.expired(entry);
  lock = turns_.enter(mutex_);
  expiring_ = nullptr;
  if (awaiting_end_ != 0) [[unlikely]] {
    // order: relaxed  under the mutex, which the threads take before they look again
    ends_.fetch_add(1, std::memory_order_relaxed);
    for (unsigned i = 0; i < awaiting_end_; ++i) base::kernel_futex::wake_one(ends_);
  }
  // The timer is counted until here: the work that it woke is counted itself by now.
  if (!weak && --armed_ == 0) runtime_.release();
}

void timers::expire_due(held& lock) {
  while (timer* entry = wheel_.take_due()) expire_one(*entry, lock);
}

void timers::expire_all() {
  std::unique_lock lock(mutex_);
  while (timer* entry = wheel_.take_any()) expire_one(*entry, lock);
}

void timers::keep_time() {
  base::name_this_thread("timers");
  std::unique_lock lock(mutex_);
  while (!ending_) {
    wheel_.advance(now_ns() / wheel::tick_ns);
    expire_due(lock);
    if (ending_) return;
    const std::int64_t next = wheel_.next_tick();
    sleeps_until_ = next;
    lock.unlock();
    if (next == wheel::never) {
      wakes_.wait();
    } else {
      const auto span =
          std::chrono::nanoseconds(std::max<std::int64_t>(next * wheel::tick_ns - now_ns(), 0));
      static_cast<void>(
          wakes_.wait_for(std::min<std::chrono::nanoseconds>(span, std::chrono::hours(1))));
    }
    lock = turns_.enter(mutex_);
    sleeps_until_ = 0;
  }
}

// Whether the thread waits for the lock, or soon will.
bool timers::is_thread_due() const noexcept {
  return has_thread_ && sleeps_until_ <= now_ns() / wheel::tick_ns;
}

// The thread may have been woken without having asked for the lock yet: the pause lets it in.
void timers::let_in(bool is_due) const noexcept {
  turns_.let_in();
  // sleeps: a woken thread does not show that it waits until it asks for the lock
  if (is_due) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

std::optional<std::int64_t> timers::next_ns() {
  std::lock_guard lock(mutex_);
  const std::int64_t next = wheel_.next_tick();
  if (next == wheel::never) return std::nullopt;
  return next > INT64_MAX / wheel::tick_ns ? INT64_MAX : next * wheel::tick_ns;
}

timers::counts timers::count(const timer* but) {
  std::lock_guard lock(mutex_);
  const bool left_out = but != nullptr && but->is == timer::state::armed;
  return {wheel_.count() - (left_out ? 1 : 0), armed_};
}

void timers::expire() {
  std::unique_lock lock(mutex_);
  wheel_.advance(now_ns() / wheel::tick_ns);
  expire_due(lock);
}

void arm(timers& clock, timer& entry, std::int64_t due_ns) { clock.arm(entry, due_ns); }
bool cancel(timers& clock, timer& entry) noexcept { return clock.cancel(entry); }
std::int64_t now_ns(const timers& clock) noexcept { return clock.now_ns(); }

std::int64_t due_in(const timers& clock, std::chrono::nanoseconds span) noexcept {
  const std::int64_t now = clock.now_ns();
  if (span.count() <= 0) return now;
  return span.count() > timers::last_ns - now ? std::max(timers::last_ns, now) : now + span.count();
}

bool sleep_suspension::suspend(coroutine& sleeper) {
  async_call& call = *sleeper.call;
  if (call.cancelled) {
    ended = outcome::cancelled;
    return false;
  }
  this->waiter = &sleeper;
  arm(*call.at->clock, *this, due_in(*call.at->clock, std::chrono::nanoseconds(due_tick)));
  enlist(sleeper);  // if the sleep is over already, this turn still ends before the task resumes
  return true;
}

void sleep_suspension::on_time(timer& self) noexcept {
  static_cast<sleep_suspension&>(self).over(outcome::arrived);
}

const char* sleep_suspension::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "sleep_for";
  auto& self = *static_cast<sleep_suspension*>(base);
  if (act != sched::message_act::detach) return arrive(self, act);
  return cancel(*self.waiter->call->at->clock, self) ? "detached" : nullptr;
}

void sleep_suspension::await_resume() const {
  if (ended == outcome::cancelled)
    throw cancelled("troupe: sleep_for: the actor of this task was stopped");
}

bool yield_wait::suspend(coroutine& awaiting) noexcept {
  waiter = &awaiting;
  if (awaiting.call->cancelled) return false;
  enlist(awaiting);
  awaiting.call->at->go_on_later(*this);
  return true;
}

// It cannot be detached: it resumes after this turn in any case.
const char* yield_wait::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "yield";
  if (act == sched::message_act::detach) return nullptr;
  return arrive(static_cast<suspension&>(*base), act);
}

void yield_wait::await_resume() const {
  if (waiter->call->cancelled) throw cancelled("troupe: yield: the actor of this task was stopped");
}

}  // namespace troupe::tasks
