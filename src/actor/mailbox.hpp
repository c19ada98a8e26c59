// mailbox_word: the one word that a dormant actor costs, as a type with named transitions.
//
//   dormant              0
//   active, no new mail  activation | 1
//   active, new mail     the newest message; each links to the next older, the oldest to activation | 1
//   closed               2: the runtime has gone
//
// dormant -claim-> active -append-> new mail -collect-> active -rest-> dormant
// Senders: any thread (claim, append). Owner: whoever runs the activation (collect, rest).
// Invariants
//   M1  a message is whole before it is linked.
//   M2  messages come out of collect in the order in which append (or claim) took effect.
//   M3  rest succeeds only when no message is there: none is forgotten.
//   M4  between a claim and the rest that ends it there is one activation.
// A sender retries a bounded number of times, then appends by an exchange that cannot fail; the owner may
// then have to wait for the sender's next instruction, never a sender for an owner (P4).
// Measured against a one-bit lock and a list: docs/decisions/mailbox_word.md.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"

namespace troupe::actor {

// Message needs `Atomics::atomic<std::uintptr_t> next`; both types an even address.
template <class Message, class Activation, class Word, class Atomics = base::std_atomics>
class mailbox_word {
 public:
  static constexpr std::uintptr_t dormant = 0, closed = 2;

  explicit mailbox_word(Word& word) noexcept : word_(word) {}

  static std::uintptr_t tagged(Activation& active) noexcept { return reinterpret_cast<std::uintptr_t>(&active) | 1; }
  static bool is_activation(std::uintptr_t seen) noexcept { return (seen & 1) != 0; }
  static Activation& as_activation(std::uintptr_t seen) noexcept {
    return *reinterpret_cast<Activation*>(seen & ~std::uintptr_t{1});
  }

  std::uintptr_t look() const noexcept {
    // order: relaxed  only compared: collect takes the messages, and who looks into an activation that is not
    // his own checks what he finds
    return word_.load(std::memory_order_relaxed);
  }

  // The actor was dormant: it becomes active with this activation. False when it was not dormant.
  bool claim(Activation& with) noexcept {
    std::uintptr_t seen = dormant;
    // order: acquire  takes over the actor from rest/release; its first mail is published by the queue that the
    // activation goes into
    return word_.compare_exchange_strong(seen, tagged(with), std::memory_order_acquire, std::memory_order_relaxed);
  }

  // The word was `seen`, an active state: the mail is the newest. False when the word has changed.
  bool append(std::uintptr_t seen, Message& mail) noexcept {
    // order: relaxed  published by the compare-and-swap below
    mail.next.store(seen, std::memory_order_relaxed);
    // order: release  publishes the message (M1); pairs with collect/acquire
    return word_.compare_exchange_strong(seen, reinterpret_cast<std::uintptr_t>(&mail), std::memory_order_release,
                                         std::memory_order_relaxed);
  }

  // The mail is the newest, whatever the word was. The state found: when that was dormant (or closed),
  // the caller is the one that must finish(): nobody else touches the chain's end.
  std::uintptr_t append_always(Message& mail) noexcept {
    // order: relaxed  published by the exchange below
    mail.next.store(unlinked, std::memory_order_relaxed);
    // order: acq_rel  publishes the message as append does (M1), takes over a dormant actor as claim does
    const std::uintptr_t seen = word_.exchange(reinterpret_cast<std::uintptr_t>(&mail), std::memory_order_acq_rel);
    if (seen != dormant && seen != closed) finish(mail, seen);
    return seen;
  }
  void finish(Message& mail, std::uintptr_t older) noexcept {
    // order: release  the sender's last touch of a message that the owner then frees; pairs with collect/acquire
    mail.next.store(older, std::memory_order_release);
  }

  // Owner: whether new mail is there.
  bool has_mail(Activation& active) const noexcept { return look() != tagged(active); }

  // Owner, after has_mail: takes the new mail and calls `take(message)` for each, newest first.
  template <class Take>
  void collect(Activation& active, Take take) noexcept {
    const std::uintptr_t end = tagged(active);
    // order: acquire  sees the messages whole (M1), older ones too: each exchange in between keeps what earlier
    // ones published; pairs with append, append_always
    std::uintptr_t at = word_.exchange(end, std::memory_order_acquire);
    while (at != end) {
      Message& mail = *reinterpret_cast<Message*>(at);
      std::uintptr_t older = 0;
      for (int spin = 0;; ++spin) {
        // order: acquire  the sender is done with the message; pairs with finish/release
        older = mail.next.load(std::memory_order_acquire);
        if (older != unlinked) break;
        Atomics::wait_a_little(spin);
      }
      take(mail);
      at = older;
    }
  }

  // Owner: the actor becomes dormant. False when new mail is there.
  bool rest(Activation& active) noexcept {
    std::uintptr_t seen = tagged(active);
    // order: release  hands the actor over to the next claim/acquire; relaxed: collect looks again
    return word_.compare_exchange_strong(seen, dormant, std::memory_order_release, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uintptr_t unlinked = 4;
  Word& word_;
};

}  // namespace troupe::actor
