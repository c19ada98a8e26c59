// callback: the node that future::then leaves in the state until the result is ready.
#pragma once

#include "troupe/base/language.hpp"

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "troupe/memory/block_pool.hpp"
#include "troupe/sched/message.hpp"
#include "troupe/task/current_actor.hpp"
#include "troupe/task/shared_state.hpp"

namespace troupe::tasks {

template <class T, class OnValue, class OnError>
struct callback final : sched::message, nested_observer {
  template <class V, class E>
  callback(state_of<T>& adopted, V&& value, E&& error)
      : message(&act_on),
        nested_observer{{&on_resolved}},
        state(adopted),
        on_value(std::forward<V>(value)),
        on_error(std::forward<E>(error)),
        actor(hold_current_actor()) {}

  // Takes over the state that `from` holds, unless it throws.
  static void start(auto& from, auto&& value, auto&& error) {
    static_assert(alignof(callback) <= alignof(sched::message),
                  "troupe: future::then: a callback is aligned to 16 bytes; keep its over-aligned "
                  "captures in a std::unique_ptr");
    void* place = memory::allocate(sizeof(callback));
    callback* created = nullptr;
    try {
      created = ::new (place) callback(*from, std::forward<decltype(value)>(value),
                                       std::forward<decltype(error)>(error));
    } catch (...) {
      memory::deallocate(place, sizeof(callback));
      throw;
    }
    from.release();
    if (!created->state.attach(*created)) created->go();
  }

  static void on_resolved(observer& self) noexcept { static_cast<callback&>(self).go(); }

  void go() noexcept {
    if (actor != nullptr) return send_to_actor(actor, *this);
    tell_nested(*this, [](observer& base) noexcept {
      auto& self = static_cast<callback&>(base);
      self.call();
      self.free();
    });
  }

  static const char* act_on(sched::message* base, void*, sched::message_act act) {
    if (act == sched::message_act::describe) return sched::described_as_callback;
    auto& self = static_cast<callback&>(*base);
    if (act == sched::message_act::handle) self.call();
    self.free();
    return nullptr;
  }

  void call() noexcept {
    std::exception_ptr failure = state.result.take_failure();
    try {
      if (failure == nullptr) {
        if constexpr (std::is_void_v<T>) {
          static_cast<void>(on_value());
        } else {
          static_cast<void>(on_value(state.result.take()));
        }
        return;
      }
    } catch (...) {
      failure = std::current_exception();
    }
    try {
      static_cast<void>(on_error(std::move(failure)));
    } catch (...) {
      report_unheard(std::current_exception());
    }
  }

  void free() noexcept {
    void* held = actor;
    state.leave();
    std::destroy_at(this);
    memory::deallocate(this, sizeof(callback));
    if (held != nullptr) drop_actor(held);
  }

  state_of<T>& state;
  OnValue on_value;
  OnError on_error;
  void* actor;
};

}  // namespace troupe::tasks
