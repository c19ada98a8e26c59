// dead_letters: messages that their actor will not handle.
#pragma once

#include "actor/system/actor_system.hpp"
#include "troupe/actor/method_message.hpp"

namespace troupe::actor {

// Makes the message a dead letter. Only threads of the runtime may have it observed: on other
// threads the runtime may end meanwhile.
void make_dead_letter(actor_system& system, cell& actor, message& mail,
                      bool observed = true) noexcept;
// The same for a message that never came into its mailbox, or has left it.
void make_uncounted_dead_letter(actor_system& system, const cell& actor, message& mail,
                                bool observed = true) noexcept;

}  // namespace troupe::actor
