// mail_bound: how many messages wait in a bounded mailbox, and who waits for room: a sender, or an
// ask itself.
//
// Invariants
//   L1  count_ is at most the limit, but under drop_old; each is a message that waits or a room
//   that
//       was given to somebody who will send.
//   L2  nobody waits while there is room, but for as long as a thread that gives room is at it.
//   L3  room is given in the order in which those who wait began to, and an ask is delivered before
//       the next one has room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/actor/bounded.hpp"
#include "troupe/actor/message.hpp"
#include "troupe/actor/when_full.hpp"

namespace troupe::actor {

// Threads: any.
class mail_bound {
 public:
  mail_bound(std::size_t limit, when_full policy) noexcept : limit_(limit), policy_(policy) {}

  when_full policy() const noexcept { return policy_; }
  enum class taken : std::uint8_t { no, yes, overflows };
  // `overflows`, once: there is room, for the oldest goes, but the owner has not come to its mail
  // for long and is to be called.
  taken take() noexcept;
  // It has come; or it could not be called.
  void called() noexcept;
  // A message has left the mailbox, or a room was not used.
  void leave() noexcept;
  // The owner: whether the oldest message is to be dropped.
  bool too_many() noexcept;
  // Ready as soon as there is room, which is the caller's then.
  void wait_for(promise<permit>&& waiter, cell& to);
  // Delivers the ask as soon as there is room. Takes the message, also when it throws.
  void wait_for(message& ask, const tasks::shared_state& answer, cell& to);
  // The actor has ended: there is room for all, who find it closed.
  void open() noexcept;

 private:
  const std::size_t limit_;
  const when_full policy_;
  std::mutex mutex_;
  std::size_t count_ = 0;
  bool open_ = false, calls_ = false;
  // One who waits for room: a sender that is told, or an ask that is delivered.
  struct waiting {
    waiting(promise<permit>&& sender, cell& actor) noexcept
        : granted(std::move(sender)), to(&actor) {}
    waiting(message& asks, const tasks::shared_state& of, cell& actor) noexcept
        : ask(&asks), answer(&of), to(&actor) {}
    waiting(waiting&& other) noexcept
        : granted(std::move(other.granted)),
          ask(std::exchange(other.ask, nullptr)),
          answer(other.answer),
          to(other.to) {}
    waiting& operator=(waiting&& other) noexcept;
    ~waiting();
    bool gave_up() const noexcept;
    // Uses the room. False when the ask could not be delivered for want of memory.
    bool come_in() noexcept;
    std::optional<promise<permit>> granted;
    message* ask = nullptr;
    const tasks::shared_state* answer = nullptr;  // of the ask, which resolves it
    cell* to;
  };
  std::vector<waiting> take_abandoned();
  template <class... What>
  bool enqueue(cell& to, What&&... waiter);
  void give_room(std::unique_lock<std::mutex>& lock) noexcept;

  std::deque<waiting> waiting_;
  // rooms that came free while a thread delivers asks: it gives these, too (L3)
  std::size_t freed_ = 0;
  bool giving_ = false;
  std::size_t prune_at_ = 16;  // who gave up is forgotten then
};

}  // namespace troupe::actor
