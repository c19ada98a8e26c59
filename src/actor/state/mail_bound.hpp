// mail_bound: how many messages a bounded mailbox holds, and the queue of those that wait for room:
// a sender, or an ask itself.
//
// Invariants
//   L1  count_ is at most the limit, except under drop_old. It counts each message that waits in
//       the mailbox, and each room that was granted to a sender and not used yet.
//   L2  no waiter waits while there is room, except while a thread in give_room is about to grant
//       it.
//   L3  room is granted in the order in which the waiters came, and an ask is delivered before the
//       next waiter gets room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/actor/bounded.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/actor/when_full.hpp"

namespace troupe::actor {

// Threads: any.
class mail_bound {
 public:
  mail_bound(std::size_t limit, when_full policy) noexcept : limit_(limit), policy_(policy) {}

  when_full policy() const noexcept { return policy_; }
  enum class taken : std::uint8_t { no, yes, overflows };
  // Takes room for one message. `no`: the mailbox is full. `overflows`: there is room, because the
  // oldest message will be dropped, but the owner has not looked at its mail for long and must be
  // called; given once until called().
  taken take() noexcept;
  // The owner has looked at its mail; or the call to it failed.
  void called() noexcept;
  // A message has left the mailbox, or a granted room was not used.
  void leave() noexcept;
  // Owner: whether the oldest message must be dropped.
  bool too_many() noexcept;
  // The promise is resolved as soon as there is room, which is then the waiter's.
  void wait_for(promise<permit>&& waiter, cell& to);
  // Delivers the ask as soon as there is room. Takes the message, even when it throws.
  void wait_for(message& ask, const tasks::shared_state& answer, cell& to);
  // The actor has ended: all waiters get room, and find the mailbox closed.
  void open() noexcept;

 private:
  const std::size_t limit_;
  const when_full policy_;
  std::mutex mutex_;
  std::size_t count_ = 0;
  bool open_ = false, calls_ = false;
  // A waiter: a sender that is notified when there is room, or an ask that is delivered then.
  struct waiting {
    waiting(promise<permit>&& sender, cell& actor) noexcept
        : granted(std::move(sender)), to(&actor) {}
    waiting(message& asks, const tasks::shared_state& state, cell& actor) noexcept
        : ask(&asks), answer(&state), to(&actor) {}
    waiting(waiting&& other) noexcept
        : granted(std::move(other.granted)),
          ask(std::exchange(other.ask, nullptr)),
          answer(other.answer),
          to(other.to) {}
    waiting& operator=(waiting&& other) noexcept;
    ~waiting();
    bool gave_up() const noexcept;
    // Uses the room. False when memory was out and the ask could not be delivered.
    bool come_in() noexcept;
    std::optional<promise<permit>> granted;
    message* ask = nullptr;
    const tasks::shared_state* answer = nullptr;  // the result of the ask
    cell* to;
  };
  std::list<waiting> take_abandoned() noexcept;
  template <class... What>
  bool enqueue(cell& to, What&&... waiter);
  void give_room(std::unique_lock<std::mutex>& lock) noexcept;
  bool is_sound() const noexcept;                // L1
  bool none_waits_beside_room() const noexcept;  // L2

  std::list<waiting> waiting_;  // an empty deque has memory
  // rooms that were freed while a thread is in give_room: that thread also grants these (L3)
  std::size_t freed_ = 0;
  bool giving_ = false;
  std::size_t prune_at_ = 16;  // at this length enqueue removes the waiters that gave up
};

}  // namespace troupe::actor
