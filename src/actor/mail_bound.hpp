// mail_bound: how many messages wait in a bounded mailbox, and who waits for room.
//
// Invariants
//   L1  count_ is at most the limit, but under drop_old; each is a message that waits or a room that
//       was given to somebody who will send.
//   L2  nobody waits while there is room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "troupe/actor/bounded.hpp"
#include "troupe/actor/when_full.hpp"

namespace troupe::actor {

// Threads: any.
class mail_bound {
 public:
  mail_bound(std::size_t limit, when_full policy) noexcept : limit_(limit), policy_(policy) {}

  when_full policy() const noexcept { return policy_; }
  enum class taken : std::uint8_t { no, yes, overflows };
  // `overflows`, once: there is room, for the oldest goes, but the owner has not come to its mail for long and is to be called.
  taken take() noexcept;
  // It has come; or it could not be called.
  void called() noexcept;
  // A message has left the mailbox, or a room was not used.
  void leave() noexcept;
  // The owner: whether the oldest message is to be dropped.
  bool too_many() noexcept;
  // Ready as soon as there is room, which is the caller's then.
  void wait_for(promise<room>&& waiter, cell& to);
  // The actor has ended: there is room for all, who find it closed.
  void open() noexcept;

 private:
  const std::size_t limit_;
  const when_full policy_;
  std::mutex mutex_;
  std::size_t count_ = 0;
  bool open_ = false, calls_ = false;
  struct waiting {
    promise<room> granted;
    cell* to;
  };
  std::vector<waiting> take_abandoned();

  std::deque<waiting> waiting_;
  std::size_t prune_at_ = 16;  // who gave up is forgotten then
};

}  // namespace troupe::actor
