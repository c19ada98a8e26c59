// when_full: what a bounded mailbox does with one message too many (runtime/options.hpp has the
// limit).
#pragma once

namespace troupe {

enum class when_full {
  suspend,   // `co_await to.send<&T::m>(...)` and an ask wait for room; tell() throws mailbox_full
  fail,      // tell() throws mailbox_full, an ask's future gets it
  drop_new,  // it becomes a dead letter; an ask's future gets mailbox_full
  // it comes in, and the oldest that waits becomes a dead letter; of an ask: its future gets
  // actor_stopped
  drop_old,
};

}  // namespace troupe
