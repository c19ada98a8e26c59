// activation: what an actor has only while it is active: its mail list and its place in a queue.
//
// From a pool of its own that never gives memory back, since a sender may look at the `home` of an
// activation that has just changed hands (it then finds another worker's, never garbage).
// Owner: the thread in the actor's turn; between turns whoever holds the lock of `home` (worker.hpp).
#pragma once

#include <cstddef>

#include "actor/mailbox.hpp"
#include "memory/stable_pool.hpp"
#include "sched/runnable.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/message.hpp"
#include "base/invariant.hpp"

namespace troupe::actor {

using mail_link = std::atomic<std::uintptr_t>;

// Messages linked through next, oldest first; the newest links to 0.
struct mail_list {
  message* oldest;
  mail_link* end;  // the newest one's link
};

struct activation : sched::runnable {
  cell* actor = nullptr;
  mail_link oldest{0};
  mail_link* end = &oldest;  // where the next one is linked: never a branch
  bool farewell = false;     // the actor was told that its last ref went

  void append(message& mail) noexcept {
    set(mail.next, 0);
    set(*end, as_link(&mail));
    end = &mail.next;
  }

  // `last` links to 0.
  void append_list(message& first, message& last) noexcept {
    set(*end, as_link(&first));
    end = &last.next;
  }

  mail_list take_all() noexcept {
    const mail_list all{as_message(get(oldest)), end};
    clear();
    return all;
  }

  // In front of what has come meanwhile: the rest of a list that take_all gave, from `first` on.
  void put_back(message& first, const mail_list& taken) noexcept {
    const std::uintptr_t meanwhile = get(oldest);
    set(*taken.end, meanwhile);
    if (meanwhile == 0) end = taken.end;
    set(oldest, as_link(&first));
  }

  static message* after(const message& mail) noexcept { return as_message(get(mail.next)); }

  void clear() noexcept {
    set(oldest, 0);
    end = &oldest;
  }

  bool empty() const noexcept { return get(oldest) == 0; }

 private:
  // order: relaxed (both)  within the owner's list; the mailbox word publishes
  static std::uintptr_t get(const mail_link& of) noexcept { return of.load(std::memory_order_relaxed); }
  static void set(mail_link& of, std::uintptr_t to) noexcept { of.store(to, std::memory_order_relaxed); }
  static std::uintptr_t as_link(message* mail) noexcept { return reinterpret_cast<std::uintptr_t>(mail); }
  static message* as_message(std::uintptr_t link) noexcept { return reinterpret_cast<message*>(link); }
};

using mailbox = mailbox_word<message, activation, std::atomic<std::uintptr_t>>;

// How the scheduler handles an activation (turn.cpp).
extern const sched::runnable_type turn_type;

// Throws std::bad_alloc. A recycled block is not constructed anew: `home` may be looked at by a sender with
// an old address.
TROUPE_INLINE activation& make_activation(cell& actor) {
  static_assert(sizeof(activation) <= memory::stable_bytes);
  auto& made = *static_cast<activation*>(memory::allocate_stable());
  made.type = &turn_type;
  made.linger_slot = -1;
  made.where = sched::place::elsewhere;
  made.actor = &actor;
  made.clear();
  made.farewell = false;
  return made;
}

TROUPE_INLINE void free_activation(activation& rested) noexcept {
  TROUPE_INVARIANT(rested.empty() && rested.linger_slot < 0, "M3");
  // order: relaxed  nobody's any more (worker.hpp)
  rested.home.store(nullptr, std::memory_order_relaxed);
  memory::deallocate_stable(&rested);
}

}  // namespace troupe::actor
