// activation: an actor of a cluster on its own node: its construction, and the delivery of its
// calls. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/actor/ref.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/cluster/calls.hpp"
#include "troupe/cluster/home.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/task.hpp"

namespace troupe::cluster::parts {

// A message to an actor whose constructor still runs. It is called with the actor, or with null and
// the constructor's exception.
template <class T>
using early_call = unique_function<void(const troupe::ref<T>*, const std::exception_ptr&)>;

template <class T>
struct activation_of final : activation {
  using activation::activation;
  void end() const override {
    if (is_made && actor) actor.stop_now();
  }
  // Under the lock of the shard.
  troupe::ref<T> actor;
  std::vector<early_call<T>> early;
};

template <class T>
troupe::ref<T> construct(const activation& activated) {
  runtime& on = runtime_of(*activated.node);
  if constexpr (std::is_constructible_v<T, home>) {
    return on.spawn<T>(home(activated.node, activated.address.key));
  } else if constexpr (std::is_constructible_v<T, std::string>) {
    return on.spawn<T>(activated.address.key);
  } else {
    static_assert(std::is_default_constructible_v<T>,
                  "troupe: cluster: the class has no constructor that takes nothing, the key as a "
                  "std::string, or a troupe::cluster::home");
    return on.spawn<T>();
  }
}

template <class T>
std::shared_ptr<activation> make_activation(state_ref on, address target, std::uint64_t fence) {
  return std::make_shared<activation_of<T>>(std::move(on), std::move(target), fence);
}

// The constructor runs without the lock: it may send messages itself.
template <class T>
void make(activation_of<T>& activated) {
  std::exception_ptr failed;
  troupe::ref<T> actor;
  try {
    actor = construct<T>(activated);
  } catch (...) {
    failed = travelling(*activated.node);
    remove(activated);
  }
  const auto held = lock_shard(activated);
  activated.is_made = true;
  activated.actor = actor;
  for (auto& each : std::exchange(activated.early, {}))
    each(failed == nullptr ? &actor : nullptr, failed);
}

// Finds or makes the actor on this node, then calls `with(activation, actor, exception)`: at once,
// or, if its constructor still runs, after the constructor; in the second case it first calls
// `with.defer()`. Calls come in the order of the calls of this function. Returns false, and does
// not touch `with`, if the actor is not on this node, or if `behind` is true and earlier messages
// to its shard are under way.
template <class T, class With>
bool with_actor(const state_ref& on, const address& target, bool behind, With& with) {
  found_actor found = find_here(on, target, behind);
  if (found.it == nullptr) return false;
  auto& activated = static_cast<activation_of<T>&>(*found.it);
  if (activated.is_made) [[likely]] {
    with(std::move(found.it), &activated.actor, nullptr);
    return true;
  }
  with.defer();
  activated.early.push_back(
      [it = found.it, with = std::move(with)](const troupe::ref<T>* actor,
                                              const std::exception_ptr& failed) mutable {
        with(it, actor, failed);
      });
  if (!found.is_new) return true;
  found.held.unlock();
  make(activated);
  return true;
}

template <class Method>
using facts_of = durable::parts::method_of<Method>;
template <auto Method>
using result_of =
    typename durable::parts::awaited_of<typename facts_of<decltype(Method)>::returned>::type;

// The call of a method with its arguments, as the message of an actor. It keeps the activation.
template <class T, auto Method>
struct method_call {
  using facts = facts_of<decltype(Method)>;
  using arguments = typename facts::arguments;
  using result = result_of<Method>;
  static constexpr bool is_task = durable::parts::awaited_of<typename facts::returned>::is_task;

  static typename facts::returned invoke(T& self, arguments& args) {
    return std::apply([&](auto&... each) { return (self.*Method)(std::move(each)...); }, args);
  }
  static result call(T& self, const activation& at, arguments& args) {
    check_owned(at);
    try {
      if constexpr (std::is_void_v<result>) {
        invoke(self, args);
        check_may_answer(at);
      } else {
        result given = invoke(self, args);
        check_may_answer(at);
        return given;
      }
    } catch (...) {
      std::rethrow_exception(travelling(*at.node));
    }
  }
  static task<result> run(T& self, std::shared_ptr<activation> at, arguments args) {
    check_owned(*at);
    std::exception_ptr failed;
    try {
      auto running = invoke(self, args);
      if constexpr (std::is_void_v<result>) {
        co_await std::move(running);
        check_may_answer(*at);
        co_return;
      } else {
        result given = co_await std::move(running);
        check_may_answer(*at);
        co_return given;
      }
    } catch (...) {
      failed = travelling(*at->node);
    }
    std::rethrow_exception(failed);
  }

  auto operator()(T& self) {
    if constexpr (is_task) {
      return run(self, std::move(at), std::move(args));
    } else {
      return call(self, *at, args);
    }
  }

  std::shared_ptr<activation> at;
  arguments args;
};

// The same for a tell, which has no answer: an exception from it is a failure of the program,
// except for messages that arrived too late.
template <class T, auto Method>
struct told_call {
  using call = method_call<T, Method>;

  auto operator()(T& self) {
    if constexpr (call::is_task) {
      return run(self, std::move(at), std::move(args), std::move(permit));
    } else {
      if (is_owned(*at)) call::invoke(self, args);
    }
  }
  static task<> run(T& self, std::shared_ptr<activation> at, typename call::arguments args,
                    semaphore::permit permit) {
    const semaphore::permit ends_before_node(std::move(permit));
    if (!is_owned(*at)) co_return;
    auto running = call::invoke(self, args);
    co_await std::move(running);
  }

  std::shared_ptr<activation> at;
  typename call::arguments args;
  // Of a message from another node. The permit must end before `at`, which keeps its semaphore.
  semaphore::permit permit{};
};

// The same for a message from another node.
template <class T, auto Method>
struct served_call {
  using call = method_call<T, Method>;

  task<> operator()(T& self) {
    return run(self, std::move(at), std::move(args), std::move(served_message));
  }
  static task<bytes> value(T& self, std::shared_ptr<activation> at, typename call::arguments args) {
    if constexpr (!call::is_task) {
      if constexpr (std::is_void_v<typename call::result>) {
        call::call(self, *at, args);
        co_return bytes();
      } else {
        co_return durable::encode(call::call(self, *at, args));
      }
    } else {
      auto running = call::run(self, std::move(at), std::move(args));
      if constexpr (std::is_void_v<typename call::result>) {
        co_await std::move(running);
        co_return bytes();
      } else {
        const typename call::result given = co_await std::move(running);
        co_return durable::encode(given);
      }
    }
  }
  static task<> run(T& self, std::shared_ptr<activation> at, typename call::arguments args,
                    std::unique_ptr<served> served_message) {
    std::exception_ptr failed;
    try {
      auto runs = within_limits(*served_message, value(self, std::move(at), std::move(args)));
      const bytes given = co_await std::move(runs);
      served_message->give(given);
      co_return;
    } catch (...) {
      failed = std::current_exception();
    }
    served_message->fail(failed);
  }

  std::shared_ptr<activation> at;
  typename call::arguments args;
  std::unique_ptr<served> served_message;
};

// Sends the actor on this node a request from another node, or from this node.
template <class T, auto Method>
struct serving {
  using call = method_call<T, Method>;
  void defer() const noexcept {}
  void operator()(std::shared_ptr<activation> at, const troupe::ref<T>* actor,
                  const std::exception_ptr& failed) {
    if (actor == nullptr) {
      served_message->fail(failed);
    } else if (served_message->wants_answer()) {
      actor->tell(
          served_call<T, Method>{std::move(at), std::move(args), std::move(served_message)});
    } else {
      actor->tell(
          told_call<T, Method>{std::move(at), std::move(args), served_message->take_permit()});
    }
  }

  typename call::arguments args;
  std::unique_ptr<served> served_message;
};

template <class R>
task<> pass_on(future<R> from, promise<R> target) {
  std::exception_ptr failed;
  try {
    if constexpr (std::is_void_v<R>) {
      co_await std::move(from);
      target.set_value();
    } else {
      target.set_value(co_await std::move(from));
    }
  } catch (...) {
    failed = std::current_exception();
  }
  if (failed != nullptr) target.set_exception(failed);
}

// An ask of this node's own.
template <class T, auto Method>
struct asking {
  using call = method_call<T, Method>;
  using result = typename call::result;
  void defer() {
    later.emplace();
    *out = later->get_future();
    out = nullptr;
  }
  void operator()(std::shared_ptr<activation> at, const troupe::ref<T>* actor,
                  const std::exception_ptr& failed) {
    if (actor == nullptr) return later->set_exception(failed);
    runtime& on = runtime_of(*at->node);
    auto asked = actor->ask(call{std::move(at), std::move(args)});
    if (out != nullptr) {
      *out = std::move(asked);
    } else {
      static_cast<void>(on.spawn(pass_on(std::move(asked), std::move(*later))));
    }
  }

  typename call::arguments args;
  std::optional<future<result>>* out;
  std::optional<promise<result>> later{};
};

template <class T, auto Method>
struct telling {
  using call = method_call<T, Method>;
  void defer() const noexcept {}
  void operator()(std::shared_ptr<activation> at, const troupe::ref<T>* actor,
                  const std::exception_ptr&) {
    if (actor != nullptr) actor->tell(told_call<T, Method>{std::move(at), std::move(args)});
  }

  typename call::arguments args;
};

}  // namespace troupe::cluster::parts
