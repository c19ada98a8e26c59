// The functions by which refs and activations of the public headers reach the parts of their node.
#include <cxxabi.h>

#include <memory>
#include <mutex>
#include <string>
#include <typeinfo>
#include <utility>

#include "base/invariant.hpp"
#include "cluster/node/node_state.hpp"
#include "durable/core/exception_text.hpp"

namespace troupe::cluster::parts {

node_core& core_of(node_state& node) noexcept { return node.core(); }
runtime& runtime_of(const node_state& on) noexcept { return on.core().on(); }
const durable::store& store_of(const node_state& on) { return on.durable().store(); }

// ---- the actors that are here ----

found_actor find_here(const state_ref& on, const address& target, bool behind) {
  return on->actors().find(target, behind);
}
shard_lock lock_shard(activation& actor) { return actor.node->actors().lock(actor.address.shard); }
void remove(activation& actor) noexcept { actor.node->actors().remove(actor); }

bool is_owned(const activation& actor) noexcept {
  TROUPE_INVARIANT(actor.fence != 0 || actor.address.shard == own_shard, "inbound.N3");
  return actor.node->core().owns(actor.address.shard, actor.fence);
}
void check_owned(const activation& actor) {
  if (!is_owned(actor)) [[unlikely]]
    throw error(failure::unreachable,
                "troupe: cluster: this node lost the actor before its handler began");
}
void check_may_answer(const activation& actor) {
  if (!is_owned(actor)) [[unlikely]]
    throw answer_too_late();
}

// ---- messages to other nodes ----

void send_away(const state_ref& on, address target, const method_entry& method, bytes arguments,
               std::unique_ptr<answer_to> answer) {
  auto message = std::make_unique<outgoing>();
  message->target = std::move(target);
  message->method = &method;
  message->arguments = std::move(arguments);
  message->answer = std::move(answer);
  on->out().send(std::move(message));
}

bytes begin_tell(const address& target, const method_entry& method) {
  request_frame request;
  request.signature = method.signature;
  request.kind = target.kind->name;
  request.key = target.key;
  request.method = method.name;
  const std::string trace = write_trace();
  request.trace = trace;
  return write_head(request);
}

void tell_away(const state_ref& on, const address& target, const bytes& frame) {
  on->out().tell(target.shard, as_text(frame));
}

// ---- classes and exceptions ----

const class_table& table_of(const node_state& on, const void* tag, const char* name) {
  const class_table* const found = on.core().find_kind(tag);
  if (found == nullptr)
    throw usage_error(std::string("troupe: cluster: the node was not given the class ") + name);
  return *found;
}
const class_table& table_of(const node_state& on, std::string_view name) {
  const class_table* const found = on.core().find_kind(name);
  if (found == nullptr)
    durable::parts::refuse("the ref is of a class that this node was not given");
  return *found;
}

std::exception_ptr travelling(const node_state& on) noexcept {
  const std::exception_ptr thrown = std::current_exception();
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr || *type == typeid(remote_exception) || *type == typeid(answer_too_late) ||
      *type == typeid(timed_out) || *type == typeid(cancelled) || on.core().find_exception(*type))
    return thrown;
  try {
    const durable::handler_failed known = durable::parts::failure_of(thrown);
    return std::make_exception_ptr(remote_exception(known.type(), known.what()));
  } catch (...) {
    return std::current_exception();
  }
}

// ---- topics ----

task<> publish(state_ref on, std::string topic, std::string frame) {
  auto publishes = on->topics().publish(std::move(topic), std::move(frame));
  co_await std::move(publishes);
}
task<> subscribe(state_ref on, std::string topic, std::string group,
                 std::shared_ptr<topic_reader> reader) {
  auto subscribes = on->topics().subscribe(std::move(topic), std::move(group), std::move(reader));
  co_await std::move(subscribes);
}
void unsubscribe(const state_ref& on, const std::shared_ptr<topic_reader>& reader) noexcept {
  on->topics().unsubscribe(reader);
}

}  // namespace troupe::cluster::parts
