#include "troupe/sync/channel.hpp"

#include <new>

namespace troupe::sync {

void throw_not_sent(send_end why) {
  if (why == send_end::no_memory) throw std::bad_alloc();
  throw channel_closed("troupe: channel: it is closed; the value was not sent");
}

}  // namespace troupe::sync
