// Taking an actor's object out of it (system/consumer_table.hpp).
#include <string>
#include <utility>

#include "actor/lifetime/ending.hpp"
#include "actor/system/actor_system.hpp"
#include "actor/turn/features.hpp"
#include "actor/turn/turn_state.hpp"
#include "troupe/actor/consume.hpp"
#include "troupe/base/error.hpp"

namespace troupe::actor {
namespace {

std::exception_ptr ended_error(const consume_request& request) noexcept try {
  return std::make_exception_ptr(
      actor_stopped(std::string("troupe: consume: the actor has ended: ") +
                    request.which(nullptr, nullptr, message_act::describe)));
} catch (const std::bad_alloc&) {
  return std::current_exception();
}

// Whether other mail must be handled first: in this batch, in the list or in the word.
bool mail_is_left(const consume_request& last, const activation& active) noexcept {
  return activation::after(last) != 0 || !active.empty() ||
         mailbox(active.actor->word).has_mail(const_cast<activation&>(active));
}

// The actor is quiet: gives its object away, and the actor has ended.
void give_object(cell& actor, consume_request& request) noexcept {
  const bool adopted = is_adopted(actor);
  std::exception_ptr why;
  try {
    if (heap_of(actor) != nullptr) {
      throw usage_error(std::string("troupe: consume: ") + actor.type->name +
                        " has a context of its own (spawn_options::context), which would go before "
                        "the object that is taken out of it");
    }
    request.take(object_of(actor), adopted);
  } catch (...) {
    why = std::current_exception();
  }
  actor_system::of(actor).consumers.end(actor, request);
  if (why != nullptr) return request.fail(std::move(why));
  // nothing is left to destroy
  if (adopted) actor.flags &= static_cast<std::uint8_t>(~cell::constructed);
  end_object(actor, ended(ended::why::consumed));
  request.give();
}

void consider(consume_request& request) noexcept {
  activation& active = active_here();
  cell& actor = *active.actor;
  actor_system& system = actor_system::of(actor);
  if ((actor.flags & (cell::stopped | cell::ends_soon)) != 0 || system.discarding() ||
      request.given_up()) {
    system.consumers.end(actor, request);
    return request.fail(ended_error(request));
  }
  if (consume_request* other = system.consumers.begin(actor, request)) {
    if (!other->given_up()) {
      return request.fail(std::make_exception_ptr(
          usage_error("troupe: consume: another caller is consuming this actor already")));
    }
    system.consumers.end(actor, *other);
    // if not, that request is still in the mailbox, and fails when it is handled
    if (other->waits_outside) other->fail(ended_error(*other));
    system.consumers.begin(actor, request);
  }
  if (mail_is_left(request, active)) return active.append(request);
  request.waits_outside = suspends(active) || (actor.flags & cell::guards) != 0;
  if (!request.waits_outside) give_object(actor, request);
}

}  // namespace

void call_consumer_in(cell& actor) noexcept {
  if (consume_request* request = actor_system::of(actor).consumers.call_in(actor))
    active_here().append(*request);
}

void refuse_consumer(cell& actor) noexcept {
  actor_system& system = actor_system::of(actor);
  consume_request* request = system.consumers.call_in(actor);
  if (request == nullptr) return;
  system.consumers.end(actor, *request);
  request->fail(ended_error(*request));
}

std::exception_ptr self_consumed_error(message::handler which) {
  return std::make_exception_ptr(
      deadlock(std::string("troupe: consume: an actor cannot wait for its own object, since its "
                           "handler runs until then: ") +
               which(nullptr, nullptr, message_act::describe)));
}

std::exception_ptr base_consumed_error(const cell& actor, const char* base) {
  return std::make_exception_ptr(usage_error(std::string("troupe: consume: this ref is of ") +
                                             base + ", a base of the actor's class " +
                                             actor.type->name +
                                             ", whose object would be cut; consume it by a ref of "
                                             "its own class, or activate() it and give the "
                                             "base a virtual destructor"));
}

const char* consume_by_message(message* base, void*, message_act act) {
  if (act == message_act::describe) return "consume";
  auto& self = *static_cast<consume_request*>(base);
  if (act == message_act::handle) {
    consider(self);
  } else {
    if (self.actor != nullptr) actor_system::of(*self.actor).consumers.end(*self.actor, self);
    self.fail(ended_error(self));
  }
  return nullptr;
}

}  // namespace troupe::actor
