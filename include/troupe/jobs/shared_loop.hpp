// shared_loop: a plain loop on a thread's stack, whose remaining numbers other threads may take
// while it runs. For the library's own use; users meet shared_for and shared_reduce.
//
// A loop is a record on the stack of the thread that runs it, in a list from the innermost to the
// outermost. A loop costs only its record, except when its thread reads the list. About every 20 µs
// a thread checks the clock. If its deque then has no part that other threads could take, it gives
// away half of the remaining numbers of its outermost loop that has some
// (docs/protocols/fork_join.md, "Shared loops").
//
// Owner: the thread.
// Invariants
//   S1  each number is begun once: by the owner, or in a part that the owner gave away.
//   S2  a loop ends after all parts that it gave away.
//   S3  of two loops of a segment that have given parts, the outer one did so first.
//   S4  at most one part that a thread gave lies in its deque.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "troupe/base/platform.hpp"
#include "troupe/jobs/fork_frame.hpp"
#include "troupe/jobs/work.hpp"
#include "troupe/memory/block_pool.hpp"

namespace troupe::jobs {

class frame;
struct loop_segment;
struct loop_tree;
struct shared_loop;

// The innermost frame on a thread's stack (waiting.hpp), and where the thread waits, once it has
// waited.
struct own_stack {
  const frame* top = nullptr;
  waiting_thread* thread = nullptr;
};
extern constinit thread_local own_stack this_stack [[gnu::tls_model("initial-exec")]];

inline constexpr char no_frame = 0;

// The loops on a thread's stack.
struct own_loops {
  shared_loop* innermost = nullptr;
  // the loops that were begun in the same fork frame or job; other loops are in other segments
  loop_segment* segment = nullptr;
  const void* frame = &no_frame;  // the frame on top of which the segment was begun
  std::int32_t left = 0;          // loops and rounds until the next check of the clock
  std::int32_t looks_after = 1;   // the usual number of these
  std::size_t round = 1;          // numbers that a loop runs in one round
};
extern constinit thread_local own_loops loops_here [[gnu::tls_model("initial-exec")]];

// A part that a loop gave: its numbers up to `end`. Parts that were given later lie before them.
struct given_part {
  given_part* older = nullptr;
  fork_frame* part = nullptr;
  std::size_t end = 0;
};

// The record of one loop; see the head of the file for its invariants.
struct shared_loop {
  // The functions that depend on the loop's own type. give: returns null if memory is out.
  struct kind {
    given_part* (*give)(shared_loop&, std::size_t first, std::size_t last) noexcept;
    void (*free)(given_part&) noexcept;
  };

  TROUPE_INLINE shared_loop(std::size_t count, const kind& as) noexcept : end(count), type(as) {}
  shared_loop(const shared_loop&) = delete;
  shared_loop& operator=(const shared_loop&) = delete;

  // Calls step(i) for each number that this thread keeps, and returns when all given parts are
  // done. Returns true if there were any; the caller must then call leave(). Throws the first
  // exception. No destructor does this: where loops are nodes of a recursion, the compiler inlines
  // several levels of it into one function only if they are small.
  template <class Step>
  TROUPE_INLINE bool run(const Step& step) {
    own_loops& own = loops_here;
    stop = end < own.round ? end : own.round;
    outer = own.innermost;
    own.innermost = this;
    try {
      if (--loops_here.left < 0) [[unlikely]]
        check_and_share();
      do {
        for (std::size_t at = next; at < stop_now(); ++at) {
          next = at + 1;
          step(at);
        }
      } while ((next < end || tree != nullptr) && go_on());
    } catch (...) {
      fail();
    }
    if (tree != nullptr) [[unlikely]]
      return join();
    loops_here.innermost = outer;
    return false;
  }
  // Ends the loop, and frees the given parts.
  void leave() noexcept;

  std::size_t next = 0;  // the numbers from here to `end` have not begun
  std::size_t stop;      // of this round
  std::size_t end;
  shared_loop* outer;         // in the same segment, or null
  loop_tree* tree = nullptr;  // of the given parts; if not null, then also:
  given_part* newest_given;   // kept until the loop ends
  const kind& type;

 private:
  // Reads `stop` from memory each time. A loop that keeps it in a register, and reloads it after
  // each call, is slower.
  TROUPE_INLINE std::size_t stop_now() const noexcept {
    return *const_cast<const volatile std::size_t*>(&stop);
  }
  // The numbers of this round have begun. Returns true if there are more, perhaps from parts that
  // were given and that no thread took.
  bool go_on();
  static void check_and_share();  // throws cancelled
  bool take_back() noexcept;
  void wait() noexcept;
  [[noreturn]] void fail();
  bool join();
  void throw_first();
};

// Calls leave() of a loop that has given parts.
struct leaves_given {
  explicit leaves_given(shared_loop& loop) noexcept : giver(loop) {}
  leaves_given(const leaves_given&) = delete;
  leaves_given& operator=(const leaves_given&) = delete;
  ~leaves_given() { giver.leave(); }
  shared_loop& giver;
};

// Whether a loop that begins now belongs to the loops on this stack.
TROUPE_INLINE bool in_segment() noexcept { return loops_here.frame == this_stack.top; }
// If not: runs the function in a new segment. Throws usage_error in a handler; std::bad_alloc.
void run_in_segment(void (*function)(void*), void* argument);

template <class Function>
TROUPE_NOINLINE auto begin_segment(const Function& function) {
  using value = std::invoke_result_t<const Function&>;
  struct call {
    const Function& function;
    std::optional<unit_of<value>> given;
  } called{function, {}};
  run_in_segment(
      [](void* argument) {
        auto& self = *static_cast<call*>(argument);
        if constexpr (std::is_void_v<value>) {
          self.function();
        } else {
          self.given.emplace(self.function());
        }
      },
      &called);
  if constexpr (!std::is_void_v<value>) return std::move(*called.given);
}

// A given part of a loop with results of type T: a work.
template <class T>
struct part_of final : given_part {
  explicit part_of(work<T>&& begins) noexcept : begun(std::move(begins)) {
    part = &work_access::begin(begun);
  }
  static given_part* make(work<T>&& begins) {
    void* const place = memory::allocate(sizeof(part_of));
    return ::new (place) part_of(std::move(begins));
  }
  static void free(given_part& base) noexcept {
    auto& self = static_cast<part_of&>(base);
    std::destroy_at(&self);
    memory::deallocate(&self, sizeof(part_of));
  }
  work<T> begun;
};

}  // namespace troupe::jobs
