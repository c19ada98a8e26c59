// spawn_task: a task on its own, as an actor without an object: its mail is what it waits for.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "troupe/actor/call.hpp"
#include "troupe/actor/spawn.hpp"

namespace troupe::actor {

// Drops the ref with which the actor was made; it goes when its turn is over.
void end_spawned(cell& of) noexcept;

// A failure that the last holder of the result leaves untaken. Any thread.
void report_untaken(cell& of, message::handler method, std::exception_ptr what) noexcept;

template <class T>
struct spawned_state final : tasks::state_of<T> {
  spawned_state(cell& at, message::handler act) noexcept : tasks::state_of<T>(&free_this), of(at), method(act) { add_ref(at); }
  static void free_this(tasks::shared_state& self) noexcept {
    auto& typed = static_cast<spawned_state&>(self);
    cell& of = typed.of;
    if (auto what = typed.result.failure(); what != nullptr && !typed.discarded) report_untaken(of, typed.method, std::move(what));
    typed.~spawned_state();
    memory::deallocate(&typed, sizeof(spawned_state));
    drop_ref(of);
  }
  cell& of;
  message::handler method;
  bool discarded = false;  // by a stop: that is no failure
};

template <class T>
struct spawned_task {
  struct start final : message {
    explicit start(spawned_task& owner) noexcept : message(&act_on), of(owner) {}
    spawned_task& of;
  };

  spawned_task(cell& at, task<T> given)
      : mail(*this), here(at), running(std::move(given)), flow(mail),
        promised(tasks::future_access::promise_of<T>(*::new (memory::allocate(sizeof(spawned_state<T>)))
                                                         spawned_state<T>(at, &act_on))) {}

  static const char* act_on(message* base, void*, message_act act) {
    if (act == message_act::describe) return base::type_name<task<T>>();
    spawned_task& self = static_cast<start*>(base)->of;
    if (act == message_act::handle) {
      begin(self.flow, tasks::task_access::root(*self.running));
    } else if (act == message_act::discard) {
      self.running.reset();
      static_cast<spawned_state<T>*>(tasks::future_access::state(self.promised))->discarded = true;
      self.promised.set_exception(stopped_error(&act_on));
      end_spawned(self.here);
    } else {
      self.finish();
    }
    return nullptr;
  }

  void finish() noexcept {
    auto result = std::move(tasks::task_access::result(*running));
    running.reset();
    if (auto what = result.failure()) {
      promised.set_exception(std::move(what));
    } else if constexpr (std::is_void_v<T>) {
      promised.set_value();
    } else {
      promised.set_value(result.take());
    }
    end_spawned(here);
  }

  start mail;
  cell& here;
  std::optional<task<T>> running;
  tasks::flow flow;
  promise<T> promised;
};

template <class T>
inline constexpr cell_type spawned_type_of{sizeof(spawned_task<T>), alignof(spawned_task<T>),
                                           [](void* object) noexcept { std::destroy_at(static_cast<spawned_task<T>*>(object)); },
                                           "a spawned task", false};

template <class T>
future<T> spawn_task(const placement& where, task<T> given) {
  cell& made = make_cell(where, spawned_type_of<T>);
  auto& object = *::new (made.object()) spawned_task<T>(made, std::move(given));
  future<T> later = object.promised.get_future();
  made.flags |= cell::born;
  deliver(made, object.mail);
  return later;
}

}  // namespace troupe::actor
