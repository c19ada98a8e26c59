// method: whether a call of a member function can become a message, and if not, why not.
//
// For each `misfit`, ref::tell prints one sentence, so that the reader does not get a hundred lines
// of compiler output.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <type_traits>

#include "troupe/actor/call.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/actor/sendable.hpp"

// One sentence for each misfit; `verb` is tell or ask.
#define TROUPE_CHECK_CALL(found, verb)                                                             \
  static_assert((found) != detail::misfit::no_method,                                              \
                "troupe: " verb                                                                    \
                ": name a member function of the actor, &T::method, that is neither static nor "   \
                "&&-qualified; "                                                                   \
                "for anything else use a lambda");                                                 \
  static_assert((found) != detail::misfit::other_class,                                            \
                "troupe: " verb ": this method is not one of the actor's class");                  \
  static_assert((found) != detail::misfit::hidden_base,                                            \
                "troupe: " verb                                                                    \
                ": this method belongs to a private or ambiguous base of the actor; use a method " \
                "of its own");                                                                     \
  static_assert((found) != detail::misfit::too_few,                                                \
                "troupe: " verb                                                                    \
                ": the method has more parameters: default arguments are not part of its type, "   \
                "and must be given");                                                              \
  static_assert((found) != detail::misfit::unfit,                                                  \
                "troupe: " verb ": these arguments do not fit the method's parameters");           \
  static_assert(                                                                                   \
      (found) != detail::misfit::writes,                                                           \
      "troupe: " verb                                                                              \
      ": the method takes a reference that it could write through; the sender's object may be "    \
      "gone by then. Take the parameter by value or by const reference");                          \
  static_assert((found) != detail::misfit::refers,                                                 \
                "troupe: " verb                                                                    \
                ": a parameter of the method is a pointer, a view, an iterator, a lock or a "      \
                "reference wrapper: it would "                                                     \
                "dangle or race. Take a value, or wrap it in troupe::unchecked");                  \
  static_assert(                                                                                   \
      (found) != detail::misfit::abstract_class,                                                   \
      "troupe: " verb                                                                              \
      ": a parameter of the method is of an abstract class, which a message cannot hold; take a "  \
      "std::unique_ptr or a std::shared_ptr to it");                                               \
  static_assert((found) != detail::misfit::sliced,                                                 \
                "troupe: " verb                                                                    \
                ": an argument's class derives from the parameter's, and only the base would be "  \
                "sent; take a "                                                                    \
                "std::unique_ptr to it, or static_cast it to the base if you mean that");          \
  static_assert((found) != detail::misfit::not_moved,                                              \
                "troupe: " verb ": an argument can only be moved; give it with std::move");        \
  static_assert(                                                                                   \
      (found) != detail::misfit::immovable,                                                        \
      "troupe: " verb                                                                              \
      ": an argument or parameter can be neither copied nor moved into the message; take a "       \
      "std::unique_ptr to it")

namespace troupe::detail {

// Recognizes a template argument, `tell<&T::overloaded>`, that is the name of several methods. Such
// a name has no type: no `auto` parameter accepts it, and the language offers no way to inspect it.
// But it matches the ellipsis in the second deduction guide; the class that this guide names prints
// the sentence when it is instantiated. The name of a single method deduces the class of the first
// guide. That class has no usable constructor, which removes the overload of tell() with this
// parameter from consideration.
template <class Chosen>
struct several_methods {
  static_assert(!std::is_void_v<Chosen>,
                "troupe: this names several methods, for it is overloaded or a template: choose "
                "one by its type, "
                "tell<static_cast<void (T::*)(int)>(&T::method)>(...), or send a lambda, "
                "tell([](T& self) { self.method(1); }); "
                "the same for ask, send, bind and tell_when");
};
struct one_method {};
template <>
struct several_methods<one_method> {
  several_methods() = delete;
};
template <class Method>
several_methods(Method) -> several_methods<one_method>;
several_methods(...)->several_methods<void>;

// Why a call cannot become a message.
enum class misfit : std::uint8_t {
  none,
  no_method,       // no method of a class, or a static or &&-qualified one
  other_class,     // a method of a class that is not the actor's
  hidden_base,     // a method of a private or ambiguous base of the actor
  too_few,         // too few arguments
  unfit,           // the arguments do not convert to the parameters, or are too many
  writes,          // a parameter is a reference through which the method could write
  refers,          // a parameter's type is not sendable
  abstract_class,  // a parameter is a reference to an abstract class, which a message cannot hold
  sliced,          // an argument's class derives from the parameter's: only the base would be sent
  not_moved,       // an argument can only be moved, and was not passed with std::move
  immovable,       // an argument or parameter can be neither copied nor moved
};

// Whether a message can hold an argument of type Given as a Held until the call; if not, why not.
template <class Held, class Given>
consteval misfit misfit_of_kept() {
  if constexpr (!sendable_v<Held>) {
    return misfit::refers;
  } else if constexpr (std::is_abstract_v<Held>) {
    return misfit::abstract_class;
  } else if constexpr (!std::is_same_v<Held, std::remove_cvref_t<Given>> ||
                       std::is_constructible_v<Held, Given>) {
    return misfit::none;
  } else {
    return std::is_move_constructible_v<Held> ? misfit::not_moved : misfit::immovable;
  }
}

template <class Param, class Given>
consteval misfit misfit_of_argument() {
  using held = std::remove_cvref_t<Param>;
  constexpr misfit kept = misfit_of_kept<held, Given>();
  if constexpr (std::is_lvalue_reference_v<Param> &&
                !std::is_const_v<std::remove_reference_t<Param>>) {
    return misfit::writes;
  } else if constexpr (kept != misfit::none) {
    return kept;
  } else if constexpr (std::is_base_of_v<held, std::remove_cvref_t<Given>> &&
                       !std::is_same_v<held, std::remove_cvref_t<Given>>) {
    return misfit::sliced;
  } else if constexpr (!std::is_convertible_v<Given, Param> ||
                       !std::is_constructible_v<held, Given>) {
    return misfit::unfit;
  } else if constexpr (!std::is_reference_v<Param> && !std::is_move_constructible_v<held>) {
    return misfit::immovable;
  } else {
    return misfit::none;
  }
}

template <class Result, class Owner, class... Params>
struct method_of {
  static constexpr bool is_method = true;
  using owner = Owner;
  using result = Result;
  template <class T, auto Method>
  using call = actor::method_call<T, Method, Params...>;
  template <class T, auto Method>
  using message = std::conditional_t<actor::answer_of<Result>::is_coroutine,
                                     actor::coroutine_message<T, call<T, Method>, actor::no_answer>,
                                     actor::method_message<T, Method, Params...>>;

  // Returns the first reason why these arguments do not fit, or `none`.
  template <class... Given>
  static consteval misfit misfit_of_arguments() {
    if constexpr (sizeof...(Given) != sizeof...(Params)) {
      return sizeof...(Given) < sizeof...(Params) ? misfit::too_few : misfit::unfit;
    } else {
      misfit found = misfit::none;
      static_cast<void>((... || ((found = misfit_of_argument<Params, Given>()) != misfit::none)));
      return found;
    }
  }
};

// The general case: anything that is not a member function that can be called on an actor.
template <class Method>
struct method_traits {
  static constexpr bool is_method = false;
};

#define TROUPE_METHOD_TRAITS(qualifiers)  \
  template <class R, class C, class... P> \
  struct method_traits<R (C::*)(P...) qualifiers> : method_of<R, C, P...> {};
TROUPE_METHOD_TRAITS()
TROUPE_METHOD_TRAITS(const)
TROUPE_METHOD_TRAITS(noexcept)
TROUPE_METHOD_TRAITS(const noexcept)
TROUPE_METHOD_TRAITS(&)
TROUPE_METHOD_TRAITS(const&)
TROUPE_METHOD_TRAITS(&noexcept)
TROUPE_METHOD_TRAITS(const& noexcept)
#undef TROUPE_METHOD_TRAITS

// Returns why a T cannot be sent a call of Method with these arguments, or `none`.
template <class T, class Method, class... Given>
consteval misfit misfit_of_call() {
  using traits = method_traits<Method>;
  if constexpr (!traits::is_method) {
    return misfit::no_method;
  } else if constexpr (!std::is_base_of_v<typename traits::owner, T>) {
    return misfit::other_class;
  } else if constexpr (!std::is_convertible_v<T*, typename traits::owner*>) {
    return misfit::hidden_base;
  } else {
    return traits::template misfit_of_arguments<Given...>();
  }
}

}  // namespace troupe::detail
