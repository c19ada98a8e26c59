#include "actor/turn/turn_state.hpp"

namespace troupe::actor {

constinit thread_local turn_state turn_of_thread;

}  // namespace troupe::actor
