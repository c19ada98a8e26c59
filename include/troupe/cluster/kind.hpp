// kind: a class of actors of a cluster, and the methods that messages may call.
#pragma once

#include "troupe/base/language.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "troupe/base/type_name.hpp"
#include "troupe/cluster/activation.hpp"
#include "troupe/cluster/calls.hpp"
#include "troupe/durable/kind.hpp"

namespace troupe::cluster {

namespace parts {

struct method_entry {
  const void* tag;
  std::string name;
  std::string shape;  // of its parameters and its result
  std::uint64_t signature;
  // Reads the arguments and sends the actor its message. Returns false if the actor is not here;
  // then `message` is unchanged. Throws decode_error.
  bool (*serve)(const state_ref& on, const address& to, std::span<const std::byte> arguments,
                std::unique_ptr<served>& message);
};

struct class_table {
  const void* tag = nullptr;
  std::string name;
  std::vector<method_entry> methods;
  std::shared_ptr<activation> (*make)(state_ref on, address target, std::uint64_t fence) = nullptr;

  const method_entry* find(const void* method) const noexcept {
    for (const method_entry& entry : methods)
      if (entry.tag == method) return &entry;
    return nullptr;
  }
};

// An exception that a caller on another node gets with its own type.
struct exception_entry {
  const std::type_info* type;
  std::string name;
  std::exception_ptr (*make)(const std::string& text);
};

// As the compiler spells it.
std::string readable_name(const std::type_info& type);

template <class T, auto Method>
bool serve(const state_ref& on, const address& to, std::span<const std::byte> arguments,
           std::unique_ptr<served>& message) {
  using facts = facts_of<decltype(Method)>;
  serving<T, Method> with;
  if constexpr (std::tuple_size_v < typename facts::arguments >> 0) {
    const reading_on reading(on);
    with.args = durable::decode<typename facts::arguments>(arguments);
  }
  with.served_message = std::move(message);
  if (with_actor<T>(on, to, false, with)) return true;
  message = std::move(with.served_message);
  return false;
}

template <class T, auto Method>
method_entry entry_of() {
  method_entry entry{
      &durable::parts::method_tag<Method>, durable::parts::last_part(base::value_name<Method>()),
      durable::parts::caller<Method>::shape(durable::parts::naming::none), 0, &serve<T, Method>};
  entry.signature = durable::fingerprint_of(entry.shape);
  return entry;
}

template <class E>
std::exception_ptr make_exception(const std::string& text) {
  return std::make_exception_ptr(E(text));
}

}  // namespace parts

// Describes a class of actors to a node. T is any class of actors, whose constructor takes nothing,
// or the key as a std::string, or a cluster::home. `Methods` are all member functions that messages
// call; their parameters and results can be stored (troupe/durable/codec.hpp), or are refs of a
// cluster. The actor exists only in memory: its state is lost when it is unloaded, when its node
// ends, and when its shard moves to another node.
//
// The name is T's without its namespace, unless another name is given. Nodes identify classes and
// methods by their names, and compare the types of parameters and results by a fingerprint.
//
// Example (declarations):
//     struct Counter {
//       int count = 0;
//       int add(int n) { return count += n; }
//     };
//     const auto counters = troupe::cluster::kind<Counter, &Counter::add>();
template <class T, auto... Methods>
parts::class_table kind(std::string_view name = {}) {
  static_assert((std::is_base_of_v<typename parts::facts_of<decltype(Methods)>::owner, T> && ...),
                "troupe: cluster: these are not all methods of the class");
  parts::class_table table;
  table.tag = &durable::parts::class_tag<T>;
  table.name = name.empty() ? durable::parts::last_part(base::type_name<T>()) : std::string(name);
  table.make = &parts::make_activation<T>;
  (table.methods.push_back(parts::entry_of<T, Methods>()), ...);
  return table;
}

// Registers a type of exceptions: callers get an E, made from its text; exceptions of other types
// arrive as remote_exception. The same holds for callers on the actor's node, so that the place of
// an actor makes no difference. troupe's exceptions for a time limit or a cancelled call need no
// name.
template <class E>
parts::exception_entry exception() {
  static_assert(std::is_constructible_v<E, const std::string&>,
                "troupe: cluster: a registered exception needs a constructor from std::string");
  return {&typeid(E), parts::readable_name(typeid(E)), &parts::make_exception<E>};
}

}  // namespace troupe::cluster
