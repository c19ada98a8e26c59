#include "troupe/task/shared_state.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/atomics.hpp"
#include "task/main_lanes.hpp"
#include "task/one_shot.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::tasks {

constinit thread_local const void* job_thread = nullptr;

namespace {

using shot = one_shot<observer, std::atomic<std::uintptr_t>>;

struct blocked : observer {
  blocked() noexcept : observer{[](observer& self) noexcept { static_cast<blocked&>(self).tell(); }} {}
  void tell() noexcept {
    std::lock_guard lock(mutex);
    told = true;
    changed.notify_one();
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool told = false;
};

// A thread that runs jobs, while it is blocked without a limit.
struct blocked_thread {
  const void* thread;
  const shared_state& waits_for;
  blocked_thread* next = nullptr;
  blocked_thread** link = nullptr;
};
struct blocked_list {
  std::mutex mutex;
  blocked_thread* first = nullptr;
  static blocked_list& get() {
    static constinit blocked_list instance;  // trivially destructible
    return instance;
  }
};
class enlisted {
 public:
  explicit enlisted(const shared_state& of) noexcept : self_{job_thread, of} {
    if (self_.thread == nullptr) return;
    blocked_list& all = blocked_list::get();
    std::lock_guard lock(all.mutex);
    self_.next = all.first;
    self_.link = &all.first;
    if (all.first != nullptr) all.first->link = &self_.next;
    all.first = &self_;
  }
  enlisted(const enlisted&) = delete;
  enlisted& operator=(const enlisted&) = delete;
  ~enlisted() {
    if (self_.thread == nullptr) return;
    std::lock_guard lock(blocked_list::get().mutex);
    *self_.link = self_.next;
    if (self_.next != nullptr) self_.next->link = self_.link;
  }

 private:
  blocked_thread self_;
};

}  // namespace

static_assert(shared_state::done == shot::done && shared_state::untaken == shot::untaken);

bool shared_state::attach(observer& waiting) noexcept { return shot(word).attach(waiting); }
bool shared_state::detach(observer& waiting) noexcept { return shot(word).detach(waiting); }

namespace {

constexpr unsigned nested_calls_max = 64;

struct nested {
  unsigned depth = 0;
  nested_observer *first = nullptr, *last = nullptr;  // to be called by the one at the limit
};
constinit thread_local nested under_way;

}  // namespace

void tell_nested(nested_observer& one, void (*act)(observer&) noexcept) noexcept {
  nested& here = under_way;
  if (here.depth == nested_calls_max) {
    one.resolved = act;
    one.next = nullptr;
    (here.first == nullptr ? here.first : here.last->next) = &one;
    here.last = &one;
    return;
  }
  ++here.depth;
  act(one);
  while (here.depth == nested_calls_max && here.first != nullptr) {
    nested_observer& later = *here.first;
    here.first = later.next;
    later.resolved(later);
  }
  --here.depth;
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

TROUPE_NOINLINE void forget_parent(ask_link& of) noexcept {
  shared_state* parent = nullptr;
  {
    std::lock_guard lock(of);
    parent = std::exchange(of.parent, nullptr);
  }
  parent->drop_ref();
}

}  // namespace

void ask_link::lock() const noexcept {
  // order: acquire  sees what the one before did; pairs with unlock/release
  for (int spin = 0; locked.exchange(true, std::memory_order_acquire); ++spin) base::std_atomics::wait_a_little(spin);
}

void for_each_blocked(void* context, void (*look)(void* context, const void* job_thread, const shared_state& waits_for)) {
  blocked_list& all = blocked_list::get();
  std::lock_guard lock(all.mutex);
  for (const blocked_thread* at = all.first; at != nullptr; at = at->next) look(context, at->thread, at->waits_for);
}

void shared_state::be_done() noexcept {
  // order: acquire  as drop_ref; nobody makes this one a parent any more
  if (asked != nullptr && asked->parent != nullptr && refs.load(std::memory_order_acquire) != 1) [[unlikely]] forget_parent(*asked);
  drop_ref();
}

// order: relaxed  the caller has a ref already
void shared_state::add_ref() noexcept { refs.fetch_add(1, std::memory_order_relaxed); }

void shared_state::drop_ref() noexcept {
  // order: acquire  the only one left: sees what the others did
  if (refs.load(std::memory_order_acquire) != 1) {
    // order: acq_rel  what its holder did is seen by the one that frees it; pairs with itself
    if (refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  }
  free(*this, false);
}

namespace {

void refuse_to_wait_for_itself(const shared_state& of) {
  std::uint8_t lane = of.main_lane;
  // order: relaxed  what a run() wrote is seen by who finds nobody in it; else it says no more than that it was not handled yet
  if (of.asked != nullptr) lane = of.asked->main_lane.load(std::memory_order_relaxed);
  const auto over = [](const void* state) { return static_cast<const shared_state*>(state)->resolved(); };
  if (!main_lanes::waits_for_itself(lane, over, &of)) return;
  // A run() may have handled it meanwhile.
  // order: relaxed  as above
  if (of.asked != nullptr && of.asked->main_lane.load(std::memory_order_relaxed) == 0) return;
  throw usage_error(
      "troupe: future::get and wait: the result can only come in run(), which this thread would call, and it would wait here for ever; "
      "call run() first, or co_await the future in a task");
}

}  // namespace

bool shared_state::wait(std::chrono::nanoseconds at_most) {
  if (at_most == std::chrono::nanoseconds::max()) refuse_to_wait_for_itself(*this);
  blocked here;
  if (!attach(here)) return true;
  if (at_most == std::chrono::nanoseconds::max()) {
    const enlisted while_blocked(*this);
    std::unique_lock lock(here.mutex);
    here.changed.wait(lock, [&] { return here.told; });
    return true;
  }
  std::unique_lock lock(here.mutex);
  // Now and that must be a time that there is.
  const auto longest = std::chrono::steady_clock::time_point::max() - std::chrono::steady_clock::now() - std::chrono::hours(24);
  const auto span = std::clamp<std::chrono::nanoseconds>(at_most, std::chrono::nanoseconds(0), longest);
  if (here.changed.wait_for(lock, span, [&] { return here.told; })) return true;
  lock.unlock();
  if (detach(here)) return false;
  lock.lock();  // it is just being told
  here.changed.wait(lock, [&] { return here.told; });
  return true;
}

}  // namespace troupe::tasks
