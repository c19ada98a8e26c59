// shared_state: what a promise and its future have in common. The library's own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>

#include "troupe/memory/block_pool.hpp"
#include "troupe/sched/message.hpp"
#include "troupe/task/result.hpp"

namespace troupe::tasks {

// Who is told, once, on the thread that resolves.
struct observer {
  void (*resolved)(observer&) noexcept;
};

// One that resolves others in its turn, or calls who may. `resolved` is to call tell_nested.
struct nested_observer : observer {
  nested_observer* next = nullptr;
};
// Calls `act` at once, unless 64 such calls are under way on this thread, each in the one before: a chain of any length would
// need a stack of any size. Then the innermost of them calls it when it has returned, in the order in which they came.
void tell_nested(nested_observer& one, void (*act)(observer&) noexcept) noexcept;

// Of an ask: who waits for whom, so that one that would wait for itself is found.
struct shared_state;
struct ask_link {
  ask_link() = default;
  ask_link(const ask_link&) = delete;
  ask_link& operator=(const ask_link&) = delete;
  ~ask_link();
  // Else `check` would find nothing: who asked is asked by nobody itself.
  bool may_close_circle() const noexcept { return check != nullptr && (parent != nullptr || asker == asked); }
  const void* asker = nullptr;      // the actor whose turn asked, if that is a flow and keeps its messages waiting
  const void* asked = nullptr;      // the actor that answers
  void (*check)(const ask_link& of) = nullptr;  // throws deadlock when it would wait for itself
  sched::message::handler method = nullptr;
  const char* what = "the answer of ";  // for who must say what is waited for: that, and the method's description
  shared_state* parent = nullptr;   // the ask that the asker's flow answers; counted, while this one is not done (see parents)
  std::atomic<bool> abandoned{false};  // nobody waits for it, or not by a turn
  std::atomic<bool> given_up{false};   // a timeout, a stop token or the end of the asker has ended the wait for it
};

// Guards ask_link::parent of an ask that others have as theirs: once it is done it forgets its own, or asks that nobody waits for
// would keep all those before them. Who looks at more than the first one has it.
extern constinit std::mutex parents;

struct shared_state {
  explicit shared_state(bool (*free_self)(shared_state&, bool early) noexcept) noexcept : free(free_self) {}
  shared_state(const shared_state&) = delete;
  shared_state& operator=(const shared_state&) = delete;

  // src/task/one_shot.hpp says what these do.
  // order: acquire  as there
  bool resolved() const noexcept { return word.load(std::memory_order_acquire) == done; }
  bool attach(observer& waiting) noexcept;
  bool detach(observer& waiting) noexcept;
  // There is a taker, who is about to be told of the result. Nobody else knows of it yet.
  // order: relaxed  how the taker comes to know publishes it
  void take() noexcept { word.store(0, std::memory_order_relaxed); }
  // Nobody is left to take it. A hint for the resolver.
  // order: relaxed  a hint
  bool left() const noexcept { return word.load(std::memory_order_relaxed) == untaken; }
  void resolve() noexcept;  // tells the observer, if there is one; the resolver's last touch
  void leave() noexcept {   // the taker's
    // order: acquire  as drop_ref
    const bool last = resolved() && refs.load(std::memory_order_acquire) == 1;
    last ? static_cast<void>(free(*this, false)) : leave_early();
  }
  void leave_early() noexcept;

  // The resolver and the taker have one together, which whoever is the last of them drops.
  void add_ref() noexcept;
  void drop_ref() noexcept;  // frees it with the last one
  void be_done() noexcept;   // drops theirs

  // Blocks the calling thread until it is resolved. False when that did not come about in time.
  bool wait(std::chrono::nanoseconds at_most);

  static constexpr std::uintptr_t done = 1, untaken = 2;
  std::atomic<std::uintptr_t> word{untaken};
  std::atomic<std::uint32_t> refs{1};
  bool queued = false;  // what resolves it may not have begun: a taker who leaves asks `free`
  bool marked = false;  // what `free` wants to know
  // Early: only if what would have resolved it does not begin any more, or goes on without it. False, and nothing done, if it has begun.
  bool (*const free)(shared_state&, bool early) noexcept;
  ask_link* asked = nullptr;  // of an ask
};

inline ask_link::~ask_link() {
  if (parent != nullptr) parent->drop_ref();
}

template <class T>
struct state_of : shared_state {
  explicit state_of(bool (*free_self)(shared_state&, bool early) noexcept = &free_this) noexcept : shared_state(free_self) {}

  static state_of& make() { return *::new (memory::allocate(sizeof(state_of))) state_of; }
  static bool free_this(shared_state& self, bool) noexcept {
    auto& typed = static_cast<state_of&>(self);
    typed.~state_of();
    memory::deallocate(&typed, sizeof(state_of));
    return true;
  }

  result_of<T> result;
};

}  // namespace troupe::tasks
