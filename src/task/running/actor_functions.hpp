// actor_functions: the calls of the task layer to the actors above it, without their type.
#pragma once

#include <exception>
#include <string>

#include "troupe/sched/message.hpp"

namespace troupe::tasks {

struct ask_link;
struct suspension;

// `actor` is a cell. The actor layer has the one instance (src/actor/turn/async_calls.cpp).
struct actor_functions {
  void (*add_ref)(void* actor) noexcept;
  void (*drop_ref)(void* actor) noexcept;
  // Sends an ordinary message, which holds the caller's ref to the actor.
  void (*send)(void* actor, sched::message& mail);
  // In its turn: whether the object is the actor's object or lies inside it.
  bool (*contains)(void* actor, const void* object) noexcept;
  // In a turn: reports a failure of its actor.
  void (*report)(sched::message::handler describes, std::exception_ptr failure) noexcept;
  // Throws deadlock if the async call that asked, and that is about to wait, would wait for itself.
  // Follows only a few links.
  void (*throw_if_deadlock)(const ask_link& ask);
  // The text of the exception that the refused wait throws.
  std::string (*take_refusal)(const suspension& refused);
};

}  // namespace troupe::tasks
