// spawn_task: a task on its own, as an actor without an object: its mail is what it waits for.
#pragma once

#include <exception>
#include <memory>
#include <utility>

#include "troupe/actor/call.hpp"
#include "troupe/actor/spawn.hpp"

namespace troupe::actor {

// In its turn: drops the ref with which the actor was made, so that it goes when the turn is over.
void end_spawned(cell& of) noexcept;

// The first message of an actor that nobody else knows yet, or ever will.
void start_spawned(cell& made, message& first);

// A failure that the last holder of the result leaves untaken. Any thread.
void report_untaken(cell& of, message::handler method, std::exception_ptr what) noexcept;

template <class T>
struct spawned_state final : tasks::state_of<T> {
  spawned_state() noexcept : tasks::state_of<T>(&free_this) {}
  static spawned_state& make() { return *::new (memory::allocate(sizeof(spawned_state))) spawned_state; }
  static void free_this(tasks::shared_state& self) noexcept {
    auto& typed = static_cast<spawned_state&>(self);
    cell* const failed = typed.failed;
    if (failed != nullptr) {
      if (auto what = typed.result.failure()) report_untaken(*failed, typed.method, std::move(what));
    }
    typed.~spawned_state();
    memory::deallocate(&typed, sizeof(spawned_state));
    if (failed != nullptr) drop_ref(*failed);
  }
  void has_failed(cell& of, message::handler in) noexcept {
    add_ref(of);
    failed = &of;
    method = in;
  }
  cell* failed = nullptr;  // the task's, which has failed
  message::handler method = nullptr;
};

template <class T>
struct spawned_task {
  struct start final : message {
    explicit start(spawned_task& owner) noexcept : message(&act_on), of(owner) {}
    spawned_task& of;
  };

  spawned_task(cell& at, task<T> given, spawned_state<T>& state) noexcept
      : mail(*this), here(at), running(std::move(given)), flow(mail), result(state) {}

  static const char* act_on(message* base, void*, message_act act) {
    if (act == message_act::describe) return base::type_name<task<T>>();
    spawned_task& self = static_cast<start*>(base)->of;
    if (act == message_act::handle) {
      begin(self.flow, tasks::task_access::root(self.running));
    } else if (act == message_act::discard) {
      self.result.result.fail(stopped_error(&act_on));
      self.end();
    } else {
      self.finish();
    }
    return nullptr;
  }

  void finish() noexcept {
    auto& from = tasks::task_access::result(running);
    std::exception_ptr failure = from.failure();
    if (failure != nullptr) {
      result.has_failed(here, &act_on);
    } else if constexpr (std::is_void_v<T>) {
      result.result.set();
    } else {
      failure = tasks::failure_of([&] { result.result.set(from.take()); });
    }
    if (failure != nullptr) result.result.fail(std::move(failure));
    end();
  }

  // The frame goes before the result is given.
  void end() noexcept {
    { const task<T> ended = std::move(running); }
    result.resolve();
    end_spawned(here);
  }

  start mail;
  cell& here;
  task<T> running;
  tasks::flow flow;
  spawned_state<T>& result;
};

template <class T>
inline constexpr cell_type spawned_type_of{sizeof(spawned_task<T>), alignof(spawned_task<T>),
                                           [](void* object) noexcept { std::destroy_at(static_cast<spawned_task<T>*>(object)); },
                                           "a spawned task", false};

template <class T>
future<T> spawn_task(const placement& where, task<T> given) {
  promise<T> promised = tasks::future_access::promise_of<T>(spawned_state<T>::make());
  future<T> later = promised.get_future();
  cell& made = make_cell(where, spawned_type_of<T>);
  auto& state = static_cast<spawned_state<T>&>(tasks::future_access::release(promised));
  auto& object = *::new (made.object()) spawned_task<T>(made, std::move(given), state);
  made.flags |= cell::born;
  start_spawned(made, object.mail);
  return later;
}

}  // namespace troupe::actor
