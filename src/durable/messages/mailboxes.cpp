#include "durable/messages/mailboxes.hpp"

#include <string>
#include <utility>

#include "base/invariant.hpp"

namespace troupe::durable::parts {

activation& mailboxes::actor_of(const kind_table& kind, const std::string& key) {
  if (activation* const known = actors_.find(kind, key); known != nullptr) return *known;
  actors_.make_room(1, batches_.stored());
  return actors_.add(kind, key, shards_.of({kind.name, key}), core_.now_ns());
}

void mailboxes::arrive(const record_ref& message) {
  batches_.arrive(message);
  core_.need_commit();
}

void mailboxes::take_in(const record_ref& message) {
  message->row.order = inbox_.next_order();
  ++numbers_.counts.messages;
  activation& actor = actor_of(*message->kind, message->row.to.key);
  const bool nested = message->row.from == origin::nested;
  const bool is_post = message->row.from == origin::post;
  const bool waits_outside = !nested && (inbox_.has_backlog() || (actor.refused && is_post));
  if (waits_outside || is_post) arrive(message);
  waits_outside ? leave_out(message) : enqueue(message, actor);
}

void mailboxes::leave_out(const record_ref& message) {
  if (message->answer == nullptr && !message->row.named) return;
  inbox_.set_left_out(*message, true);
  inbox_.count(*message);
  known_.put(message);
}

void mailboxes::enqueue(const record_ref& message, activation& actor) {
  if (!actor.runs) core_.need_runner();
  actor.waits.push_back(message);
  inbox_.set_left_out(*message, false);
  TROUPE_INVARIANT(message->is(message_place::here), "P1");
  inbox_.count(*message);
  if (!actor.runs) actors_.begin_run(actor);
}

}  // namespace troupe::durable::parts
