// conditional_message: a message that its actor handles only once a predicate over the actor's
// state is true. For the library's own use; users call ref::tell_when.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "troupe/actor/method_message.hpp"
#include "troupe/actor/sendable.hpp"

namespace troupe::actor {

struct cell;

// A message with a predicate; the type-independent part.
struct conditional_message : message {
  conditional_message(handler acts, bool (*asks)(const conditional_message&, const void*)) noexcept
      : message(acts), holds(asks) {}

  // calls the predicate; may throw
  bool (*const holds)(const conditional_message& self, const void* object);
  // While the message waits, these members belong to the system's table
  // (src/actor/system/guard_table.hpp).
  cell* actor = nullptr;
  conditional_message* next_waiting = nullptr;  // the next younger message of the same actor
  conditional_message* newest = nullptr;  // the youngest of this actor; set in the oldest only
  conditional_message* next_in_table = nullptr;  // set in the oldest only
  std::uint64_t number = 0;                      // orders by age
};

// Called in the actor's turn: the predicate is not true yet; the message joins the table of waiting
// messages.
void set_aside(conditional_message& message) noexcept;

// A conditional message that, once its predicate is true, handles `mail`, a Message.
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

// Whether a Predicate may be a predicate over T; if not, a compile error names the reason.
template <class T, class Predicate>
consteval bool fits_guard() {
  using stored = std::decay_t<Predicate>;
  constexpr bool asks = std::is_invocable_r_v<bool, const stored&, const T&>,
                 refers = !troupe::detail::sendable_v<stored>;
  constexpr bool kept = std::is_constructible_v<stored, Predicate>;
  static_assert(asks,
                "troupe: tell_when: the predicate must be callable with (const T&), as a constant, "
                "and give a bool");
  static_assert(
      !asks || !refers,
      "troupe: tell_when: the predicate is or holds a pointer, a view, an iterator, a lock or a "
      "reference wrapper: it would dangle or race. Give a lambda that owns its captures");
  static_assert(!asks || refers || kept,
                "troupe: tell_when: the predicate can only be moved; give it with std::move");
  return asks && !refers && kept;
}

// Wraps the message in a conditional_message. Takes ownership of `mail`, even if it throws.
template <class T, class Message, class Predicate>
message* guard(Predicate&& when, message* mail) {
  using guarding = conditional_call<T, std::decay_t<Predicate>, Message>;
  try {
    return make_message<guarding>(std::forward<Predicate>(when), mail);
  } catch (...) {
    mail->act(mail, nullptr, message_act::discard);
    throw;
  }
}

}  // namespace troupe::actor
