// sending: a message's way into a mailbox whose owner may be anybody, and the actor's to whoever wakes it.
#pragma once

#include "actor/mailbox.hpp"
#include "base/invariant.hpp"

namespace troupe::actor {

// What sending asks of its side of the actor. Once the message is in, the actor may handle it and be gone: so
// nothing here may touch the actor any more by then, unless it has just claimed it.
//   void refuse(Message&)           the actor is closed, or dormant at the end: the message is a dead letter
//   bool closing()                  a hint: dormant actors are not woken any more
//   bool visit(), void leave()      visit() is false when they are not; the end waits for those who are in
//   Activation& activate(Message&)  with the message in its list; may throw, and then frees the message
//   void put_away(Activation&)      what activate made and nobody needs; the message stays
//   void wake(Activation&)          the actor is active with it now: it wants to run; must not throw
//   void nudge(seen)                the message went behind `seen`
template <int Retries = 16, class Mailbox, class Message, class Side>
void send_from_afar(Mailbox box, Message& mail, Side& side) {
  for (int tries = 0; tries < Retries; ++tries) {
    const auto seen = box.look();
    if (seen == Mailbox::closed || (seen == Mailbox::dormant && side.closing())) return side.refuse(mail);
    if (seen != Mailbox::dormant) {
      if (box.append(seen, mail)) return side.nudge(seen);
      continue;
    }
    auto& made = side.activate(mail);
    const bool open = side.visit();
    const bool claimed = open && box.claim(made);
    if (claimed) side.wake(made);
    side.leave();
    if (claimed) return;
    side.put_away(made);
    if (!open) return side.refuse(mail);
  }
  // Others were faster each time: the exchange cannot fail. The activation is made first, since nothing may
  // throw behind it.
  auto& spare = side.activate(mail);
  if (!side.visit()) {
    side.leave();
    side.put_away(spare);
    return side.refuse(mail);
  }
  // Not in its list: the mailbox has it now, and the owner may have handled it before the next line.
  spare.clear();
  const auto seen = box.append_always(mail);
  TROUPE_REQUIRE(seen != Mailbox::closed, "M4");
  if (seen != Mailbox::dormant) {
    side.put_away(spare);
    side.nudge(seen);
  } else {
    box.finish(mail, Mailbox::tagged(spare));
    side.wake(spare);
  }
  side.leave();
}

}  // namespace troupe::actor
