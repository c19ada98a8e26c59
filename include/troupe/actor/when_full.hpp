// when_full: the policy of a bounded mailbox for a message that exceeds its limit. The limit is a
// spawn option (runtime/options.hpp).
#pragma once

#include "troupe/base/language.hpp"

namespace troupe {

// The policy for a message for which a bounded mailbox has no space.
enum class when_full {
  suspend,   // `co_await to.send<&T::m>(...)` and an ask wait for space; tell() throws mailbox_full
  fail,      // tell() throws mailbox_full; the future of an ask gets it
  drop_new,  // the new message becomes a dead letter; the future of an ask gets mailbox_full
  // the new message is accepted, and the oldest waiting one becomes a dead letter; if that was an
  // ask, its future gets actor_stopped
  drop_old,
};

}  // namespace troupe
