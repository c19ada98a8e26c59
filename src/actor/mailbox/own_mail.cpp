#include "actor/mailbox/own_mail.hpp"

#include "troupe/actor/consume.hpp"
#include "troupe/actor/ref.hpp"

namespace troupe::actor {

bool is_ours(const message& mail) noexcept {
  return mail.act == &unreferenced_by_message || mail.act == &stop_by_message ||
         mail.act == &consume_by_message || mail.act == &drop_by_message;
}

}  // namespace troupe::actor
