#include "actor/mailbox/watched_message.hpp"

#include <new>

#include "actor/mailbox/own_mail.hpp"
#include "actor/system/actor_system.hpp"
#include "observe/ticks.hpp"
#include "task/running/running.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::actor {
namespace {

tasks::call_context* trace_of_sender() noexcept {
  const tasks::call_context* const sender = tasks::current_context();
  return sender == nullptr ? nullptr : tasks::trace_of(*sender);
}

// Counts the edge of a message that is a sample.
send_sample sample_of(const cell& receiver, const message& mail,
                      std::uint64_t stands_for) noexcept {
  if (stands_for == 0) return {};
  thread_counts* const counts = actor_system::of(receiver).counts_here();
  if (counts == nullptr) return {};
  const send_sample taken{observe::now_ticks(), stands_for};
  const cell* const sender = current_cell();
  counts->of_edge(sender == nullptr ? nullptr : sender->type, *receiver.type, mail.act)
      .messages.add(taken.stands_for);
  return taken;
}

// The calling thread's actor begins to handle this sampled message: counts how long it waited.
void note_wait(const watched_message& mail) noexcept {
  const cell& actor = *current_cell();
  thread_counts* const counts = actor_system::of(actor).counts_here();
  const std::uint64_t now = observe::now_ticks();
  if (counts == nullptr || now < mail.sample.sent_ticks) return;
  counts->of(*actor.type, mail.inner.act)
      .add_wait(now - mail.sample.sent_ticks, mail.sample.stands_for);
}

}  // namespace

watched_message::watched_message(message& mail, tasks::call_context* context,
                                 const send_sample& seen) noexcept
    : message(&act_on), inner(mail), trace(context), sample(seen) {
  if (trace != nullptr) tasks::hold_context(*trace);
}
watched_message::~watched_message() {
  if (trace != nullptr) tasks::drop_context(*trace);
}

const char* watched_message::act_on(message* base, void* object, message_act act) {
  if (act == message_act::describe) return "a watched message";
  const message_guard<watched_message> guard{static_cast<watched_message*>(base)};
  message& mail = guard.self->inner;
  if (act != message_act::handle) return mail.act(&mail, object, act);
  if (guard.self->sample.stands_for != 0) note_wait(*guard.self);
  // order: relaxed  as in the turn: the method for which a failure is reported
  tasks::running_here().method.store(mail.act, std::memory_order_relaxed);
  const tasks::inside_context entered(guard.self->trace);
  return mail.act(&mail, object, act);
}

TROUPE_NOINLINE message& as_watched(const cell& to, message& mail, bool told) noexcept {
  tasks::call_context* const trace =
      told && observe::is_watched(observe::watched::trace_contexts) ? trace_of_sender() : nullptr;
  if (!is_counted(mail)) return mail;
  const send_sample sample = sample_of(to, mail, observe::sampled_sends::take());
  if (trace == nullptr && sample.stands_for == 0) return mail;
  try {
    return *make_message<watched_message>(mail, trace, sample);
  } catch (const std::bad_alloc&) {
    return mail;
  }
}

TROUPE_NOINLINE handler_count& find_count(thread_counts& counts, const cell_type& type,
                                          const message& mail) noexcept {
  return counts.of(type, as_sent(mail).act);
}

// Handlers of threads that are no workers also send samples while they are samples themselves.
TROUPE_NOINLINE message& as_sent_from_outside(const cell& to, message& mail) noexcept {
  if (current_cell() != nullptr || &as_sent(mail) != &mail || !is_counted(mail)) return mail;
  const send_sample sample = sample_of(to, mail, observe::send_sampler::take());
  if (sample.stands_for == 0) return mail;
  try {
    return *make_message<watched_message>(mail, nullptr, sample);
  } catch (const std::bad_alloc&) {
    return mail;
  }
}

}  // namespace troupe::actor
