#include "task/running/running.hpp"

#include <unistd.h>

#include <ctime>
#include <mutex>
#include <utility>

#include "base/thread_name.hpp"
#include "base/threads/at_fork.hpp"

namespace troupe::tasks {

constinit thread_local running_state running_of_thread;

namespace {

// Never destroyed: threads may end after the program's static objects.
struct thread_list {
  std::mutex mutex;
  base::intrusive_list<running_state, &running_state::link> states;
  static thread_list& get() {
    static constinit thread_list instance;  // trivially destructible
    return instance;
  }
  // In the child of a fork().
  static void forget_others() noexcept {
    thread_list& all = get();
    [[maybe_unused]] const auto gone(std::move(all.states));
    if (!running_of_thread.listed) return;
    all.states.push_front(running_of_thread);
    // order: relaxed  a snapshot for readers; in the child of a fork the thread has another number
    running_of_thread.system_thread.store(::gettid(), std::memory_order_relaxed);
  }
};

struct listing {
  bool armed = false;
  ~listing() {
    if (!armed) return;
    running_state* const state = &running_of_thread;
    thread_list& list = thread_list::get();
    std::lock_guard lock(list.mutex);
    // order: relaxed  guarded by the mutex, or the thread's own
    if (const runtime_state* runtime = state->runtime.load(std::memory_order_relaxed))
      state->own.move_to(&runtime->elsewhere);
    list.states.remove(*state);
  }
};
thread_local listing listing_of_thread;

const char* describe_procedure(sched::message*, void*, sched::message_act) { return "post"; }

}  // namespace

void enter_runtime(running_state& of_thread, const runtime_state& runtime) noexcept {
  thread_list& list = thread_list::get();
  [[maybe_unused]] static const bool held =
      (base::hold_at_fork(list.mutex, &thread_list::forget_others), true);
  std::lock_guard lock(list.mutex);
  if (!of_thread.listed) {
    list.states.push_front(of_thread);
    listing_of_thread.armed = true;
    of_thread.listed = true;
    // order: relaxed  a snapshot for readers
    of_thread.system_thread.store(::gettid(), std::memory_order_relaxed);
  }
  // order: relaxed  guarded by the mutex, or the thread's own
  const runtime_state* before = of_thread.runtime.load(std::memory_order_relaxed);
  of_thread.own.move_to(before == nullptr ? nullptr : &before->elsewhere);
  of_thread.worker = base::worker_number;
  of_thread.counted = nullptr;
  // order: relaxed  as above
  of_thread.runtime.store(&runtime, std::memory_order_relaxed);
}

const void* list_of_threads() noexcept { return &thread_list::get().states; }

void leave_runtime(const runtime_state& runtime) noexcept {
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  for (running_state& state : list.states) {
    // order: relaxed (both)  guarded by the mutex; no turn of the runtime runs any longer
    if (state.runtime.load(std::memory_order_relaxed) != &runtime) continue;
    state.runtime.store(nullptr, std::memory_order_relaxed);
    state.own.move_to(nullptr);
  }
}

std::int64_t suspended_turns(const runtime_state& runtime) noexcept {
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  // Exact when no turn runs: the count of outstanding work published the numbers.
  std::int64_t sum = runtime.elsewhere[counted::suspended];
  for (const running_state& state : list.states) {
    // order: relaxed  guarded by the mutex, or the thread's own
    if (state.runtime.load(std::memory_order_relaxed) == &runtime)
      sum += state.own[counted::suspended];
  }
  return sum;
}

void for_each_count(const runtime_state& runtime,
                    const std::function<void(unsigned worker, const counts& worker_counts)>& look) {
  look(0, runtime.elsewhere);
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  for (const running_state& state : list.states) {
    // order: relaxed  guarded by the mutex, or the thread's own
    if (state.runtime.load(std::memory_order_relaxed) == &runtime) look(state.worker, state.own);
  }
}

void count_elsewhere(runtime_state& runtime, counted counter, std::int64_t n) noexcept {
  runtime.elsewhere.add_shared(counter, n);
}

inside_procedure::inside_procedure(const runtime_state& runtime,
                                   sched::message::handler describes) noexcept {
  running_state& state = running_here();
  // order: relaxed (all)  for running_handlers, a snapshot
  if (state.runtime.load(std::memory_order_relaxed) != &runtime) enter_runtime(state, runtime);
  state.method.store(describes == nullptr ? &describe_procedure : describes,
                     std::memory_order_relaxed);
  state.in_procedure.store(true, std::memory_order_relaxed);
  // order: relaxed  does not change while the runtime lives
  if ((runtime.slow_path_flags.load(std::memory_order_relaxed) & runtime_state::counts_messages) !=
      0) [[unlikely]]
    state.begin_part();
}

inside_procedure::~inside_procedure() {
  // order: relaxed  for running_handlers, a snapshot
  running_here().in_procedure.store(false, std::memory_order_relaxed);
}

bool is_running() noexcept {
  const running_state& state = running_here();
  // order: relaxed (both)  the thread's own
  return state.actor.load(std::memory_order_relaxed) != nullptr ||
         state.in_procedure.load(std::memory_order_relaxed);
}

bool is_running(const runtime_state& runtime) noexcept {
  const running_state& state = running_here();
  // order: relaxed (all)  the thread's own
  if (const void* actor = state.actor.load(std::memory_order_relaxed))
    return &runtime_state::of(actor) == &runtime;
  return state.in_procedure.load(std::memory_order_relaxed) &&
         state.runtime.load(std::memory_order_relaxed) == &runtime;
}

const runtime_state* simulation_here() noexcept {
  if (!is_running()) return nullptr;
  // order: relaxed  the thread's own
  const runtime_state* const runtime = running_here().runtime.load(std::memory_order_relaxed);
  return runtime != nullptr && runtime->is_simulated ? runtime : nullptr;
}

std::int64_t wall_now_ns() noexcept {
  constexpr std::int64_t second = 1'000'000'000;
  if (const runtime_state* const simulated = simulation_here())
    return simulated_start_s * second + simulated->runtime.now_ns();
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * second + now.tv_nsec;
}

void notice_stop(const runtime_state& runtime) noexcept {
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  for (running_state& state : list.states) {
    // order: relaxed  a turn that begins at this instant may overwrite it, and then sees the stop
    // at its end only
    if (state.runtime.load(std::memory_order_relaxed) == &runtime)
      state.unusual.store(true, std::memory_order_relaxed);
  }
}

void for_each_thread(const runtime_state& runtime,
                     const std::function<void(const running_work& work)>& look) {
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  for (const running_state& state : list.states) {
    running_work work{};
    // order: relaxed (all)  a snapshot
    const auto method = state.method.load(std::memory_order_relaxed);
    work.method = method;
    work.name = state.name.load(std::memory_order_relaxed);
    work.actor = state.actor.load(std::memory_order_relaxed);
    work.begun = state.begun.load(std::memory_order_relaxed);
    work.system_thread = state.system_thread.load(std::memory_order_relaxed);
    work.is_posted = method == &describe_procedure;
    work.worker = state.worker;
    work.storage = &state;
    // order: relaxed (both)  a snapshot
    const bool inside = work.actor != nullptr || state.in_procedure.load(std::memory_order_relaxed);
    if (state.runtime.load(std::memory_order_relaxed) != &runtime) continue;
    if (!inside || work.method == nullptr) work.method = nullptr, work.actor = nullptr;
    look(work);
  }
}

void for_each_running(const runtime_state& runtime,
                      const std::function<void(const running_work& work)>& look) {
  for_each_thread(runtime, [&](const running_work& work) {
    if (work.method != nullptr) look(work);
  });
}

}  // namespace troupe::tasks
