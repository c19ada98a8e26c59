// fork_frame: the base of the promise of each work coroutine, and how fork frames fork and join.
// For the library's own use; users meet work and fork.
//
// A fork frame runs a part of its fork like a function call: it resumes the part, and continues
// when the resumption returns. Meanwhile the other parts lie in the thread's deque, where other
// threads find them. None of this needs a locked instruction, unless a part has not ended when its
// resumption returns. In that case all frames above it on the stack rest as well, and the thread
// that ends the last part resumes the fork frame that forked (docs/protocols/fork_join.md).
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>

#include "troupe/base/platform.hpp"
#include "troupe/jobs/join_count.hpp"
#include "troupe/jobs/work_deque.hpp"
#include "troupe/task/task.hpp"

namespace troupe::jobs {

// True for works, forks, and the awaitables of the library's own works.
template <class Awaitable>
inline constexpr bool is_fork = false;

}  // namespace troupe::jobs

template <class T>
requires troupe::jobs::is_fork<T>
inline constexpr bool troupe::tasks::runs_when_awaited<T> = true;

namespace troupe::jobs {

class job_pool;
class fork_worker_state;
struct fork_join;
struct given_part;
struct fork_frame;
struct tree_of_task;
struct waiting_thread;

// As base::std_atomics, for code that is compiled into programs.
struct fork_atomics {
  template <class T>
  using atomic = std::atomic<T>;
  template <class T>
  using guarded = T;
  static bool light_fences_suffice() noexcept;
  // order: none  keeps the compiler from moving the load up; heavy_fence() fences this processor
  static void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
  // order: seq_cst  docs/protocols/fork_join.md
  static void full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
  static bool heavy_fence() noexcept;
  static void wait_a_little(int spin) noexcept;
};

// The same with a fence in each pop. Then a thief needs no fence by the kernel, which costs the
// thief 15 to 50 µs.
struct loop_atomics : fork_atomics {
  static constexpr bool light_fences_suffice() noexcept { return false; }
  static bool heavy_fence() noexcept { return full_fence(), true; }
};

// The parts of a thread: parts of forks, and parts of loops, which are few, and each of which other
// threads take at once.
struct fork_deques {
  // A hint for all threads but the owner.
  bool empty() const noexcept { return count() == 0; }
  std::size_t count() const noexcept { return forks.count() + loops.count(); }
  work_deque<fork_frame, fork_atomics> forks;
  work_deque<fork_frame, loop_atomics> loops{16};
  // the last part that a shared loop has put there, unless it was taken back; the owner's
  const given_part* newest_given = nullptr;
  // Below this address the owner runs no part like a call; 0 while it runs none. A thief that asks
  // for a part raises it above all stacks, so that the owner's next fork answers. A hint.
  std::atomic<std::uintptr_t> stack_end{0};
  // order: relaxed  a hint
  bool is_visited() const noexcept { return stack_end.load(std::memory_order_relaxed) != 0; }
  // Thief: the owner runs parts, and should look soon.
  void hurry() noexcept {
    // order: relaxed (all)  a hint; the request itself is read afterwards
    std::uintptr_t seen = stack_end.load(std::memory_order_relaxed);
    if (seen == 0) return;
    stack_end.compare_exchange_strong(seen, UINTPTR_MAX, std::memory_order_relaxed,
                                      std::memory_order_relaxed);
  }
};

// The whole of one outermost fork, which is cancelled and waited for as a unit. The parts that a
// shared loop gave away are a tree too. That tree lies within the tree of the part in which the
// loop runs, or within the tree of the next loop outside of it (shared_loop.hpp).
struct fork_tree {
  fork_tree(fork_join& top, job_pool* home, unsigned takes_part,
            void (*tell)(fork_tree&) noexcept) noexcept
      : root(top), pool(home), threads(takes_part), finished(tell) {}
  fork_tree(const fork_tree&) = delete;
  fork_tree& operator=(const fork_tree&) = delete;
  // Drops the parts that no thread has begun, and makes the others throw `cancelled` at their next
  // fork. Only while the tree is not finished.
  void cancel() noexcept;

  fork_join& root;
  job_pool* const pool;    // null without a runtime
  const unsigned threads;  // the most threads that may take part at a time
  // called by the thread that ends the last part, which touches the tree no more
  void (*const finished)(fork_tree&) noexcept;
  waiting_thread* sleeper = nullptr;  // the thread that waits for the tree, if any
  fork_tree* within = nullptr;        // this tree ends before that one
  fork_tree* outermost = this;
  std::atomic<bool> wants_work{false};  // the waiting thread sleeps, and would rather take part
  // in the outermost tree: forks that have failed and not thrown yet; if there are any, fork frames
  // check for them
  std::atomic<std::uint32_t> failures{0};
};

// One visit of a thread to the parts in its deque. Lies on the thread's stack.
class fork_worker_state {
 public:
  // With `slices` the visit ends after half a millisecond (docs/protocols/fork_join.md).
  fork_worker_state(job_pool* pool, fork_deques& parts, bool slices) noexcept;
  fork_worker_state(const fork_worker_state&) = delete;
  fork_worker_state& operator=(const fork_worker_state&) = delete;
  ~fork_worker_state();

  // Runs a part that no thread has begun, and each fork frame that continues when that ends, as far
  // as possible.
  void run(fork_frame& part) noexcept;
  bool slice_over() noexcept;
  void check_and_share() noexcept;
  // Gives the oldest part to a thief that asks for it.
  void answer() noexcept;
  // The part that begins now may take long, and so may each part that it forks first. Each of these
  // forks therefore checks the clock, and other work is called in time.
  void look_at_next_forks(std::int32_t forks = forks_of_fresh_part) noexcept {
    forks_left = 0;
    asked_ = forks;
  }
  // For code that runs long without a fork: whether the last check of the clock was so long ago
  // that the next fork should check it.
  bool is_look_due(std::int64_t after_ns) const noexcept;

  fork_deques& deques;
  fork_tree* tree = nullptr;       // of the part that runs now
  const std::uintptr_t stack_end;  // below it no part is run like a call
  fork_frame* next = nullptr;      // continues when this stack is free
  std::int32_t forks_left = 0;     // forks, and their parts, until the next check of the clock
  bool leaving = false;            // a fork frame rests: those above it on the stack rest as well
  bool over = false;               // no more parts are run like calls

 private:
  void drop(fork_frame& part) noexcept;

  const std::uintptr_t outer_stack_end_;  // of the visit around this one
  job_pool* const pool_;
  const bool slices_;
  // by then, a tree that is halved has 256 leaves
  static constexpr std::int32_t forks_of_fresh_part = 8;
  // the next forks that must check: the number of forks before a check does not predict them
  std::int32_t asked_;
  std::int32_t forks_a_look_ = 1;
  std::int64_t began_ns_ = 0, looked_ns_ = 0;
};

// The base of a work's promise: where it runs, and of which fork it is a part.
struct fork_frame {
  std::coroutine_handle<> handle() noexcept {
    return std::coroutine_handle<fork_frame>::from_promise(*this);
  }

  fork_worker_state* worker;  // the visit in which it runs
  fork_join* within;          // the fork of which it is a part
  bool rested;  // it was stolen, or has suspended: it is not on another fork frame's stack
};

// One fork; lies in the coroutine frame of the fork frame that forked. F1 and F2: join_count.hpp.
struct fork_join {
  enum class state : std::uint8_t { fine, failed, cancelled, no_memory };

  fork_join() noexcept {}  // begin() writes the members that other threads read
  fork_join(const fork_join&) = delete;
  fork_join& operator=(const fork_join&) = delete;
  ~fork_join() {}

  // Runs the parts that part(i) returns; they free themselves. Returns true if the forker must
  // suspend. In names the deque.
  template <auto In = &fork_deques::forks, class Parts>
  bool start(fork_frame& forker, std::uint32_t count, Parts part) noexcept;

  TROUPE_INLINE void begin(fork_tree* owner, fork_frame* forker, std::uint32_t counted) noexcept {
    tree = owner;
    parent = forker;
    status.store(state::fine, std::memory_order_relaxed);  // order: relaxed  the deque publishes it
    left.begin(counted);
  }
  // A part has ended that was not on the forker's stack.
  void end_part(fork_worker_state& on) noexcept {
    if (!left.end(1)) return;
    if (parent == nullptr) return tree->finished(*tree);
    on.next = parent;
  }
  void fail(std::exception_ptr failure) noexcept;
  // Returns false if another status was set first.
  bool mark(state as) noexcept;
  // Throws the failure, if any. Only after the end of all parts.
  TROUPE_INLINE void check() {
    // order: relaxed  after the end of all parts
    if (status.load(std::memory_order_relaxed) != state::fine) [[unlikely]]
      throw_status();
  }
  // Whether this fork, or one around it, is cancelled.
  bool is_cancelled() const noexcept;

  fork_tree* tree;
  fork_frame* parent;  // the forker; null for the root of the tree
  join_count<fork_atomics> left;
  std::atomic<state> status;
  union {
    std::exception_ptr error;  // for state::failed
  };

 private:
  template <auto In, class Parts>
  bool start_slow(fork_frame& forker, std::uint32_t count, Parts part,
                  std::uintptr_t stack) noexcept;
  template <auto In, class Parts>
  bool give_up(fork_frame& forker, std::uint32_t ended, std::uint32_t count, Parts part,
               bool queued) noexcept;
  template <auto In, class Parts>
  bool run_parts(fork_frame& forker, std::uint32_t count, Parts part) noexcept;
  bool leave(fork_frame& forker, std::uint32_t ended) noexcept;
  [[noreturn]] void throw_status();
};

// The oldest part in this thread's deque is the last part of the outermost fork, which is the part
// most worth stealing.
template <auto In, class Parts>
TROUPE_INLINE bool fork_join::start(fork_frame& forker, std::uint32_t count, Parts part) noexcept {
  fork_worker_state& on = *forker.worker;
  fork_tree& whole = *on.tree;
  fork_deques& deques = on.deques;
  begin(&whole, &forker, count + 1);
  for (std::uint32_t i = 0; i != count; ++i) part(i).within = this;
  if ((deques.*In).reserve(count)) [[likely]] {
    for (std::uint32_t i = count; --i != 0;) (deques.*In).push(part(i));
  } else {
    mark(state::no_memory);
  }
  const auto stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  // order: relaxed (both)  hints: the next fork sees a later failure, and a later request
  if (--on.forks_left < 0 || stack < deques.stack_end.load(std::memory_order_relaxed) ||
      whole.failures.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    return start_slow<In>(forker, count, part, stack);
  }
  return run_parts<In>(forker, count, part);
}

// If a part suspends, or was stolen, this fork frame leaves its stack, and leaves its remaining
// parts in the deque.
template <auto In, class Parts>
TROUPE_INLINE bool fork_join::run_parts(fork_frame& forker, std::uint32_t count,
                                        Parts part) noexcept {
  fork_worker_state& on = *forker.worker;
  for (std::uint32_t i = 0;;) {
    fork_frame& frame = part(i);
    frame.worker = &on;
    frame.rested = false;
    frame.handle().resume();
    if (on.leaving) [[unlikely]]
      return leave(forker, i);
    if (++i == count) return false;
    if (--on.forks_left < 0) [[unlikely]] {
      on.check_and_share();
      if (on.over) return leave(forker, i);
    }
    if ((on.deques.*In).pop() == nullptr) [[unlikely]]
      return leave(forker, i);
    // order: relaxed  sees the failures of this stack; failures of other threads when they arrive
    if (on.tree->failures.load(std::memory_order_relaxed) != 0 && is_cancelled()) [[unlikely]] {
      mark(state::cancelled);
      return give_up<In>(forker, i, count, part, true);
    }
  }
}

template <auto In, class Parts>
TROUPE_NOINLINE bool fork_join::start_slow(fork_frame& forker, std::uint32_t count, Parts part,
                                           std::uintptr_t stack) noexcept {
  fork_worker_state& on = *forker.worker;
  // order: relaxed (both)  hints, or this thread's own writes
  const bool queued = status.load(std::memory_order_relaxed) != state::no_memory;
  on.forks_left < 0 ? on.check_and_share() : on.answer();
  if (tree->failures.load(std::memory_order_relaxed) != 0 && is_cancelled()) {
    mark(state::cancelled);
    return give_up<In>(forker, 0, count, part, queued);
  }
  if (stack >= on.stack_end && !on.over) return run_parts<In>(forker, count, part);
  (on.deques.*In).push(part(0));
  return leave(forker, 0);
}

// Drops the parts that have not begun; part(ended) is not in the deque.
template <auto In, class Parts>
TROUPE_NOINLINE bool fork_join::give_up(fork_frame& forker, std::uint32_t ended,
                                        std::uint32_t count, Parts part, bool queued) noexcept {
  for (;;) {
    part(ended).handle().destroy();
    if (++ended == count) return false;
    if (queued && (forker.worker->deques.*In).pop() == nullptr) return leave(forker, ended);
  }
}

// A part that has ended frees itself. If it was on the forker's stack, the forker continues there;
// otherwise the part notifies its fork.
struct fork_frame_end {
  bool rested;
  bool await_ready() const noexcept { return !rested; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> done) const noexcept {
    fork_frame& self = done.promise();
    fork_worker_state& on = *self.worker;
    fork_join& join = *self.within;
    done.destroy();
    join.end_part(on);
  }
  void await_resume() const noexcept {}
};

// For the outermost fork. They take ownership of all parts, unless they throw std::bad_alloc or
// usage_error. run_tree_here runs the parts on the calling thread, and waits for those that were
// stolen.
void run_tree_here(fork_join& root, std::span<fork_frame* const> parts);
// Runs the parts on the pool; the task's coroutine continues in a turn of its actor. Returns false
// if the coroutine need not suspend. The tree that is stored in `kept` must live until the
// coroutine continues.
bool run_tree_for(fork_join& root, std::span<fork_frame* const> parts, tasks::coroutine& awaiting,
                  tree_of_task*& kept);
void free_tree(tree_of_task& tree) noexcept;

}  // namespace troupe::jobs
