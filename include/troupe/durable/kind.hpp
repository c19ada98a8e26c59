// kind: a class of durable actors and the methods that messages may call.
#pragma once

#include "troupe/base/language.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/base/type_name.hpp"
#include "troupe/durable/call.hpp"
#include "troupe/durable/codec.hpp"
#include "troupe/durable/error.hpp"
#include "troupe/durable/storage.hpp"
#include "troupe/durable/turn.hpp"

namespace troupe::durable {

namespace parts {

template <class T>
concept numbered = requires {
  { T::schema } -> std::convertible_to<std::uint32_t>;
};
template <class T>
consteval std::uint32_t schema_of() {
  if constexpr (numbered<T>) {
    static_assert(T::schema > 0, "troupe: durable: a schema number is 1 or more");
    return T::schema;
  } else {
    return 1;
  }
}
template <class T>
concept upgraded = requires(typename T::previous before) {
  { T::upgrade(std::move(before)) } -> std::same_as<T>;
};
template <class T>
concept evented = requires(T& object, const typename T::event& event) {
  object.apply(event);
};

// Reads a value that was stored when its type had the number `schema`.
template <class T>
T read_as(std::uint32_t schema, std::span<const std::byte> from) {
  if (schema == schema_of<T>()) return decode<T>(from);
  if constexpr (upgraded<T>) {
    static_assert(schema_of<typename T::previous>() < schema_of<T>(),
                  "troupe: durable: `previous` must have a smaller schema number");
    return T::upgrade(read_as<typename T::previous>(schema, from));
  } else {
    refuse("no upgrade function reads this schema number");
  }
}
class_shape class_shape_of(std::string kind, std::uint32_t schema, std::string shape);

// The shape of one type with fewer and with more names (codec.hpp).
struct shape_texts {
  std::string plain;
  std::string named;
  std::string exact;
  std::string full;
};
template <class T>
shape_texts shape_texts_of() {
  return {shape_text<T>(naming::none), shape_text<T>(naming::short_names),
          shape_text<T>(naming::exact), shape_text<T>(naming::full)};
}

// The shape of a class, its events or a method, and the further forms in which it is stored.
struct named_shape {
  std::string kind;
  std::uint32_t schema;
  std::string full;
  std::vector<class_shape> rows;
};

template <class T>
void add_shapes(const std::string& kind, std::vector<class_shape>& shapes) {
  shapes.push_back(class_shape_of(kind, schema_of<T>(), shape_text<T>(naming::none)));
  if constexpr (upgraded<T>) add_shapes<typename T::previous>(kind, shapes);
}
named_shape named_shape_of(std::string kind, std::uint32_t schema, const shape_texts& shapes);
template <class T>
void add_named_shapes(const std::string& kind, std::vector<named_shape>& shapes) {
  shapes.push_back(named_shape_of(kind, schema_of<T>(), shape_texts_of<T>()));
  if constexpr (upgraded<T>) add_named_shapes<typename T::previous>(kind, shapes);
}

// An object of a durable class, of whatever type.
using object = std::shared_ptr<void>;

// The result of a handler.
struct outcome {
  bytes value;
  std::vector<bytes> events;
};

struct method_entry {
  const void* tag;
  std::string name;
  std::string shape;  // without enumerators and names of alternatives, as `signature`
  std::uint64_t signature;
  // Exactly one is set: `call` for a plain method, `start` for a coroutine.
  outcome (*call)(void* on, turn& turn, std::span<const std::byte> arguments);
  task<outcome> (*start)(void* on, turn& turn, bytes arguments);
};

// A class of durable actors with its methods, of whatever type.
struct kind_table {
  const void* tag = nullptr;
  std::string name;
  std::vector<class_shape> shapes;  // the present one first, then its `previous` types
  std::vector<class_shape> event_shapes;
  // Shapes with enumerators and names, of the class, its events and its methods. They are stored
  // beside the others, which older versions write and compare.
  std::vector<named_shape> named_shapes;
  object (*make)() = nullptr;
  object (*read)(std::uint32_t schema, std::span<const std::byte> from) = nullptr;
  bytes (*write)(const void* on) = nullptr;
  // Null if the class has no events.
  void (*apply)(void* on, std::span<const std::byte> event) = nullptr;
  std::uint64_t events_between_snapshots = 0;
  std::vector<method_entry> methods;
};

// "Account" of "bank::Account", "deposit" of "&bank::Account::deposit".
std::string last_part(std::string_view name);

}  // namespace parts

namespace parts {

template <class Given>
outcome outcome_of(Given&& given) {
  using type = std::decay_t<Given>;
  if constexpr (is_changes<type>) {
    outcome result;
    for (const auto& event : given.events) result.events.push_back(encode(event));
    if constexpr (requires { given.answer; }) result.value = encode(given.answer);
    return result;
  } else {
    return {encode(given), {}};
  }
}

template <auto Method>
struct caller {
  using facts = method_of<decltype(Method)>;
  using owner = typename facts::owner;
  using awaited = awaited_of<typename facts::returned>;
  using given = typename awaited::type;
  using arguments = typename facts::arguments;

  static decltype(auto) invoke(owner& on, turn& turn, arguments& args) {
    return std::apply(
        [&](auto&... each) -> decltype(auto) {
          if constexpr (facts::takes_turn) {
            return (on.*Method)(turn, std::move(each)...);
          } else {
            return (on.*Method)(std::move(each)...);
          }
        },
        args);
  }
  static arguments read(std::span<const std::byte> from) {
    if constexpr (std::tuple_size_v<arguments> == 0) {
      return {};
    } else {
      return decode<arguments>(from);
    }
  }
  static outcome call(void* on, turn& turn, std::span<const std::byte> from) {
    arguments args = read(from);
    if constexpr (std::is_void_v<given>) {
      invoke(*static_cast<owner*>(on), turn, args);
      return {};
    } else {
      return outcome_of(invoke(*static_cast<owner*>(on), turn, args));
    }
  }
  static task<outcome> start(void* on, turn& turn, bytes from) {
    arguments args = read(from);
    auto running = invoke(*static_cast<owner*>(on), turn, args);
    if constexpr (std::is_void_v<given>) {
      co_await std::move(running);
      co_return outcome();
    } else {
      given value = co_await std::move(running);
      co_return outcome_of(std::move(value));
    }
  }
  static std::string shape(naming how) {
    std::string text = "(" + list_text(how, std::type_identity<arguments>()) + ")";
    using answer = typename answer_type<given>::type;
    if constexpr (!std::is_void_v<answer>) text += "->" + shape_text<answer>(how);
    return text;
  }
  static shape_texts shapes() {
    return {shape(naming::none), shape(naming::short_names), shape(naming::exact),
            shape(naming::full)};
  }
};

template <auto Method>
method_entry entry_of() {
  using facts = caller<Method>;
  method_entry entry{&method_tag<Method>,
                     last_part(base::value_name<Method>()),
                     facts::shape(naming::none),
                     0,
                     nullptr,
                     nullptr};
  entry.signature = fingerprint_of(entry.shape);
  if constexpr (facts::awaited::is_task) {
    entry.start = &facts::start;
  } else {
    entry.call = &facts::call;
  }
  return entry;
}

template <class T>
object make_object() {
  return std::make_shared<T>();
}
template <class T>
object read_object(std::uint32_t schema, std::span<const std::byte> from) {
  return std::make_shared<T>(read_as<T>(schema, from));
}
template <class T>
bytes write_object(const void* on) {
  return encode(*static_cast<const T*>(on));
}
template <class T>
void apply_event(void* on, std::span<const std::byte> event) {
  static_cast<T*>(on)->apply(decode<typename T::event>(event));
}

// The compiler's note on this function names the method, and the parameter by its number.
template <auto Method, std::size_t Parameter, class Type>
consteval bool check_parameter() {
  static_assert(storable<Type>,
                "troupe: durable: this parameter cannot be stored, and messages are; the kinds are "
                "listed in troupe/durable/codec.hpp");
  return storable<Type>;
}
template <auto Method, class Type>
consteval bool check_answer() {
  if constexpr (std::is_void_v<Type>) {
    return true;
  } else {
    static_assert(storable<Type>,
                  "troupe: durable: the result of this method cannot be stored; the kinds are "
                  "listed in troupe/durable/codec.hpp");
    return storable<Type>;
  }
}
template <auto Method>
consteval bool check_method() {
  using facts = method_of<decltype(Method)>;
  using given = typename awaited_of<typename facts::returned>::type;
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return (check_answer<Method, typename answer_type<given>::type>() && ... &&
            check_parameter<Method, I + 1, std::tuple_element_t<I, typename facts::arguments>>());
  }
  (std::make_index_sequence<std::tuple_size_v<typename facts::arguments>>());
}

template <class T>
consteval bool check_event() {
  if constexpr (evented<T>) {
    static_assert(
        storable<typename T::event>,
        "troupe: durable: the events of this class cannot be stored; the kinds are listed "
        "in troupe/durable/codec.hpp");
    return storable<typename T::event>;
  } else {
    return true;
  }
}

void add_method_names(kind_table& table, const method_entry& method, const shape_texts& shapes);

template <class T, auto... Methods>
kind_table make_kind(std::string_view name) {
  static_assert(!evented<T> || (method_of<decltype(Methods)>::is_const && ...),
                "troupe: durable: the methods of a class with events are const: they return the "
                "events, and apply() changes the object");
  kind_table table;
  table.tag = &class_tag<T>;
  table.name = name.empty() ? last_part(base::type_name<T>()) : std::string(name);
  add_shapes<T>(table.name, table.shapes);
  add_named_shapes<T>(table.name, table.named_shapes);
  table.make = &make_object<T>;
  table.read = &read_object<T>;
  table.write = &write_object<T>;
  if constexpr (evented<T>) {
    table.apply = &apply_event<T>;
    using event = typename T::event;
    table.event_shapes.push_back(
        class_shape_of(table.name + " event", schema_of<T>(), shape_text<event>(naming::none)));
    table.named_shapes.push_back(
        named_shape_of(table.name + " event", schema_of<T>(), shape_texts_of<event>()));
    table.events_between_snapshots = 100;
    if constexpr (requires { T::events_between_snapshots; })
      table.events_between_snapshots = T::events_between_snapshots;
  }
  (table.methods.push_back(entry_of<Methods>()), ...);
  std::size_t method = 0;
  (add_method_names(table, table.methods[method++], caller<Methods>::shapes()), ...);
  return table;
}

}  // namespace parts

// Describes a class of durable actors to store::open. T is storable (troupe/durable/codec.hpp): its
// members are the state. `Methods` are all member functions that messages call; their parameters
// and results are storable, and one that begins with a turn& gets the turn. A method may be a
// coroutine, a task<R>; while it is suspended, other actors run and this one handles no message.
//
// The name is T's without its namespace, unless another name is given. It is stored: keep it when
// the class is renamed. Methods are also stored by their names.
//
// When the members of T change, T gets `static constexpr int schema = 2` (then 3, …), `using
// previous` for a struct with the former members, and `static T upgrade(previous)`. Without a new
// number the store is not opened. The same holds for enumerators that were removed or have other
// values, and for alternatives of variants; enumerators may be added. Former alternatives are the
// same if they are called `v1::Circle` or `CircleV1`; docs/protocols/identity.md has the rules.
// There are no unknown fields: each schema number has exactly the members that its struct has. If
// the parameters or the result of a method change in such a way, rename the method.
//
// A class with `using event` and `void apply(const event&)` is stored as its events: its methods
// are const and return changes<event, R>, and the state is the result of apply() for all events.
// Every `events_between_snapshots` (a static member, otherwise 100) events the state is also
// stored. Stored events are read as the present type: a change of that type needs a new number of
// the class, and may only append alternatives to a std::variant, or enumerators. Otherwise the
// store is not opened.
//
// Example (declarations):
//     struct CounterV1 { int count = 0; };
//     struct Counter {
//       static constexpr int schema = 2;
//       using previous = CounterV1;
//       static Counter upgrade(CounterV1 old) { return {old.count, "old"}; }
//       std::int64_t count = 0;
//       std::string label;
//       std::int64_t add(int n) { return count += n; }
//     };
//     const auto counters = troupe::durable::kind<Counter, &Counter::add>();
template <class T, auto... Methods>
parts::kind_table kind(std::string_view name = {}) {
  static_assert(storable<T> || reflect::aggregate<T>,
                "troupe: durable: the class is stored by its members: it is a struct without "
                "constructors, private members and base classes, or durable::codec is specialized "
                "for it");
  static_assert((std::is_base_of_v<typename parts::method_of<decltype(Methods)>::owner, T> && ...),
                "troupe: durable: these are not all methods of the class");
  if constexpr (storable<T> && parts::check_event<T>() && (parts::check_method<Methods>() && ...)) {
    return parts::make_kind<T, Methods...>(name);
  } else {
    return {};
  }
}

}  // namespace troupe::durable
