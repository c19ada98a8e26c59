// activation: what an actor has only while it is active: its mail list and its place in a queue.
//
// From a pool of its own that never gives memory back, since a sender may look at the `home` of an
// activation that has just changed hands (it then finds another worker's, never garbage).
// Owner: the thread in the actor's turn; between turns whoever holds the lock of `home` (worker.hpp).
#pragma once

#include "actor/mailbox.hpp"
#include "sched/runnable.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/message.hpp"

namespace troupe::actor {

struct activation : sched::runnable {
  cell* actor = nullptr;
  message* oldest = nullptr;  // mail, linked through next, oldest first
  message* newest = nullptr;
  bool farewell = false;      // the actor was told that its last ref went

  void append(message& mail) noexcept {
    // order: relaxed  within the owner's list
    mail.next.store(0, std::memory_order_relaxed);
    if (newest == nullptr) {
      oldest = &mail;
    } else {
      // order: relaxed  within the owner's list
      newest->next.store(reinterpret_cast<std::uintptr_t>(&mail), std::memory_order_relaxed);
    }
    newest = &mail;
  }

  void put_back(message& mail) noexcept {
    // order: relaxed  within the owner's list
    mail.next.store(reinterpret_cast<std::uintptr_t>(oldest), std::memory_order_relaxed);
    oldest = &mail;
    if (newest == nullptr) newest = &mail;
  }

  // The oldest, or null.
  message* take() noexcept {
    message* mail = oldest;
    if (mail == nullptr) return nullptr;
    // order: relaxed  within the owner's list
    oldest = reinterpret_cast<message*>(mail->next.load(std::memory_order_relaxed));
    if (oldest == nullptr) newest = nullptr;
    return mail;
  }
};

using mailbox = mailbox_word<message, activation, std::atomic<std::uintptr_t>>;

// Throws std::bad_alloc.
activation& make_activation(cell& actor);
void free_activation(activation& rested) noexcept;

}  // namespace troupe::actor
