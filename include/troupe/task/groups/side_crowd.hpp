// side_crowd: the pending side calls of one user, of which each leaves when it is ready. A result
// therefore costs the same with any number of side calls that wait beside it; a side_wait alone
// lets go of all of them, and takes them up again, at each result. For the library's own use.
//
// Thread: the turns of one actor, but for abandon(), which the thread calls that destroys the
// user's frame, perhaps beside a turn of the actor (side_call::drop).
// Invariants
//   B1  while a side call is in the crowd it is pending, holds its actor, and has a reference to
//       the crowd. It leaves in its turn, before another thread may know that it is ready.
//   B2  the owner abandons the crowd before it drops a side call that is in it. Side calls of an
//       abandoned crowd may be freed one by one, so that from then on no code follows the links.
//       A turn that has seen the crowd before that may still follow them: those beside its side
//       call can only be freed in a later turn, or at the actor's end.
//   B3  `waiter` is the user's coroutine exactly while it waits for the crowd.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "troupe/task/side_call.hpp"

namespace troupe::tasks {

class side_crowd final : public side_wait {
 public:
  struct abandons {
    void operator()(side_crowd* crowd) const noexcept { crowd->abandon(); }
  };
  using owner = std::unique_ptr<side_crowd, abandons>;
  // Throws std::bad_alloc.
  static owner make() { return owner(new side_crowd); }

  // From now on there is room for places below this number. Throws std::bad_alloc.
  void reserve(std::size_t places) { next_.resize(places, side_call::no_place); }
  // Lets the side call run, if it waits for nothing, and takes it in, if it is pending then.
  // Returns whether it is ready. If it has a place, that is then given by pop_ready().
  bool advance(side_call& call, coroutine& user, bool later);
  bool any_ready() const noexcept { return first_ready_ != side_call::no_place; }
  std::size_t first_ready() const noexcept { return first_ready_; }
  void pop_ready() noexcept;
  // After a wait of the user.
  void settle() noexcept { waiter = nullptr; }

 private:
  friend side_wait;
  side_crowd() noexcept { keeps_ = true; }
  void abandon() noexcept;
  void drop() noexcept;
  void note_ready(std::size_t place) noexcept;
  // In a turn of the side call, which is still pending. The caller has its reference then.
  void leave(side_call& call) noexcept;
  // A side call that has left is ready. Returns the call that must be resumed, if any.
  async_call* ready() noexcept;

  std::atomic<std::size_t> refs_{1};
  std::atomic<bool> abandoned_{false};
  // The places that are ready, in the order in which they became so: a list by indices.
  std::vector<std::size_t> next_;
  std::size_t first_ready_ = side_call::no_place, last_ready_ = side_call::no_place;
};

}  // namespace troupe::tasks
