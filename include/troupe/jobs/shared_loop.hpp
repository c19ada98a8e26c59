// shared_loop: a plain loop on a thread's stack, whose rest others may take while it runs. The
// library's own; users meet shared_for and shared_reduce.
//
// A loop is a record on the stack of who runs it, in a list from the innermost to the outermost.
// While nobody looks at the list a loop is as dear as its record. About every 20 µs a thread looks
// at the clock; has it nothing in its deque that others could take, it gives half of what is left
// of its outermost loop that has some left (docs/protocols/fork_join.md, "Shared loops"). Owner:
// the thread. Invariants
//   S1  each number is begun once: by the owner, or as part of what it gave.
//   S2  a loop ends behind all that it gave.
//   S3  of two loops of a segment that have given, the outer one did so first.
//   S4  a thread has given one part at most that lies in its deque.
#pragma once

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

// What a thread has on its stack (waiting.hpp); and where it waits, once it has.
struct own_stack {
  const frame* top = nullptr;
  waiting_thread* thread = nullptr;
};
extern constinit thread_local own_stack this_stack [[gnu::tls_model("initial-exec")]];

inline constexpr char no_frame = 0;

// The loops on a thread's stack.
struct own_loops {
  shared_loop* innermost = nullptr;
  // the loops that were begun in the same fork frame or job; others lie in others
  loop_segment* segment = nullptr;
  const void* frame = &no_frame;  // on top of which it was begun
  std::int32_t left = 0;          // loops and rounds until the next look at the clock
  std::int32_t looks_after = 1;   // so many, as a rule
  std::size_t round = 1;          // numbers that a loop runs without a count
};
extern constinit thread_local own_loops loops_here [[gnu::tls_model("initial-exec")]];

// What a loop gave: its numbers up to `end`. Those that it gave next lie before them.
struct given_part {
  given_part* older = nullptr;
  fork_frame* part = nullptr;
  std::size_t end = 0;
};

struct shared_loop {
  // What is not of the loop's own type. give: null when memory is out.
  struct kind {
    given_part* (*give)(shared_loop&, std::size_t first, std::size_t last) noexcept;
    void (*free)(given_part&) noexcept;
  };

  TROUPE_INLINE shared_loop(std::size_t count, const kind& as) noexcept : end(count), type(as) {}
  shared_loop(const shared_loop&) = delete;
  shared_loop& operator=(const shared_loop&) = delete;

  // Calls step(i) for each number that is left to this thread, and returns when all that others
  // took has been done: true if there was some; then leave() is to be called. Throws what was
  // thrown first. No destructor does that: where loops are nodes of a recursion, the compiler puts
  // some levels of it into one function if they are small.
  template <class Step>
  TROUPE_INLINE bool run(const Step& step) {
    own_loops& here = loops_here;
    stop = end < here.round ? end : here.round;
    outer = here.innermost;
    here.innermost = this;
    try {
      if (--loops_here.left < 0) [[unlikely]]
        look();
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
  // It ends, and frees what was given.
  void leave() noexcept;

  std::size_t next = 0;  // from here to the end nothing has begun
  std::size_t stop;      // of this round
  std::size_t end;
  shared_loop* outer;         // of the same segment, or null
  loop_tree* tree = nullptr;  // of what it gave, and then:
  given_part* newest_given;   // kept until the loop ends
  const kind& type;

 private:
  // Read each time: a loop that has it in a register, and reads it again behind each call, is the
  // slower one.
  TROUPE_INLINE std::size_t stop_now() const noexcept {
    return *const_cast<const volatile std::size_t*>(&stop);
  }
  // The numbers of this round have begun. True when there are more, maybe such as were given and
  // nobody took.
  bool go_on();
  static void look();  // throws cancelled
  bool take_back() noexcept;
  void wait() noexcept;
  [[noreturn]] void fail();
  bool join();
  void throw_first();
};

// Leaves one that has given.
struct leaves_given {
  explicit leaves_given(shared_loop& loop) noexcept : of(loop) {}
  leaves_given(const leaves_given&) = delete;
  leaves_given& operator=(const leaves_given&) = delete;
  ~leaves_given() { of.leave(); }
  shared_loop& of;
};

// Whether loops that begin now belong to those on this stack.
TROUPE_INLINE bool in_segment() noexcept { return loops_here.frame == this_stack.top; }
// Else: begins a segment for what the function does. Throws usage_error in a handler;
// std::bad_alloc.
void run_in_segment(void (*function)(void*), void* argument);

template <class Function>
TROUPE_NOINLINE auto begin_segment(const Function& function) {
  using value = std::invoke_result_t<const Function&>;
  struct call {
    const Function& function;
    std::optional<unit_of<value>> given;
  } one{function, {}};
  run_in_segment(
      [](void* argument) {
        auto& self = *static_cast<call*>(argument);
        if constexpr (std::is_void_v<value>) {
          self.function();
        } else {
          self.given.emplace(self.function());
        }
      },
      &one);
  if constexpr (!std::is_void_v<value>) return std::move(*one.given);
}

// What a loop of this result gave, a work; there it comes to T.
template <class T>
struct part_of final : given_part {
  explicit part_of(work<T>&& begins) noexcept : made(std::move(begins)) {
    part = &work_access::begin(made);
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
  work<T> made;
};

}  // namespace troupe::jobs
