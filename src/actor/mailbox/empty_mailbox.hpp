// empty_mailbox: the steps for an actor whose list of mail is empty
// (docs/protocols/unreferenced.md). A template, so that the model runs this very source.
#pragma once

#include <cstdint>

#include "troupe/base/platform.hpp"

namespace troupe::actor {

enum class step_without_mail : std::uint8_t {
  collects,  // the mailbox word has mail: collect it
  rests,
  // no ref to the actor is left: destroy its object, then ask again, since the destructor may send
  // to the actor or give its address away
  ends,
  goes,  // the object is destroyed as well: free the actor
};

// In the actor's turn, with an empty list.
template <class Refs, class Mailbox, class Activation>
TROUPE_INLINE step_without_mail next_step_without_mail(Refs& refs, Mailbox box, Activation& active,
                                                       bool stopped) noexcept {
  // In this order: the check that follows sees the messages that a former holder sent before it
  // dropped its ref.
  if (active.unreferenced() && refs.revive()) active.set_unreferenced(false);
  if (box.has_mail(active)) return step_without_mail::collects;
  if (!active.unreferenced()) return step_without_mail::rests;
  return stopped ? step_without_mail::goes : step_without_mail::ends;
}

}  // namespace troupe::actor
