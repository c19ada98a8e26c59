// fork frame: what the promise of a work coroutine starts with, and how fork frames fork and join.
// The library's own; users meet work and fork.
//
// A fork frame runs a part of its fork like a function call: it resumes it and goes on when that
// returns. The other parts lie in the thread's deque meanwhile, where other threads find them.
// Nothing of this takes a locked instruction until a part is not done when its turn is over: then
// all that is above it on the stack comes to rest, and whoever ends the last part goes on with the
// fork frame that forked (docs/protocols/fork_join.md).
#pragma once

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

// Works, forks, and what the library's own works await.
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

// As base::std_atomics, for what is compiled into programs.
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

// The same where each pop fences, so that a thief needs no fence of the kernel's, which costs it 15
// to 50 µs here.
struct loop_atomics : fork_atomics {
  static constexpr bool light_fences_suffice() noexcept { return false; }
  static bool heavy_fence() noexcept { return full_fence(), true; }
};

// Where a thread's parts lie: of forks, and of loops, which are few and each of which is wanted at
// once.
struct fork_deques {
  // A hint for all but the owner.
  bool empty() const noexcept { return count() == 0; }
  std::size_t count() const noexcept { return forks.count() + loops.count(); }
  work_deque<fork_frame, fork_atomics> forks;
  work_deque<fork_frame, loop_atomics> loops{16};
  // the last one that a shared loop has put there, unless it was taken back; owner's
  const given_part* newest_given = nullptr;
};

// All that one outermost fork has come to: what is cancelled, and waited for, together. What a
// shared loop gave is a tree, too, within that of the part that the loop runs in, or of the next
// loop outside of it (shared_loop.hpp).
struct fork_tree {
  fork_tree(fork_join& top, job_pool* home, unsigned takes_part,
            void (*tell)(fork_tree&) noexcept) noexcept
      : root(top), pool(home), threads(takes_part), finished(tell) {}
  fork_tree(const fork_tree&) = delete;
  fork_tree& operator=(const fork_tree&) = delete;
  // Parts that nobody has begun are dropped, others throw `cancelled` at their next fork. While it
  // is not finished.
  void cancel() noexcept;

  fork_join& root;
  job_pool* const pool;                         // null without a runtime
  const unsigned threads;                       // how many may take part at a time
  void (*const finished)(fork_tree&) noexcept;  // by who ends the last part, as its last touch
  waiting_thread* sleeper = nullptr;            // who waits for it, if that is a thread
  fork_tree* within = nullptr;                  // it ends before that one does
  fork_tree* outermost = this;
  std::atomic<bool> wants_work{false};  // it sleeps, and would rather take part
  // of the outermost: forks that have failed and not thrown yet: if there are any, fork frames look
  // up
  std::atomic<std::uint32_t> failures{0};
};

// One visit of a thread to the parts in its deque; on its stack.
class fork_worker_state {
 public:
  // With slices the visit is to end after half a millisecond (docs/protocols/fork_join.md).
  fork_worker_state(job_pool* pool, fork_deques& parts, bool slices) noexcept;
  fork_worker_state(const fork_worker_state&) = delete;
  fork_worker_state& operator=(const fork_worker_state&) = delete;

  // Runs a part that nobody has begun, and what goes on when it ends, each as far as it goes.
  void run(fork_frame& part) noexcept;
  bool slice_over() noexcept;
  void look() noexcept;
  // What begins now may be long, and so may each part that it forks first: these look each, so that
  // others are called in time.
  void look_at_next_forks(std::int32_t forks = forks_of_fresh_part) noexcept {
    forks_left = 0;
    asked_ = forks;
  }
  // For what goes on for long without a fork: whether the last look was so long ago that the next
  // fork should look.
  bool is_look_due(std::int64_t after_ns) const noexcept;

  fork_deques& deques;
  fork_tree* tree = nullptr;             // of what runs now
  const std::byte* stack_end = nullptr;  // below it nothing is run like a call
  fork_frame* next = nullptr;            // goes on when this stack is free
  std::int32_t forks_left = 0;           // and their parts, until the next look at the clock
  bool leaving = false;                  // a fork frame rests: those above it on the stack do, too
  bool over = false;                     // nothing more is run like a call

 private:
  void drop(fork_frame& part) noexcept;

  job_pool* const pool_;
  const bool slices_;
  // a tree that is halved has 256 leaves then
  static constexpr std::int32_t forks_of_fresh_part = 8;
  std::int32_t asked_;  // so many forks are to look: how many came before a look says nothing
  std::int32_t forks_a_look_ = 1;
  std::int64_t began_ns_ = 0, looked_ns_ = 0;
};

struct fork_frame {
  std::coroutine_handle<> handle() noexcept {
    return std::coroutine_handle<fork_frame>::from_promise(*this);
  }

  fork_worker_state* here;  // where it runs
  fork_join* within;        // what it is a part of
  bool rested;  // it was stolen, or has suspended: it runs on no other fork frame's stack
};

// One fork; in the frame of the fork frame that forked. F1 and F2: join_count.hpp.
struct fork_join {
  enum class state : std::uint8_t { fine, failed, cancelled, no_memory };

  fork_join() noexcept {}  // begin() writes what others read
  fork_join(const fork_join&) = delete;
  fork_join& operator=(const fork_join&) = delete;
  ~fork_join() {}

  // Runs the parts that part(i) gives; they free themselves. True when the forker must suspend. In
  // names the deque.
  template <auto In = &fork_deques::forks, class Parts>
  bool start(fork_frame& forker, std::uint32_t count, const Parts& part) noexcept;

  TROUPE_INLINE void begin(fork_tree* of, fork_frame* forker, std::uint32_t counted) noexcept {
    tree = of;
    parent = forker;
    status.store(state::fine, std::memory_order_relaxed);  // order: relaxed  the deque publishes it
    left.begin(counted);
  }
  // A part has ended that was on nobody's stack.
  void end_part(fork_worker_state& on) noexcept {
    if (!left.end(1)) return;
    if (parent == nullptr) return tree->finished(*tree);
    on.next = parent;
  }
  void fail(std::exception_ptr what) noexcept;
  // False when something else came first.
  bool mark(state as) noexcept;
  // Behind the end of all parts: throws what came.
  TROUPE_INLINE void check() {
    // order: relaxed  behind the end
    if (status.load(std::memory_order_relaxed) != state::fine) [[unlikely]]
      throw_status();
  }
  // This fork, or one that it is within.
  bool is_cancelled() const noexcept;

  fork_tree* tree;
  fork_frame* parent;  // the forker; null: this is the tree's root
  join_count<fork_atomics> left;
  std::atomic<state> status;
  union {
    std::exception_ptr error;  // of state::failed
  };

 private:
  template <auto In, class Parts>
  bool start_slow(fork_frame& forker, std::uint32_t count, const Parts& part,
                  const std::byte* stack) noexcept;
  template <auto In, class Parts>
  bool give_up(fork_frame& forker, std::uint32_t ended, std::uint32_t count, const Parts& part,
               bool queued) noexcept;
  template <auto In, class Parts>
  bool run_parts(fork_frame& forker, std::uint32_t count, const Parts& part) noexcept;
  bool leave(fork_frame& forker, std::uint32_t ended) noexcept;
  [[noreturn]] void throw_status();
};

// The oldest part of what this thread has in its deque is the last of the outermost fork: what is
// most worth stealing.
template <auto In, class Parts>
TROUPE_INLINE bool fork_join::start(fork_frame& forker, std::uint32_t count,
                                    const Parts& part) noexcept {
  fork_worker_state& on = *forker.here;
  fork_tree& in = *on.tree;
  begin(&in, &forker, count + 1);
  for (std::uint32_t i = 0; i != count; ++i) part(i).within = this;
  if ((on.deques.*In).reserve(count)) [[likely]] {
    for (std::uint32_t i = count; --i != 0;) (on.deques.*In).push(part(i));
  } else {
    mark(state::no_memory);
  }
  const auto* const stack = static_cast<const std::byte*>(__builtin_frame_address(0));
  // order: relaxed  a hint: the next fork sees what comes now
  if (--on.forks_left < 0 || stack < on.stack_end ||
      in.failures.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    return start_slow<In>(forker, count, part, stack);
  }
  return run_parts<In>(forker, count, part);
}

// Whichever part suspends, or was stolen: this fork frame leaves its stack, and what is left of its
// parts in the deque.
template <auto In, class Parts>
TROUPE_INLINE bool fork_join::run_parts(fork_frame& forker, std::uint32_t count,
                                        const Parts& part) noexcept {
  fork_worker_state& on = *forker.here;
  for (std::uint32_t i = 0;;) {
    fork_frame& one = part(i);
    one.here = &on;
    one.rested = false;
    one.handle().resume();
    if (on.leaving) [[unlikely]]
      return leave(forker, i);
    if (++i == count) return false;
    if (--on.forks_left < 0) [[unlikely]] {
      on.look();
      if (on.over) return leave(forker, i);
    }
    if ((on.deques.*In).pop() == nullptr) [[unlikely]]
      return leave(forker, i);
    // order: relaxed  sees what failed on this stack; of others, what has come
    if (on.tree->failures.load(std::memory_order_relaxed) != 0 && is_cancelled()) [[unlikely]] {
      mark(state::cancelled);
      return give_up<In>(forker, i, count, part, true);
    }
  }
}

template <auto In, class Parts>
TROUPE_NOINLINE bool fork_join::start_slow(fork_frame& forker, std::uint32_t count,
                                           const Parts& part, const std::byte* stack) noexcept {
  fork_worker_state& on = *forker.here;
  // order: relaxed (both)  hints, or what this thread did
  const bool queued = status.load(std::memory_order_relaxed) != state::no_memory;
  if (on.forks_left < 0) on.look();
  if (tree->failures.load(std::memory_order_relaxed) != 0 && is_cancelled()) {
    mark(state::cancelled);
    return give_up<In>(forker, 0, count, part, queued);
  }
  if (stack >= on.stack_end && !on.over) return run_parts<In>(forker, count, part);
  (on.deques.*In).push(part(0));
  return leave(forker, 0);
}

// What is left is not begun; part(ended) is not in the deque.
template <auto In, class Parts>
TROUPE_NOINLINE bool fork_join::give_up(fork_frame& forker, std::uint32_t ended,
                                        std::uint32_t count, const Parts& part,
                                        bool queued) noexcept {
  for (;;) {
    part(ended).handle().destroy();
    if (++ended == count) return false;
    if (queued && (forker.here->deques.*In).pop() == nullptr) return leave(forker, ended);
  }
}

// A part that has ended frees itself. It was on the forker's stack, which goes on; or it tells its
// fork.
struct fork_frame_end {
  bool rested;
  bool await_ready() const noexcept { return !rested; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> done) const noexcept {
    fork_frame& self = done.promise();
    fork_worker_state& on = *self.here;
    fork_join& join = *self.within;
    done.destroy();
    join.end_part(on);
  }
  void await_resume() const noexcept {}
};

// Of the outermost forks. All parts are taken, unless these throw: std::bad_alloc, usage_error.
// Runs them here, and what is stolen is waited for.
void run_tree_here(fork_join& root, std::span<fork_frame* const> parts);
// They run on the pool; the task's coroutine goes on in its actor's turn. False when it need not
// suspend. What is given through `kept` must live until the coroutine goes on.
bool run_tree_for(fork_join& root, std::span<fork_frame* const> parts, tasks::coroutine& who,
                  tree_of_task*& kept);
void free_tree(tree_of_task& of) noexcept;

}  // namespace troupe::jobs
