// traced_message: a message that takes along the trace in which it was sent
// (task/call_context.hpp).
#pragma once

#include "troupe/actor/message.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/task/call_context.hpp"

namespace troupe::actor {

// Around the sender's own message, which it handles within the trace. Only messages of `tell` are
// wrapped: an ask has its context.
struct traced_message final : message {
  traced_message(message& mail, tasks::call_context& in) noexcept;
  traced_message(const traced_message&) = delete;
  ~traced_message() { tasks::drop_context(trace); }
  static const char* act_on(message* base, void* object, message_act act);

  message& inner;
  tasks::call_context& trace;
};

// The message within a traced_message that holds the trace of the calling thread's call. Returns
// the message itself if the call is in no trace, or memory has run out.
message& in_trace_of_sender(message& mail) noexcept;

// The message that the sender made.
TROUPE_INLINE const message& as_sent(const message& mail) noexcept {
  if (mail.act != &traced_message::act_on) [[likely]]
    return mail;
  return static_cast<const traced_message&>(mail).inner;
}
// Its name, for reports.
inline const char* name_of(const message& mail) {
  return as_sent(mail).act(nullptr, nullptr, message_act::describe);
}

}  // namespace troupe::actor
