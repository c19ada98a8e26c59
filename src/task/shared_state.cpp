#include "troupe/task/shared_state.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "base/atomics.hpp"
#include "base/intrusive_queue.hpp"
#include "base/threads/at_fork.hpp"
#include "task/one_shot.hpp"
#include "task/running/main_lanes.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::tasks {

constinit thread_local const void* job_thread = nullptr;

namespace {

using shot = one_shot<observer, std::atomic<std::uintptr_t>>;

struct blocked : observer {
  blocked() noexcept
      : observer{[](observer& self) noexcept { static_cast<blocked&>(self).tell(); }} {}
  void tell() noexcept {
    std::lock_guard lock(mutex);
    ended = true;
    changed.notify_one();
  }
  // By the thread that has detached it from the state.
  void refuse(std::string&& with) noexcept {
    std::lock_guard lock(mutex);
    text = std::move(with);
    ended = refused = true;
    changed.notify_one();
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false, refused = false;
  std::string text;  // of the refusal
};

// Threads that run jobs, or the main thread's part of a runtime, while they are blocked without a
// time limit.
struct enlisted_thread {
  blocked_thread seen;
  shared_state& state;
  blocked& waits;
  base::list_link<enlisted_thread> link{};
};
struct blocked_list {
  std::mutex mutex;
  base::intrusive_list<enlisted_thread, &enlisted_thread::link> threads;
  std::uint64_t last_number = 0;
  static blocked_list& get() {
    static constinit blocked_list instance;  // trivially destructible
    return instance;
  }
  // In the child of a fork(): the threads that are blocked are not there.
  static void forget() noexcept { [[maybe_unused]] const auto gone(std::move(get().threads)); }
};
class enlisted {
 public:
  enlisted(shared_state& state, blocked& waits) noexcept
      : self_{{job_thread, 0, 0, state}, state, waits},
        listed_(job_thread != nullptr || main_lanes::this_thread() != 0) {
    if (!listed_) return;
    blocked_list& all = blocked_list::get();
    [[maybe_unused]] static const bool held =
        (base::hold_at_fork(all.mutex, &blocked_list::forget), true);
    std::lock_guard lock(all.mutex);
    self_.seen.number = ++all.last_number;
    all.threads.push_front(self_);
  }
  enlisted(const enlisted&) = delete;
  enlisted& operator=(const enlisted&) = delete;
  ~enlisted() {
    if (!listed_) return;
    blocked_list& all = blocked_list::get();
    std::lock_guard lock(all.mutex);
    all.threads.remove(self_);
  }
  // Other threads have had enough time to call run(): from now on this thread counts as the one
  // that would.
  void be_main_thread() noexcept {
    std::lock_guard lock(blocked_list::get().mutex);
    self_.seen.main_thread = main_lanes::this_thread();
  }

 private:
  enlisted_thread self_;
  const bool listed_;
};

}  // namespace

static_assert(shared_state::done == shot::done && shared_state::untaken == shot::untaken);

bool shared_state::attach(observer& waiting) noexcept { return shot(word).attach(waiting); }
bool shared_state::detach(observer& waiting) noexcept { return shot(word).detach(waiting); }

namespace {

constexpr unsigned nested_calls_max = 64;

struct nested {
  unsigned depth = 0;
  // observers that the call at the limit must notify: the last in order, whose `next` is the first
  nested_observer* last_late = nullptr;

  void push(nested_observer& observer) noexcept {
    observer.next = last_late == nullptr ? &observer : std::exchange(last_late->next, &observer);
    last_late = &observer;
  }
  nested_observer& pop() noexcept {
    nested_observer& first = *last_late->next;
    if (&first == last_late) last_late = nullptr;
    if (last_late != nullptr) last_late->next = first.next;
    return first;
  }
};
constinit thread_local nested under_way;

}  // namespace

void tell_nested(nested_observer& listener, void (*act)(observer&) noexcept) noexcept {
  nested& calls = under_way;
  if (calls.depth == nested_calls_max) {
    listener.resolved = act;
    calls.push(listener);
    return;
  }
  ++calls.depth;
  act(listener);
  while (calls.depth == nested_calls_max && calls.last_late != nullptr) {
    nested_observer& later = calls.pop();
    later.resolved(later);
  }
  --calls.depth;
}

void shared_state::resolve() noexcept {
  const auto [waiting, last] = shot(word).resolve();
  if (waiting != nullptr) {
    waiting->resolved(*waiting);
  } else if (last) {
    be_done();
  }
}

void shared_state::leave_early() noexcept {
  if (queued && free(*this, true)) return;
  if (shot(word).leave()) be_done();
}

namespace {

TROUPE_NOINLINE void forget_parent(ask_link& ask) noexcept {
  shared_state* parent = nullptr;
  {
    std::lock_guard lock(ask);
    parent = std::exchange(ask.parent, nullptr);
  }
  parent->drop_ref();
}

}  // namespace

void ask_link::lock() const noexcept {
  // order: acquire  sees the writes of the holder before; pairs with unlock/release
  for (int spin = 0; locked.exchange(true, std::memory_order_acquire); ++spin)
    base::std_atomics::wait_a_little(spin);
}

std::uint64_t for_each_blocked(void* context, void (*look)(void* context, const blocked_thread&)) {
  blocked_list& all = blocked_list::get();
  std::lock_guard lock(all.mutex);
  for (const enlisted_thread& thread : all.threads) look(context, thread.seen);
  return all.last_number;
}

// The waiting thread stays in the list until the mutex is free.
bool refuse_blocked(std::uint64_t number, std::string&& text) noexcept {
  blocked_list& all = blocked_list::get();
  std::lock_guard lock(all.mutex);
  for (const enlisted_thread& thread : all.threads) {
    if (thread.seen.number != number) continue;
    if (!thread.state.detach(thread.waits)) return false;
    thread.waits.refuse(std::move(text));
    return true;
  }
  return false;
}

std::uint8_t lane_of(const shared_state& state) noexcept {
  // order: relaxed  the writes of a run() are seen by a thread that finds no thread in run();
  // otherwise an old value only means that the ask was not handled yet
  return state.asked == nullptr ? state.main_lane
                                : state.asked->main_lane.load(std::memory_order_relaxed);
}

void shared_state::be_done() noexcept {
  // order: acquire  as drop_ref; no thread makes this state a parent any longer
  if (asked != nullptr && asked->parent != nullptr && refs.load(std::memory_order_acquire) != 1)
      [[unlikely]]
    forget_parent(*asked);
  drop_ref();
}

// order: relaxed  the caller has a ref already
void shared_state::add_ref() noexcept { refs.fetch_add(1, std::memory_order_relaxed); }

void shared_state::drop_ref() noexcept {
  // order: acquire  the only ref left: sees the writes of the other holders
  if (refs.load(std::memory_order_acquire) != 1) {
    // order: acq_rel  this holder's writes are seen by the holder that frees the state; pairs with
    // itself
    if (refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  }
  free(*this, false);
}

namespace {

// Whether only run() on the calling thread can resolve the state. The lane is read twice: the ask
// may have been handled and forwarded in between.
bool is_own_to_run(const shared_state& state,
                   bool (*owns)(std::uint8_t lane, std::uint64_t thread) noexcept) noexcept {
  const auto lane = [&] { return lane_of(state); };
  return owns(lane(), main_lanes::this_thread()) && owns(lane(), main_lanes::this_thread());
}

[[noreturn]] void throw_waits_for_itself() {
  throw usage_error(
      "troupe: future::get and wait: the result can only come in run(), which this thread would "
      "call, and it would wait here without end; "
      "call run() first, or co_await the future in a task");
}

// A thread that has made a runtime or called run() checks whether it waits for itself: at once when
// it is in run(), else each time after other threads have had enough time to call run(). A thread
// that runs a job asks for a search.
void wait_without_limit(shared_state& state) {
  if (is_own_to_run(state, &main_lanes::is_run_by)) throw_waits_for_itself();
  blocked waiter;
  if (!state.attach(waiter)) return;
  {
    enlisted while_blocked(state, waiter);
    std::unique_lock lock(waiter.mutex);
    const auto has_ended = [&] { return waiter.ended; };
    const bool may_run = main_lanes::this_thread() != 0;
    if (!may_run && job_thread == nullptr) {
      waiter.changed.wait(lock, has_ended);
      return;
    }
    for (auto span = may_run ? main_lanes::time_to_call_run() : main_lanes::time_to_search;
         !waiter.changed.wait_for(lock, span, has_ended);
         span = std::min(2 * span, main_lanes::longest_to_search)) {
      lock.unlock();
      if (!may_run) {
        main_lanes::search_all_soon();
      } else if (is_own_to_run(state, &main_lanes::belongs_to)) {
        if (state.detach(waiter)) throw_waits_for_itself();
      } else {
        while_blocked.be_main_thread();
        main_lanes::search_all();
      }
      lock.lock();
    }
  }
  if (waiter.refused) throw deadlock(waiter.text);
}

}  // namespace

bool shared_state::wait(std::chrono::nanoseconds at_most) {
  if (at_most == std::chrono::nanoseconds::max()) {
    wait_without_limit(*this);
    return true;
  }
  blocked waiter;
  if (!attach(waiter)) return true;
  std::unique_lock lock(waiter.mutex);
  // The present plus that must be a representable time.
  const auto longest = std::chrono::steady_clock::time_point::max() -
                       std::chrono::steady_clock::now() - std::chrono::hours(24);
  const auto span =
      std::clamp<std::chrono::nanoseconds>(at_most, std::chrono::nanoseconds(0), longest);
  if (waiter.changed.wait_for(lock, span, [&] { return waiter.ended; })) return true;
  lock.unlock();
  if (detach(waiter)) return false;
  lock.lock();  // the resolver is telling it now
  waiter.changed.wait(lock, [&] { return waiter.ended; });
  return true;
}

}  // namespace troupe::tasks
