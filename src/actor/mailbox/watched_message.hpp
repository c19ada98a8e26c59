// watched_message: a message that carries data about its sending: the trace in which it
// was sent (task/call_context.hpp), or when and by whom (actor/counting/message_counts.hpp).
#pragma once

#include <cstdint>

#include "actor/counting/message_counts.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/task/call_context.hpp"

namespace troupe::actor {

struct send_sample {
  std::uint64_t sent_ticks = 0;
  std::uint64_t stands_for = 0;  // messages; 0: this one is no sample
};

// Around the sender's own message, which it handles. Most messages are sent without it.
struct watched_message final : message {
  watched_message(message& mail, tasks::call_context* context, const send_sample& seen) noexcept;
  watched_message(const watched_message&) = delete;
  ~watched_message();
  static const char* act_on(message* base, void* object, message_act act);

  message& inner;
  tasks::call_context* const trace;  // null: sent in none, or an ask, which has its context
  const send_sample sample;
};

// The message as it is to be sent: itself, or a watched_message around it. Takes ownership of it.
// `told`: by a tell.
message& as_watched(const cell& to, message& mail, bool told) noexcept;

// The same for one that a thread sends that is no worker, in a runtime that is observed.
message& as_sent_from_outside(const cell& to, message& mail) noexcept;

// The message that the sender made.
TROUPE_INLINE const message& as_sent(const message& mail) noexcept {
  if (mail.act != &watched_message::act_on) [[likely]]
    return mail;
  return static_cast<const watched_message&>(mail).inner;
}
// The counts of its handler. No count has the function of a watched_message: for such a message the
// comparison of functions fails.
[[gnu::cold]] handler_count& find_count(thread_counts& counts, const cell_type& type,
                                        const message& mail) noexcept;
TROUPE_INLINE handler_count& count_of(thread_counts& counts, const cell_type& type,
                                      const message& mail) noexcept {
  handler_count& last = counts.recent(mail.act);
  if (last.method == mail.act && last.type == &type) [[likely]]
    return last;
  return find_count(counts, type, mail);
}

// Its name, for reports.
inline const char* name_of(const message& mail) {
  return as_sent(mail).act(nullptr, nullptr, message_act::describe);
}

}  // namespace troupe::actor
