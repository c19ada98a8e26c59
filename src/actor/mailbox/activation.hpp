// activation: the state that an actor needs only while it is active: its list of mail and its links
// in the scheduler's queues.
//
// Allocated from a pool of its own that never gives memory back: a sender may read the
// `home_worker` of an activation that has just been freed or reused (it then finds another
// worker's, never garbage).
// Owner: the thread in the actor's turn; between turns the thread that holds the lock of
// `home_worker` (worker.hpp).
#pragma once

#include <cstddef>

#include "actor/mailbox/mailbox.hpp"
#include "actor/state/optional_state.hpp"
#include "base/invariant.hpp"
#include "memory/stable_pool.hpp"
#include "observe/counting/histogram.hpp"
#include "sched/runnable.hpp"
#include "task/running/runtime_state.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/task/async_call.hpp"

namespace troupe::actor {

using mail_link = std::atomic<std::uintptr_t>;

// Messages linked through `next`: urgent ones first, each kind oldest first. The last message links
// to 0.
struct mail_list {
  std::uintptr_t oldest;
  mail_link* end;  // the link inside the newest message
};

struct activation : sched::runnable {
  enum mark : std::uint8_t {
    told_unreferenced = 1,  // the actor was notified that its last ref was dropped
    waits = 2,              // `suspended` is not null
    has_urgent = 4,         // urgent mail is in the list, or in the one that take_all gave last
  };
  std::uint8_t marks = 0;
  // messages in the list; kept only while the runtime is observed (counting/message_counts.hpp)
  observe::small_counter length;
  cell* actor = nullptr;
  mail_link oldest{0};
  mail_link* end = &oldest;  // where the next message is linked: makes append free of branches
  // the turn waits for this call: only urgent mail is handled
  tasks::async_call* suspended = nullptr;

  void append(message& mail) noexcept {
    set(mail.next, 0);
    set(*end, as_link(&mail));
    end = &mail.next;
  }

  // Puts the message behind the urgent mail, in front of the ordinary mail.
  TROUPE_INLINE void append_urgent(message& mail) noexcept {
    empty() ? begin_urgent(mail) : append_urgent_among(mail);
  }
  TROUPE_NOINLINE void append_urgent_among(message& mail) noexcept {
    mail_link* at = &oldest;
    mail_link** known = urgent_end();
    if (urgent_first() && known != nullptr && *known != nullptr) at = *known;
    while (is_urgent(get(*at))) at = &as_message(get(*at))->next;
    insert_urgent(*at, mail);
  }
  // The same, where the list's urgent mail is known to end.
  TROUPE_NOINLINE void insert_urgent(mail_link& at, message& mail) noexcept {
    const std::uintptr_t behind = get(at);
    set(mail.next, behind);
    set(at, as_link(&mail) | urgent_tag);
    if (behind == 0) end = &mail.next;
    if (mail_link** const known = urgent_end()) *known = &mail.next;
    marks |= has_urgent;
  }

  // Puts the message into the empty list. It is called for activations that have not claimed their
  // actor yet as well: it must not touch the actor.
  void begin_urgent(message& mail) noexcept {
    set(mail.next, 0);
    set(oldest, as_link(&mail) | urgent_tag);
    end = &mail.next;
    marks |= has_urgent;
  }

  // Appends a chain of messages. `last` links to 0.
  void append_list(message& first, message& last) noexcept {
    set(*end, as_link(&first));
    end = &last.next;
  }

  mail_list take_all() noexcept {
    const mail_list all{get(oldest), end};
    if ((marks & has_urgent) != 0) forget_urgent_end();
    clear();
    return all;
  }

  // Puts back the rest of a list that take_all gave, from `first` on, in front of the mail that has
  // arrived since.
  void put_back(std::uintptr_t first, const mail_list& taken) noexcept {
    const std::uintptr_t meanwhile = get(oldest);
    forget_urgent_end();
    if (is_urgent(meanwhile)) return put_back_behind_urgent(first, taken);
    set(*taken.end, meanwhile);
    if (meanwhile == 0) end = taken.end;
    set(oldest, first);
  }

  // A link of a list that was taken is 0 at the list's end; else it names a message, and after()
  // gives the next link.
  static message* as_message(std::uintptr_t link) noexcept {
    return reinterpret_cast<message*>(link & ~urgent_tag);
  }
  std::uintptr_t first() const noexcept { return get(oldest); }
  // Takes the first message out of the list; it is an ordinary one.
  message& pop_ordinary(std::uintptr_t first) noexcept {
    message& mail = *reinterpret_cast<message*>(first);
    const std::uintptr_t next = after(mail);
    set(oldest, next);
    if (next == 0) end = &oldest;
    return mail;
  }
  // For a suspended actor: takes the first message out of the list; it is an urgent one.
  message& pop_urgent() noexcept {
    message& mail = *as_message(get(oldest));
    const std::uintptr_t next = after(mail);
    set(oldest, next);
    if (next == 0) end = &oldest;
    suspended->urgent_end = nullptr;
    if (!is_urgent(next)) marks &= static_cast<std::uint8_t>(~has_urgent);
    return mail;
  }
  static std::uintptr_t after(const message& mail) noexcept { return get(mail.next); }
  static bool is_urgent(std::uintptr_t link) noexcept { return (link & urgent_tag) != 0; }

  void clear() noexcept {
    set(oldest, 0);
    end = &oldest;
  }

  bool empty() const noexcept { return get(oldest) == 0; }
  bool urgent_first() const noexcept { return is_urgent(get(oldest)); }
  // The list that was taken is handled, or has been put back: recomputes has_urgent.
  void look_for_urgent() noexcept {
    marks = static_cast<std::uint8_t>((marks & ~has_urgent) | (urgent_first() ? has_urgent : 0));
  }
  void suspend(tasks::async_call& until_over) noexcept {
    forget_urgent_end();
    suspended = &until_over;
    marks |= waits;
  }
  void go_on() noexcept {
    suspended = nullptr;
    forget_urgent_end();
    marks &= static_cast<std::uint8_t>(~waits);
  }
  bool unreferenced() const noexcept { return (marks & told_unreferenced) != 0; }
  void set_unreferenced(bool told) noexcept {
    marks =
        static_cast<std::uint8_t>((marks & ~told_unreferenced) | (told ? told_unreferenced : 0));
  }
  // Whether the next turn would have something to do.
  bool may_run() const noexcept { return suspended == nullptr ? !empty() : urgent_first(); }

 private:
  static constexpr std::uintptr_t urgent_tag = 8;

  // Where the urgent mail of the list ends, so that many urgent messages cost no walk each. It is
  // kept where there is space: in the suspended call, else in the optional state. Null inside when
  // it is not known, for example after the list was taken or put back.
  mail_link** urgent_end() noexcept {
    if (suspended != nullptr) return &suspended->urgent_end;
    return has_optional_state(*actor) ? &optional_state::of(*actor).urgent_end : nullptr;
  }

  void forget_urgent_end() noexcept {
    if (mail_link** known = urgent_end()) *known = nullptr;
  }

  // Mail came while a batch was handled, and some of it is urgent: that urgent mail goes behind the
  // urgent mail of the rest, in front of its ordinary mail.
  void put_back_behind_urgent(std::uintptr_t first, const mail_list& taken) noexcept {
    const mail_list meanwhile = take_all();
    set(oldest, first);
    end = taken.end;
    set(*end, 0);
    for (std::uintptr_t link = meanwhile.oldest; link != 0;) {
      message& mail = *as_message(link);
      const bool urgent = is_urgent(link);
      link = after(mail);
      urgent ? append_urgent(mail) : append(mail);
    }
  }

  // order: relaxed (both)  within the owner's list; the mailbox word publishes
  static std::uintptr_t get(const mail_link& link) noexcept {
    return link.load(std::memory_order_relaxed);
  }
  static void set(mail_link& link, std::uintptr_t to) noexcept {
    link.store(to, std::memory_order_relaxed);
  }
  static std::uintptr_t as_link(message* mail) noexcept {
    return reinterpret_cast<std::uintptr_t>(mail);
  }
};

using mailbox = mailbox_word<message, activation, std::atomic<std::uintptr_t>>;

// The scheduler's functions for an activation (turn.cpp): of a runtime that is not observed, of one
// that is, and of both with a flight recorder.
extern const sched::runnable_vtable turn_type, counted_turn_type, recorded_turn_type,
    recorded_counted_turn_type;

// Throws std::bad_alloc. A recycled block is not constructed anew, since a sender with an old
// address may be reading its `home_worker`.
template <class Runnable>
Runnable& make_runnable(const sched::runnable_vtable& type) {
  static_assert(sizeof(Runnable) <= memory::stable_bytes);
  auto& runnable = *static_cast<Runnable*>(memory::allocate_stable());
  runnable.type = &type;
  runnable.deferred_slot = -1;
  runnable.where = sched::run_state::elsewhere;
  return runnable;
}

// A recycled block holds old values: sets all that belongs to the activation.
TROUPE_INLINE void begin_activation(activation& active, cell* actor) noexcept {
  active.actor = actor;
  active.clear();
  active.marks = 0;
  active.suspended = nullptr;
  active.length.set(0);
}

TROUPE_INLINE activation& make_activation(cell& actor) {
  auto& activated = make_runnable<activation>(*tasks::runtime_state::of(&actor).turns);
  begin_activation(activated, &actor);
  return activated;
}

TROUPE_INLINE void free_activation(activation& rested) noexcept {
  TROUPE_INVARIANT(rested.empty() && rested.deferred_slot < 0, "M3");
  // order: relaxed  no thread owns it any longer (worker.hpp)
  rested.home_worker.store(nullptr, std::memory_order_relaxed);
  memory::deallocate_stable(&rested);
}

}  // namespace troupe::actor
