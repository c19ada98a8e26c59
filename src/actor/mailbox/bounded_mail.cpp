#include "actor/mailbox/bounded_mail.hpp"

#include <new>
#include <utility>

#include "actor/mailbox/dead_letters.hpp"
#include "actor/mailbox/own_mail.hpp"
#include "actor/state/optional_state.hpp"
#include "troupe/actor/bounded.hpp"
#include "troupe/actor/call.hpp"
#include "troupe/base/error.hpp"

namespace troupe::actor {

permit::permit(cell& to) noexcept : to_(&to) { add_ref(to); }
permit::~permit() {
  if (to_ == nullptr) return;
  if (!used_) bound_of(*to_)->leave();
  drop_ref(*to_);
}

void wait_for_permit(cell& to, promise<permit>&& waiter) {
  link_main_lane(*tasks::future_access::state(waiter)->asked, to);
  bound_of(to)->wait_for(std::move(waiter), to);
}

bool ask_waits_for_room(cell& to) noexcept { return bound_of(to)->policy() == when_full::suspend; }

void deliver_when_room(cell& to, message& ask, const tasks::shared_state& answer) {
  bound_of(to)->wait_for(ask, answer, to);
}

const char* drop_by_message(message* mail, void*, message_act act) {
  if (act == message_act::describe) return "drop_old";
  message_guard<message> guard{mail};
  if (act == message_act::handle) bound_of(*current_cell())->called();
  return nullptr;
}

void drop_old(actor_system& system, activation& active) noexcept {
  cell& actor = *active.actor;
  mail_bound& bound = *bound_of(actor);
  mail_link kept{0};
  mail_list older{0, &kept};  // messages that do not count stay, in front of the rest
  while (const std::uintptr_t first = active.first()) {
    if (activation::is_urgent(first)) break;
    message& mail = *activation::as_message(first);
    const bool counts = is_counted(mail);
    if (counts && !bound.too_many()) break;
    active.pop_ordinary(first);
    if (system.counts != nullptr) active.length.subtract(1);
    if (counts) {
      make_dead_letter(system, actor, mail);
    } else {
      // order: relaxed  within the owner's list
      older.end->store(first, std::memory_order_relaxed);
      older.end = &mail.next;
    }
  }
  older.end->store(0, std::memory_order_relaxed);       // order: relaxed  as above
  older.oldest = kept.load(std::memory_order_relaxed);  // order: relaxed  as above
  if (older.oldest != 0) active.put_back(older.oldest, older);
}

bool take_permit(cell& to) noexcept {
  const mail_bound::taken has = bound_of(to)->take();
  if (has == mail_bound::taken::overflows) [[unlikely]] {
    try {
      deliver_urgent(to, *make_message<message>(&drop_by_message));
    } catch (const std::bad_alloc&) {
      bound_of(to)->called();
    }
  }
  return has != mail_bound::taken::no;
}

void refuse_full(cell& to, message& mail) {
  if (bound_of(to)->policy() == when_full::drop_new)
    return make_uncounted_dead_letter(actor_system::of(to), to, mail);
  mail.act(&mail, nullptr, message_act::discard);
  std::rethrow_exception(full_error(to));
}

std::exception_ptr full_error(const cell& actor) {
  return std::make_exception_ptr(
      mailbox_full(std::string("troupe: the mailbox of ") + actor.type->name +
                   " is full: send less, co_await send(), or raise spawn_options::mailbox"));
}

}  // namespace troupe::actor
