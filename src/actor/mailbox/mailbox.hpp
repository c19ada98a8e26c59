// mailbox_word: the one word that an inactive actor costs, as a type with named transitions.
//
//   state                value of the word
//   inactive             0
//   active, no new mail  activation | 1
//   active, new mail     the newest message; each message links to the next older one, and the
//                        oldest to activation | 1
//   parked               as either active state, | 4: the actor is suspended and in no queue.
//                        Urgent mail wakes it; a reentrant actor is woken by any mail
//   closed               2: the runtime has ended
// The address of an urgent message carries | 8.
//
//   inactive -claim-> active -append-> new mail -collect-> active -rest-> inactive
//   active -park-> parked -append of mail that wakes-> active; other mail leaves it parked
// Senders: any thread (claim, append). Owner: the thread that runs the activation (collect, rest,
// park).
// Invariants
//   M1  a message is complete before it is linked.
//   M2  collect gives messages in the order in which append (or claim) took effect.
//   M3  rest succeeds only when there is no new message, park only when there is none that wakes:
//       no message is forgotten.
//   M4  from a claim to the rest that ends it there is exactly one activation.
//   M5  the thread that clears the parked bit wakes the activation, and no other thread does.
// A sender retries a bounded number of times, then appends by an exchange that cannot fail. The
// owner may then have to wait for that sender's next instruction; a sender never waits for an owner
// (P4).
// Measured against a one-bit lock and a list: docs/decisions/mailbox_word.md.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"

namespace troupe::actor {

// Message needs a member `Atomics::atomic<std::uintptr_t> next`. Addresses of messages must be
// multiples of 16, addresses of activations multiples of 8.
template <class Message, class Activation, class Word, class Atomics = base::std_atomics>
class mailbox_word {
 public:
  static constexpr std::uintptr_t inactive = 0, active_tag = 1, closed = 2, parked_tag = 4,
                                  urgent_tag = 8, tags = 15;

  explicit mailbox_word(Word& word) noexcept : word_(word) {}

  static std::uintptr_t tagged(Activation& active) noexcept {
    return reinterpret_cast<std::uintptr_t>(&active) | active_tag;
  }
  static bool is_activation(std::uintptr_t seen) noexcept { return (seen & active_tag) != 0; }
  static bool is_parked(std::uintptr_t seen) noexcept { return (seen & parked_tag) != 0; }
  static Activation& as_activation(std::uintptr_t seen) noexcept {
    return *reinterpret_cast<Activation*>(seen & ~(active_tag | parked_tag));
  }

  std::uintptr_t read() const noexcept {
    // order: relaxed  only compared: collect takes the messages, and a thread that reads an
    // activation that it does not own checks the value
    return word_.load(std::memory_order_relaxed);
  }

  // An inactive actor becomes active with this activation. False when the actor was not inactive.
  bool claim(Activation& with) noexcept {
    std::uintptr_t seen = inactive;
    // order: acquire  takes over the actor from rest/release; its first mail is published by the
    // queue that the activation goes into
    return word_.compare_exchange_strong(seen, tagged(with), std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }

  // The word was `seen`, an active or parked state: makes `mail` the newest message. False when the
  // word has changed. `wakes` clears the parked bit: if `seen` had it, the caller must then wake
  // activation_under(seen) (M5).
  bool append(std::uintptr_t seen, Message& mail, bool urgent, bool wakes) noexcept {
    // order: relaxed  published by the compare-and-swap below
    mail.next.store(seen, std::memory_order_relaxed);
    // order: acq_rel  publishes the message (M1), pairs with collect/acquire; takes a parked actor
    // over as claim does
    return word_.compare_exchange_strong(seen, linked(mail, urgent, wakes ? 0 : seen),
                                         std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  // Makes the ordinary message `mail` the newest, whatever the word is, and returns the word found.
  // When that was inactive (or closed), the caller must finish() the message: no other thread
  // touches the chain's end. When it was parked, the caller must wake activation_under() it (M5).
  std::uintptr_t append_always(Message& mail) noexcept {
    // order: relaxed  published by the exchange below
    mail.next.store(unlinked, std::memory_order_relaxed);
    // order: acq_rel  publishes the message as append does (M1), takes over an inactive actor as
    // claim does
    const std::uintptr_t seen = word_.exchange(linked(mail, false, 0), std::memory_order_acq_rel);
    if (seen != inactive && seen != closed) finish(mail, seen);
    return seen;
  }
  void finish(Message& mail, std::uintptr_t older) noexcept {
    // order: release  the sender's last touch of a message that the owner then frees; pairs with
    // collect/acquire
    mail.next.store(older, std::memory_order_release);
  }

  // For the thread that has cleared the parked bit of `seen`: no thread collects until it wakes the
  // activation: the chain is stable.
  static Activation& activation_under(std::uintptr_t seen) noexcept {
    while (!is_activation(seen)) seen = older_than(as_message(seen));
    return as_activation(seen);
  }

  // Any thread that found the parked state `seen`: clears the parked bit in order to look at the
  // actor, without any mail. False when the word has changed. Must be followed by let_go().
  bool seize(std::uintptr_t seen) noexcept {
    // order: acquire  takes over the actor from park/release, or from let_go/release
    return word_.compare_exchange_strong(seen, seen & ~parked_tag, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  // Parks the actor again. False when mail of any kind has arrived: then the caller must wake
  // activation_under(seen) (M5).
  bool let_go(std::uintptr_t seen) noexcept {
    std::uintptr_t taken = seen & ~parked_tag;
    // order: release  hands the actor over as park does; relaxed: the thread that wakes it goes
    // through a queue
    return word_.compare_exchange_strong(taken, seen, std::memory_order_release,
                                         std::memory_order_relaxed);
  }

  // Owner: whether there is new mail.
  bool has_mail(Activation& active) const noexcept { return read() != tagged(active); }

  // Owner: whether the new mail has an urgent message.
  bool has_urgent_mail(Activation& active) const noexcept {
    const std::uintptr_t end = tagged(active);
    // order: acquire  as collect
    for (std::uintptr_t at = word_.load(std::memory_order_acquire); at != end;
         at = older_than(as_message(at)) & ~parked_tag) {
      if ((at & urgent_tag) != 0) return true;
    }
    return false;
  }

  // Owner, after has_mail: takes the new mail and calls `take(message, urgent)` for each message,
  // newest first.
  template <class Take>
  void collect(Activation& active, Take take) noexcept {
    const std::uintptr_t end = tagged(active);
    // order: acquire  sees the complete messages (M1), older ones too: each exchange in between
    // keeps the earlier ones' published writes; pairs with append, append_always
    std::uintptr_t at = word_.exchange(end, std::memory_order_acquire);
    while (at != end) {
      Message& mail = as_message(at);
      const bool urgent = (at & urgent_tag) != 0;
      at = older_than(mail) & ~parked_tag;
      take(mail, urgent);
    }
  }

  // Owner: the actor becomes inactive. False when there is new mail.
  bool rest(Activation& active) noexcept {
    std::uintptr_t seen = tagged(active);
    // order: release  hands the actor over to the next claim/acquire; relaxed: collect looks again
    return word_.compare_exchange_strong(seen, inactive, std::memory_order_release,
                                         std::memory_order_relaxed);
  }

  // Owner: the actor waits for mail that wakes it. False when there is new mail of any kind.
  bool park(Activation& active) noexcept {
    std::uintptr_t seen = tagged(active);
    // order: release  hands the actor over to the append/acq_rel that wakes it; relaxed: collect
    // looks again
    return word_.compare_exchange_strong(seen, seen | parked_tag, std::memory_order_release,
                                         std::memory_order_relaxed);
  }

 private:
  static constexpr std::uintptr_t unlinked = 2;

  static Message& as_message(std::uintptr_t link) noexcept {
    return *reinterpret_cast<Message*>(link & ~tags);
  }
  static std::uintptr_t linked(Message& mail, bool urgent, std::uintptr_t seen) noexcept {
    return reinterpret_cast<std::uintptr_t>(&mail) | (urgent ? urgent_tag : 0) |
           (seen & parked_tag);
  }
  static std::uintptr_t older_than(Message& mail) noexcept {
    for (int spin = 0;; ++spin) {
      // order: acquire  the sender is done with the message; pairs with finish/release
      const std::uintptr_t older = mail.next.load(std::memory_order_acquire);
      if (older != unlinked) return older;
      Atomics::wait_a_little(spin);
    }
  }

  Word& word_;
};

}  // namespace troupe::actor
