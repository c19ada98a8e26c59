// ref: refers to an actor of a cluster by its class and key, on whatever node it is.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "troupe/cluster/activation.hpp"
#include "troupe/cluster/calls.hpp"
#include "troupe/cluster/error.hpp"
#include "troupe/cluster/home.hpp"
#include "troupe/cluster/kind.hpp"
#include "troupe/durable/codec.hpp"
#include "troupe/task/future.hpp"

namespace troupe::cluster {

// Refers to an actor by its class and key. The actor is made by the first message, on the node that
// owns it then, and unloaded when it is idle. Refs may be parts of messages. Copyable. Thread: any.
// Lifetime: it may outlive the node, whose messages fail with failure::stopped then.
//
// Order: messages from one actor or task to an actor arrive in the order in which they were sent,
// as long as the receiver stays on its node.
template <class T>
class ref {
 public:
  ref() = default;

  // Asks the actor. If it is on this node, nothing is copied into bytes: the ask costs about twice
  // as much as an ask of a plain actor. The message carries the nearest deadline of the calls
  // around it; if there is none, options::ask_timeout applies.
  //
  // Errors are in the returned future; an ask never hangs. timed_out: the handler may have run.
  // error: its kind shows whether the handler may have run. An exception from the handler: with its
  // own type, if the node has that type by exception<E>(); otherwise a remote_exception.
  template <auto Method, class... Args>
  [[nodiscard]] auto ask(Args&&... args) const {
    using call = parts::method_call<T, Method>;
    using result = typename call::result;
    const parts::method_entry& entry = method<Method>();
    std::optional<future<result>> asked;
    parts::asking<T, Method> request{arguments_of<Method>(std::forward<Args>(args)...), &asked};
    if (parts::with_actor<T>(on_, address_, true, request)) return std::move(*asked);
    auto answer = std::make_unique<durable::parts::answer_of<result>>();
    future<result> later = answer->get_future();
    parts::send_away(on_, address_, entry, encoded<Method>(request.args), std::move(answer));
    return later;
  }

  // Sends a message, at most once; its outcome is not reported. An exception of the handler is a
  // failure of the program in which the handler runs. Errors: error: full and stopped; nothing was
  // sent.
  template <auto Method, class... Args>
  void tell(Args&&... args) const {
    const parts::method_entry& entry = method<Method>();
    parts::telling<T, Method> message{arguments_of<Method>(std::forward<Args>(args)...)};
    if (parts::with_actor<T>(on_, address_, true, message)) return;
    if (address_.member.empty()) {
      parts::bytes head = parts::begin_tell(address_, entry);
      parts::tell_away(on_, address_, encoded<Method>(message.args, std::move(head)));
    } else {
      parts::send_away(on_, address_, entry, encoded<Method>(message.args), nullptr);
    }
  }

  const std::string& key() const noexcept { return address_.key; }
  explicit operator bool() const noexcept { return on_ != nullptr; }
  friend bool operator==(const ref& left, const ref& other) noexcept {
    return left.address_.key == other.address_.key && left.address_.member == other.address_.member;
  }

 private:
  friend class node;
  friend class home;
  friend struct durable::codec<ref>;
  ref(parts::state_ref on, parts::address target) noexcept
      : on_(std::move(on)), address_(std::move(target)) {}
  static ref at(const parts::state_ref& on, std::string_view key) {
    const parts::class_table& kind =
        parts::table_of(*on, &durable::parts::class_tag<T>, base::type_name<T>());
    parts::check_key(key);
    return ref(on, {&kind, std::string(key), parts::shard_of(kind.name, key), {}});
  }

  template <auto Method, class... Args>
  static auto arguments_of(Args&&... args) {
    using arguments = typename parts::facts_of<decltype(Method)>::arguments;
    static_assert(std::tuple_size_v<arguments> == sizeof...(Args),
                  "troupe: cluster: the method takes another number of arguments; default "
                  "arguments are not part of a method's type");
    static_assert(std::is_constructible_v<arguments, Args...>,
                  "troupe: cluster: these arguments do not fit the method's parameters");
    return arguments(std::forward<Args>(args)...);
  }
  template <auto Method, class Arguments>
  static parts::bytes encoded(const Arguments& args, parts::bytes behind = {}) {
    if constexpr (std::tuple_size_v<Arguments> == 0) {
      return behind;
    } else {
      return durable::encode(args, std::move(behind));
    }
  }
  template <auto Method>
  const parts::method_entry& method() const {
    using owner = typename parts::facts_of<decltype(Method)>::owner;
    static_assert(std::is_base_of_v<owner, T>,
                  "troupe: cluster: this is not a method of the actor's class");
    check_refers();
    const parts::method_entry* const found =
        address_.kind->find(&durable::parts::method_tag<Method>);
    if (found == nullptr)
      throw usage_error(
          "troupe: cluster: the method is not among those that the node was given "
          "for the class " +
          address_.kind->name);
    return *found;
  }
  void check_refers() const {
    if (on_ == nullptr)
      throw usage_error(
          "troupe: cluster: the ref refers to no actor; assign it the result of node::get()");
  }

  parts::state_ref on_;
  parts::address address_;
};

template <class T>
ref<T> home::get(std::string_view key) const {
  return ref<T>::at(on_, key);
}
template <class T>
ref<T> home::single() const {
  return ref<T>::at(on_, {});
}

}  // namespace troupe::cluster

// Stored as the class's name, the key and the member. It can be read only in a message that came to
// a node, because the ref needs that node.
template <class T>
struct troupe::durable::codec<troupe::cluster::ref<T>> {
  static constexpr std::string_view shape = "ref";
  static void write(writer& out, const cluster::ref<T>& value) {
    out.write(value.address_.kind == nullptr ? std::string() : value.address_.kind->name);
    out.write(value.address_.key);
    out.write(value.address_.member);
  }
  static cluster::ref<T> read(reader& from) {
    const auto kind = from.read<std::string>();
    auto key = from.read<std::string>();
    auto member = from.read<std::string>();
    if (kind.empty()) return {};
    if (key.size() > cluster::parts::name_bytes_max ||
        member.size() > cluster::parts::name_bytes_max)
      parts::refuse("the ref has a longer key than an actor may have");
    const cluster::parts::state_ref& on = cluster::parts::read_on();
    const cluster::parts::class_table& known = cluster::parts::table_of(*on, kind);
    if (known.tag != &parts::class_tag<T>) parts::refuse("the ref is of another class");
    const std::uint32_t shard =
        member.empty() ? cluster::parts::shard_of(kind, key) : cluster::parts::own_shard;
    return cluster::ref<T>(on, {&known, std::move(key), shard, std::move(member)});
  }
};
