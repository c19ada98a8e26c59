// activation: what an actor has only while it is active: its mail list and its place in a queue.
//
// From a pool of its own that never gives memory back, since a sender may look at the `home` of an
// activation that has just changed hands (it then finds another worker's, never garbage).
// Owner: the thread in the actor's turn; between turns whoever holds the lock of `home` (worker.hpp).
#pragma once

#include <cstddef>

#include "actor/mailbox.hpp"
#include "sched/runnable.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/message.hpp"

namespace troupe::actor {

struct activation : sched::runnable {
  using link = std::atomic<std::uintptr_t>;

  cell* actor = nullptr;
  link oldest{0};         // mail, linked through next, oldest first
  link* end = &oldest;    // where the next one is linked: never a branch
  bool farewell = false;  // the actor was told that its last ref went

  // order: relaxed (all below)  within the owner's list
  void append(message& mail) noexcept {
    mail.next.store(0, std::memory_order_relaxed);
    end->store(reinterpret_cast<std::uintptr_t>(&mail), std::memory_order_relaxed);
    end = &mail.next;
  }

  void append_list(message& first, message& last) noexcept {
    end->store(reinterpret_cast<std::uintptr_t>(&first), std::memory_order_relaxed);
    end = &last.next;
  }

  void put_back(message& mail) noexcept {
    mail.next.store(oldest.load(std::memory_order_relaxed), std::memory_order_relaxed);
    if (end == &oldest) end = &mail.next;
    oldest.store(reinterpret_cast<std::uintptr_t>(&mail), std::memory_order_relaxed);
  }

  // The oldest, or null.
  message* take() noexcept {
    auto* mail = reinterpret_cast<message*>(oldest.load(std::memory_order_relaxed));
    if (mail == nullptr) return nullptr;
    const std::uintptr_t next = mail->next.load(std::memory_order_relaxed);
    oldest.store(next, std::memory_order_relaxed);
    end = next == 0 ? &oldest : end;
    return mail;
  }

  // The newest, to compare with; something that is no message when there is none.
  const message* newest() const noexcept {
    static_assert(offsetof(message, next) == 0);
    return reinterpret_cast<const message*>(end);
  }

  bool empty() const noexcept { return oldest.load(std::memory_order_relaxed) == 0; }
};

using mailbox = mailbox_word<message, activation, std::atomic<std::uintptr_t>>;

// Throws std::bad_alloc.
activation& make_activation(cell& actor);
void free_activation(activation& rested) noexcept;

}  // namespace troupe::actor
