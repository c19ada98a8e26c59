// holding: how whoever looks at a parked actor takes it over for an instant
// (docs/protocols/suspended_turns.md#being-looked-at). A template, so that
// tests/models/sched/parking.cpp checks this very source.
#pragma once

namespace troupe::actor {

inline constexpr int hold_tries_max = 16;

// Any thread. Calls `look` with the activation of a parked actor, which nobody runs meanwhile. The
// cost does not depend on how much mail waits there: `parked_as` gives the activation, once the
// actor is held. `wake` gets it when mail came in between, of any kind: then the caller has taken
// the parked state away for good (M5). False when mail came at each try, so that the actor could
// not be held; true also when it is not parked any more.
template <class Mailbox, class ParkedAs, class Look, class Wake>
bool hold_parked(Mailbox box, ParkedAs parked_as, Look&& look, Wake wake) {
  for (int tries = 0; tries < hold_tries_max; ++tries) {
    const auto seen = box.look();
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
