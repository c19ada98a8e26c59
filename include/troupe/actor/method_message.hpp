// method_message: one call and its arguments, while it waits for its actor.
//
// A message is a node from the block pool. It stores the arguments with the method's own parameter
// types. Rejected: type ids and RTTI, which the handler's address replaces. An argument that can
// only be moved is never copied.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "troupe/base/type_name.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/sched/message.hpp"

namespace troupe::actor {

using sched::message;
using sched::message_act;

// Frees a message however its handler ends, by an exception as well.
template <class Message>
struct message_guard {
  Message* self;
  ~message_guard() {
    std::destroy_at(self);
    memory::deallocate(self, sizeof(Message));
  }
};

template <class T, auto Method, class... Params>
struct method_message final : message {
  template <class... Args>
  explicit method_message(Args&&... values)
      : message(&act_on), arguments(std::forward<Args>(values)...) {}

  static const char* act_on(message* base, void* object, message_act act) {
    if (act == message_act::describe) [[unlikely]]
      return base::value_name<Method>();
    message_guard<method_message> guard{static_cast<method_message*>(base)};
    if (act == message_act::handle) [[likely]] {
      std::apply(
          [object](auto&... values) {
            static_cast<void>(
                std::invoke(Method, *static_cast<T*>(object), static_cast<Params&&>(values)...));
          },
          guard.self->arguments);
    }
    return nullptr;
  }

  std::tuple<std::remove_cvref_t<Params>...> arguments;
};

template <class T, class Callable>
struct callable_message final : message {
  template <class Value>
  explicit callable_message(Value&& value)
      : message(&act_on), callable(std::forward<Value>(value)) {}

  static const char* act_on(message* base, void* object, message_act act) {
    if (act == message_act::describe) return base::type_name<Callable>();
    message_guard<callable_message> guard{static_cast<callable_message*>(base)};
    if (act == message_act::handle)
      static_cast<void>(std::invoke(std::move(guard.self->callable), *static_cast<T*>(object)));
    return nullptr;
  }

  Callable callable;
};

// A message for a part of the actor's object that begins `offset` bytes behind the object's
// beginning.
bool current_is_reentrant() noexcept;
template <class Message>
struct part_message final : message {
  part_message(message* mail, std::size_t distance) noexcept
      : message(&act_on), inner(mail), offset(distance) {}

  static const char* act_on(message* base, void* object, message_act act) {
    if (act == message_act::describe)
      return Message::act_on(nullptr, nullptr, message_act::describe);
    auto* self = static_cast<part_message*>(base);
    message* const mail = self->inner;
    const std::size_t distance = self->offset;
    std::destroy_at(self);
    memory::deallocate(self, sizeof(part_message));
    if (act != message_act::handle) return mail->act(mail, nullptr, act);
    void* const part = static_cast<std::byte*>(object) + distance;
    if constexpr (requires(Message & candidate) { candidate.handle(part, true); }) {
      return static_cast<Message*>(mail)->handle(part, current_is_reentrant());
    } else {
      return mail->act(mail, part, act);
    }
  }

  message* const inner;
  const std::size_t offset;
};

// Never inlined: a coroutine that sends must not keep the address of the pool's thread-local across
// a suspension, after which it may run on another thread.
template <class Message, class... Args>
TROUPE_NOINLINE Message* make_message(Args&&... args) {
  static_assert(
      alignof(Message) <= alignof(std::max_align_t),
      "troupe: over-aligned arguments cannot be sent by value; send a std::unique_ptr to them");
  void* block = memory::allocate(sizeof(Message));
  if constexpr (std::is_nothrow_constructible_v<Message, Args...>) {
    return ::new (block) Message(std::forward<Args>(args)...);
  } else {
    try {
      return ::new (block) Message(std::forward<Args>(args)...);
    } catch (...) {
      memory::deallocate(block, sizeof(Message));
      throw;
    }
  }
}

}  // namespace troupe::actor
