// guarded: a message that is handled once a predicate over the actor's state holds. The library's
// own; users call ref::tell_when.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "troupe/actor/message.hpp"
#include "troupe/actor/sendable.hpp"

namespace troupe::actor {

struct cell;

struct conditional_message : message {
  conditional_message(handler acts, bool (*asks)(const conditional_message&, const void*)) noexcept
      : message(acts), holds(asks) {}

  bool (*const holds)(const conditional_message& self, const void* object);  // may throw
  // While it waits: the system's (src/actor/mailbox/guards.hpp).
  cell* of = nullptr;
  conditional_message* next_waiting = nullptr;   // younger, of the same actor
  conditional_message* newest = nullptr;         // of the oldest
  conditional_message* next_in_table = nullptr;  // of the oldest
  std::uint64_t number = 0;                      // by age
};

// In the actor's turn: it does not hold yet.
void set_aside(conditional_message& one) noexcept;

// Message: what is handled then.
template <class T, class Predicate, class Message>
struct conditional_call final : conditional_message {
  template <class Given>
  conditional_call(Given&& predicate, message* mail)
      : conditional_message(&act_on, &asks), when(std::forward<Given>(predicate)), inner(mail) {}

  static bool asks(const conditional_message& self, const void* object) {
    return static_cast<bool>(std::invoke(static_cast<const conditional_call&>(self).when,
                                         *static_cast<const T*>(object)));
  }

  static const char* act_on(message* base, void* object, message_act act) {
    if (act == message_act::describe)
      return Message::act_on(nullptr, nullptr, message_act::describe);
    auto* self = static_cast<conditional_call*>(base);
    if (act == message_act::handle) {
      bool now = false;
      try {
        now = asks(*self, object);
      } catch (...) {
        self->drop();
        throw;
      }
      if (!now) {
        set_aside(*self);
        return nullptr;
      }
      message& mail = *self->inner;
      self->free();
      return mail.act(&mail, object, message_act::handle);
    }
    self->drop();
    return nullptr;
  }

  void drop() noexcept {
    inner->act(inner, nullptr, message_act::discard);
    free();
  }
  void free() noexcept {
    std::destroy_at(this);
    memory::deallocate(this, sizeof(conditional_call));
  }

  const Predicate when;
  message* const inner;
};

// Whether a predicate can be one over T.
template <class T, class Predicate>
consteval bool fits_guard() {
  using stored = std::decay_t<Predicate>;
  constexpr bool asks = std::is_invocable_r_v<bool, const stored&, const T&>,
                 refers = !troupe::detail::sendable_v<stored>;
  constexpr bool kept = std::is_constructible_v<stored, Predicate>;
  static_assert(asks,
                "troupe: tell_when: the predicate must be callable with (const T&), as a constant, "
                "and give a bool");
  static_assert(!asks || !refers,
                "troupe: tell_when: the predicate is or holds a pointer, a view, an iterator, a "
                "lock or a reference wrapper: it would "
                "dangle or race. Give a lambda that owns what it needs");
  static_assert(!asks || refers || kept,
                "troupe: tell_when: the predicate can only be moved; give it with std::move");
  return asks && !refers && kept;
}

// Takes the message.
template <class T, class Message, class Predicate>
message* guard(Predicate&& when, message* mail) {
  using made = conditional_call<T, std::decay_t<Predicate>, Message>;
  try {
    return make_message<made>(std::forward<Predicate>(when), mail);
  } catch (...) {
    mail->act(mail, nullptr, message_act::discard);
    throw;
  }
}

}  // namespace troupe::actor
