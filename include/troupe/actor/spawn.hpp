// spawn: how an actor is created. For the library's own use; users call runtime::spawn.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "troupe/actor/cell.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/actor/ref.hpp"
#include "troupe/actor/supervision.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/context/context.hpp"

namespace troupe::actor {

// On which executor a new actor runs, and which of its options differ from the defaults.
struct placement {
  actor_system& system;
  std::uint16_t executor = 0;  // 0: the pool
  bool has_options = false;    // whether any of the following members differs
  error_policy on_error = error_policy::resume;
  const restart_limit* restart = nullptr;
  cell* parent = nullptr;
  unsigned turn_messages = 0;  // 0: the system's limits
  std::int64_t turn_ns = 0;
  std::size_t mailbox_messages = 0;          // 0: no limit
  std::uint8_t when_full = 0;                // a troupe::when_full
  const context_options* context = nullptr;  // null: no context of its own
  bool rolls_back = false;
  std::string_view name{};  // empty: none
};

// A cell stores the distance to its object in one byte.
inline constexpr std::size_t alignment_max = 2048;

// Makes a cell that has one ref and no object yet. Throws std::bad_alloc.
cell& make_cell(const placement& where, const cell_type& type);

// Sets how a new actor is constructed again. Called before any other thread has access to the
// actor.
void set_factory(cell& actor, unique_function<void(void* object)> make);
// Makes `parent` the parent of an actor that may already be running.
void join_parent(cell& parent, cell& child);
[[noreturn]] void refuse_restart(const char* why);

// The type in which an argument travels to the thread that constructs the actor: a value, or for a
// literal a string.
template <class Arg>
struct travelling {
  using type = std::decay_t<Arg>;
};
template <std::size_t Size>
struct travelling<const char (&)[Size]> {
  using type = std::string;
};

// Returns a function that constructs the actor anew from copies of these arguments. Throws if they
// cannot be copied.
template <class T, class... Args>
unique_function<void(void*)> factory_of(const Args&... args) {
  if constexpr (is_reentrant<T>()) {
    refuse_restart("a reentrant actor cannot be constructed anew while others of its calls wait");
  } else if constexpr ((std::is_constructible_v<typename travelling<const Args&>::type,
                                                const Args&> &&
                        ...) &&
                       std::is_constructible_v<T,
                                               const typename travelling<const Args&>::type&...>) {
    return [... kept = typename travelling<const Args&>::type(args)](void* object) {
      ::new (object) T(std::as_const(kept)...);
    };
  } else {
    refuse_restart("the constructor's arguments cannot be copied, or not be taken as constants");
  }
}

// While it exists, the calling thread counts as inside this actor, so that the actor's destructor
// may use troupe::self and this_context().
class inside_actor {
 public:
  explicit inside_actor(cell& actor) noexcept;
  ~inside_actor();
  inside_actor(const inside_actor&) = delete;
  inside_actor& operator=(const inside_actor&) = delete;

 private:
  cell* before_;
  context* context_before_;
};

// The construction of an actor on the calling thread. If the constructor asks for a ref to the
// actor itself, messages may arrive before the constructor has returned. They wait in an activation
// that no thread runs before finish().
class construction {
 public:
  // Makes the cell. Throws std::bad_alloc.
  construction(const placement& where, const cell_type& type);
  // Without a finish() the constructor has thrown: the cell is freed once no ref to it exists.
  ~construction() {
    if (cell_ != nullptr) [[unlikely]]
      fail();
  }
  construction(const construction&) = delete;
  construction& operator=(const construction&) = delete;

  // The address at which to construct the object; null if the runtime has begun to end, since then
  // no object is constructed any more.
  void* object() const noexcept { return object_; }

  // Call it after the constructor has returned, or after object() returned null.
  cell& finish();

  void set_factory(unique_function<void(void*)> make) {
    actor::set_factory(*cell_, std::move(make));
  }

  // Lets an actor that is still under construction take mail, before a ref to it goes out. Throws
  // std::bad_alloc.
  static void accept_mail(cell& actor);

 private:
  void fail() noexcept;
  void leave() noexcept;
  void start(cell& actor);
  cell* cell_;
  void* object_;
  cell* inside_before_;
  context* context_before_;
  construction* building_before_;
  activation* activation_ = nullptr;
};

// The first message of an actor that is constructed on its own thread; its handler constructs the
// object.
template <class T, class... Args>
struct constructor_message final : message {
  template <class... Values>
  explicit constructor_message(Values&&... values)
      : message(&act_on), arguments(std::forward<Values>(values)...) {}

  static const char* act_on(message* base, void* object, message_act act) {
    if (act == message_act::describe) return sched::described_as_constructor;
    message_guard<constructor_message> guard{static_cast<constructor_message*>(base)};
    if (act == message_act::handle) {
      std::apply([object](auto&... values) { ::new (object) T(std::move(values)...); },
                 guard.self->arguments);
    }
    return nullptr;
  }

  std::tuple<Args...> arguments;
};

// Sends that first message.
void deliver_constructor(cell& actor, message& birth);

// Whether the first of Args, without const and reference, is First.
template <class First, class... Args>
inline constexpr bool starts_with_v = false;
template <class First, class Head, class... Tail>
inline constexpr bool starts_with_v<First, Head, Tail...> =
    std::is_same_v<First, std::remove_cvref_t<Head>>;

template <class T>
consteval bool is_actor_class() {
  constexpr bool is_class = std::is_class_v<T> && !std::is_const_v<T> && !std::is_abstract_v<T>;
  static_assert(is_class,
                "troupe: spawn: an actor is an object of a class, neither const nor abstract");
  static_assert(alignof(T) <= alignment_max,
                "troupe: spawn: an actor's alignment is at most 2048 bytes");
  static_assert(std::is_nothrow_destructible_v<T>,
                "troupe: spawn: an actor's destructor must not throw, and must be public");
  return is_class && alignof(T) <= alignment_max && std::is_nothrow_destructible_v<T>;
}

// Creates an actor on the pool; its constructor runs on the calling thread.
template <class T, class... Args>
ref<T> spawn(const placement& where, Args&&... args) {
  if constexpr (is_actor_class<T>()) {
    constexpr bool fits = std::is_constructible_v<T, Args...>;
    static_assert(fits, "troupe: spawn: these arguments do not fit a constructor of the actor");
    if constexpr (fits) {
      construction building(where, cell_type_of<T>);
      if (where.on_error == error_policy::restart) [[unlikely]]
        building.set_factory(factory_of<T>(args...));
      if (building.object() != nullptr) [[likely]]
        ::new (building.object()) T(std::forward<Args>(args)...);
      auto started = ref_access::adopt<T>(&building.finish());
      if (where.parent != nullptr) [[unlikely]]
        join_parent(*where.parent, *ref_access::cell_of(started));
      return started;
    }
  }
  return {};  // refused above
}

// Creates an actor for an object that already exists outside of the cell. If the cell is alive() on
// return, it owns the object. Throws std::bad_alloc, option_error.
cell& make_adopted(const placement& where, const cell_type& type, void* object);
[[noreturn]] void refuse_no_object();

// Turns an existing object into an actor. It takes the object's ownership.
template <class T>
ref<T> activate_object(const placement& where, std::unique_ptr<T> object) {
  constexpr bool is_class = std::is_class_v<T> && !std::is_const_v<T>,
                 ends = std::is_nothrow_destructible_v<T>;
  constexpr bool whole = !std::is_abstract_v<T> || std::has_virtual_destructor_v<T>;
  static_assert(is_class, "troupe: activate: an actor is an object of a class that is not const");
  static_assert(ends, "troupe: activate: an actor's destructor must not throw, and must be public");
  static_assert(whole,
                "troupe: activate: the object is of a class that derives from this one, whose "
                "destructor is not virtual");
  if constexpr (is_class && ends && whole) {
    if (object == nullptr) [[unlikely]]
      refuse_no_object();
    cell& actor = make_adopted(where, adopted_type_of<T>, object.get());
    if (actor.alive()) static_cast<void>(object.release());
    auto address = ref_access::adopt<T>(&actor);
    if (where.parent != nullptr) [[unlikely]]
      join_parent(*where.parent, actor);
    return address;
  }
  return {};  // refused above
}

// Returns why an actor with a thread of its own cannot be constructed from these arguments, or
// `none`.
template <class T, class... Args>
consteval troupe::detail::misfit misfit_of_constructor() {
  using troupe::detail::misfit;
  misfit found = misfit::none;
  static_cast<void>(
      (... || ((found = troupe::detail::misfit_of_kept<typename travelling<Args>::type, Args>()) !=
               misfit::none)));
  if (found != misfit::none) return found == misfit::abstract_class ? misfit::immovable : found;
  return std::is_constructible_v<T, typename travelling<Args>::type...> ? misfit::none
                                                                        : misfit::unfit;
}

// Creates an actor with a thread of its own; its constructor runs later, on that thread.
template <class T, class... Args>
ref<T> spawn_there(const placement& where, Args&&... args) {
  if constexpr (is_actor_class<T>()) {
    using enum troupe::detail::misfit;
    constexpr auto found = misfit_of_constructor<T, Args...>();
    static_assert(found != refers,
                  "troupe: spawn: an argument is a pointer, a view, an iterator, a lock or a "
                  "reference wrapper: it would dangle or "
                  "race, for the actor is constructed later on its own thread. Give a value, or "
                  "wrap it in troupe::unchecked");
    static_assert(found != not_moved,
                  "troupe: spawn: an argument can only be moved; give it with std::move");
    static_assert(found != immovable,
                  "troupe: spawn: an argument can be neither copied nor moved, and the actor is "
                  "constructed later on its own "
                  "thread. Give a std::unique_ptr to it, or troupe::unchecked<X&>{it} if it "
                  "outlives the actor");
    static_assert(
        found != unfit,
        "troupe: spawn: these arguments do not fit a constructor of the actor, which is called "
        "later on its own thread with copies of them that it may move from, of a literal with a "
        "std::string. Give an object outside to which it writes as troupe::unchecked<X&>{it}");
    if constexpr (found == none) {
      using birth = constructor_message<T, typename travelling<Args>::type...>;
      unique_function<void(void*)> factory;
      if (where.on_error == error_policy::restart) factory = factory_of<T>(args...);
      cell& actor = make_cell(where, cell_type_of<T>);
      auto address = ref_access::adopt<T>(&actor);
      if (factory) [[unlikely]]
        set_factory(actor, std::move(factory));
      deliver_constructor(actor, *make_message<birth>(std::forward<Args>(args)...));
      if (where.parent != nullptr) [[unlikely]]
        join_parent(*where.parent, actor);
      return address;
    }
  }
  return {};  // refused above
}

}  // namespace troupe::actor
