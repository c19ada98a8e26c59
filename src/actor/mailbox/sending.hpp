// sending: a message's way into a mailbox whose owner may be anybody, and the actor's to whoever
// wakes it.
#pragma once

#include "actor/mailbox/mailbox.hpp"
#include "base/invariant.hpp"

namespace troupe::actor {

// What sending asks of its side of the actor. Once the message is in, the actor may handle it and
// be gone: so nothing here may touch the actor any more by then, unless it has just claimed it.
// Urgent mail is the runtime's own: it is tried until it is in, for it must not fail and need not
// be wait-free (P4).
//   void refuse(Message&)           the actor is closed, or inactive at the end: the message is a
//   dead letter bool closing()                  a hint: inactive actors are not woken any more bool
//   wakes_always()             ordinary mail wakes it, too, when it is parked bool enter_gate(),
//   void leave()      enter_gate() is false when they are not; the end waits for those who are in
//   Activation& activate(Message&)  with the message in its list; may throw, and then frees the
//   message void put_away(Activation&)      what activate made and nobody needs; the message stays
//   void wake(Activation&)          the actor is active with it, and in no queue: it wants to run;
//   must not throw void wake_hint(seen)                the message went behind `seen`
template <int Retries = 16, class Mailbox, class Message, class Side>
void send_from_afar(Mailbox box, Message& mail, bool urgent, Side& side) {
  for (int tries = 0; tries < Retries || urgent; ++tries) {
    const auto seen = box.look();
    if (seen == Mailbox::closed || (seen == Mailbox::inactive && side.closing()))
      return side.refuse(mail);
    const bool wakes = Mailbox::is_parked(seen) && (urgent || side.wakes_always());
    if (seen != Mailbox::inactive && !wakes) {
      if (box.append(seen, mail, urgent, wakes)) return side.wake_hint(seen);
      continue;
    }
    // The actor is to be woken, if it is not too late for that.
    auto* made = seen == Mailbox::inactive ? &side.activate(mail) : nullptr;
    const bool open = side.enter_gate();
    const bool ours =
        open && (made != nullptr ? box.claim(*made) : box.append(seen, mail, urgent, wakes));
    if (ours) side.wake(made != nullptr ? *made : Mailbox::activation_under(seen));
    side.leave();
    if (ours) return;
    if (made != nullptr) side.put_away(*made);
    if (!open) return side.refuse(mail);
  }
  // Others were faster each time: the exchange cannot fail. The activation is made first, since
  // nothing may throw behind it.
  auto& spare = side.activate(mail);
  if (!side.enter_gate()) {
    side.leave();
    side.put_away(spare);
    return side.refuse(mail);
  }
  // Not in its list: the mailbox has it now, and the owner may have handled it before the next
  // line.
  spare.clear();
  const auto seen = box.append_always(mail);
  TROUPE_REQUIRE(seen != Mailbox::closed, "M4");
  if (seen == Mailbox::inactive) {
    box.finish(mail, Mailbox::tagged(spare));
    side.wake(spare);
  } else {
    side.put_away(spare);
    // A parked actor wakes for any mail this time, and parks again.
    if (Mailbox::is_parked(seen)) {
      side.wake(Mailbox::activation_under(seen));
    } else {
      side.wake_hint(seen);
    }
  }
  side.leave();
}

}  // namespace troupe::actor
