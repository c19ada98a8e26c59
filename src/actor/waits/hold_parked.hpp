// hold_parked: how a thread that looks at a parked actor takes it over for an instant
// (docs/protocols/suspended_turns.md#being-looked-at). A template, so that
// tests/models/sched/parking.cpp checks this very source.
#pragma once

namespace troupe::actor {

inline constexpr int hold_tries_max = 16;

// Any thread. Calls `look` with the activation of a parked actor, which no thread runs meanwhile.
// The cost does not depend on how much mail waits there: `parked_as` gives the activation once the
// actor is held. If mail of any kind came meanwhile, `wake` is called with the activation: the
// caller has cleared the parked bit for good, and must therefore wake the actor (M5). Returns false
// when the actor could not be held, since mail came at each try; true even when the actor is not
// parked any longer.
template <class Mailbox, class ParkedAs, class Look, class Wake>
bool hold_parked(Mailbox box, ParkedAs parked_as, Look&& look, Wake wake) {
  for (int tries = 0; tries < hold_tries_max; ++tries) {
    const auto seen = box.read();
    if (!Mailbox::is_parked(seen)) return true;
    if (!box.seize(seen)) continue;
    auto& active = parked_as();
    look(active);
    if (!box.let_go(seen)) wake(active);
    return true;
  }
  return false;
}

}  // namespace troupe::actor
