// ref: the typed, counted address of an actor.
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

#include "troupe/actor/cell.hpp"
#include "troupe/actor/message.hpp"
#include "troupe/actor/method.hpp"
#include "troupe/actor/sendable.hpp"
#include "troupe/base/error.hpp"

namespace troupe {

// A counted address of an actor of class T. Copying and dropping: any thread, one atomic operation.
// When the last ref has gone and the actor has handled its mail, the actor is destroyed. A ref may outlive
// the runtime: messages through it are then dropped.
//
// Example:
//     struct Counter { int n = 0; void add(int k) { n += k; } };
//     troupe::runtime rt;
//     troupe::ref<Counter> counter = rt.spawn<Counter>();
//     counter.tell<&Counter::add>(5);                        // fire and forget
//     counter.tell([](Counter& self) { self.add(1); });      // any callable, in the actor's turn
//     rt.run();
template <class T>
class ref {
 public:
  // Refers to no actor; telling it anything is a usage_error.
  ref() = default;

  ref(const ref& other) noexcept : cell_(other.cell_) {
    if (cell_ != nullptr) actor::add_ref(*cell_);
  }
  ref(ref&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
  ref& operator=(ref other) noexcept {
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~ref() {
    if (cell_ != nullptr) actor::drop_ref(*cell_);
  }

  // Sends a call of Method with these arguments; returns at once. The arguments are converted to the
  // method's own parameter types and moved where they can only be moved. Messages of one sender to one
  // actor are handled in the order sent, and delivery is causal (P2). Any thread.
  // Cost: about 10 ns to an actor of the same worker. Throws std::bad_alloc, or what converting an argument throws.
  template <auto Method, class... Args>
  void tell(Args&&... args) const {
    using enum detail::misfit;
    constexpr detail::misfit found = detail::misfit_of_call<T, decltype(Method), Args...>();
    static_assert(found != no_method,
                  "troupe: tell: name a member function of the actor, &T::method, that is neither static nor &&-qualified; "
                  "for anything else tell it a lambda");
    static_assert(found != other_class, "troupe: tell: this method is not one of the actor's class");
    static_assert(found != hidden_base,
                  "troupe: tell: this method belongs to a private or ambiguous base of the actor; tell it a method of its own");
    static_assert(found != too_few,
                  "troupe: tell: the method has more parameters: default arguments are not part of its type, so give them too");
    static_assert(found != unfit, "troupe: tell: these arguments do not fit the method's parameters");
    static_assert(found != writes,
                  "troupe: tell: the method takes a reference that it could write through; the sender's object may be "
                  "gone by then. Take the parameter by value or by const reference");
    static_assert(found != refers,
                  "troupe: tell: a parameter of the method is a pointer, a view, an iterator or a reference wrapper: it would "
                  "dangle or race. Take a value, or wrap it in troupe::unchecked");
    static_assert(found != abstract_class,
                  "troupe: tell: a parameter of the method is of an abstract class, which a message cannot hold; take a "
                  "std::unique_ptr or a std::shared_ptr to it");
    static_assert(found != sliced,
                  "troupe: tell: an argument's class derives from the parameter's, so only the base would be sent; take a "
                  "std::unique_ptr to it, or static_cast it to the base if that is what you mean");
    static_assert(found != not_moved, "troupe: tell: an argument can only be moved; give it with std::move");
    static_assert(found != immovable,
                  "troupe: tell: an argument or parameter can be neither copied nor moved into the message; take a "
                  "std::unique_ptr to it");
    if constexpr (found == none) {
      using traits = detail::method_traits<decltype(Method)>;
      deliver(actor::make_message<typename traits::template message<T, Method>>(std::forward<Args>(args)...));
    }
  }

  // Sends a callable that the actor calls with itself, `f(T&)`, in one of its turns. It must own what it
  // captures: a captured reference dangles unseen by the compiler.
  template <class Callable>
  void tell(Callable&& callable) const {
    using stored = std::decay_t<Callable>;
    constexpr bool spelled = !std::is_member_pointer_v<stored>, fits = !spelled || std::is_invocable_v<stored&&, T&>;
    constexpr bool refers = !detail::sendable_v<stored>, kept = std::is_constructible_v<stored, Callable>;
    static_assert(spelled, "troupe: tell: name the method as a template argument: tell<&T::method>(...)");
    static_assert(fits, "troupe: tell: the callable must be callable with (T&)");
    static_assert(!fits || !refers,
                  "troupe: tell: the callable is or holds a pointer, a view, an iterator or a reference wrapper: it would "
                  "dangle or race. Tell a lambda that owns what it needs");
    static_assert(!fits || refers || kept, "troupe: tell: the callable can only be moved; give it with std::move");
    if constexpr (spelled && fits && !refers && kept) {
      deliver(actor::make_message<actor::callable_message<T, stored>>(std::forward<Callable>(callable)));
    }
  }

  // A method that is named as an argument: refused with the right spelling.
  template <class Member, class First, class... Rest>
    requires std::is_member_pointer_v<std::decay_t<Member>>
  void tell(Member&&, First&&, Rest&&...) const {
    static_assert(!std::is_member_pointer_v<std::decay_t<Member>>,
                  "troupe: tell: name the method as a template argument: tell<&T::method>(...)");
  }

  // A call of Method with its first arguments given: a value that an event source keeps and fires later
  // with the rest. Each firing is a tell.
  //
  //     auto on_click = counter.bind<&Counter::add>();  ... on_click(3);
  template <auto Method, class... First>
  auto bind(First... first) const {
    constexpr bool sendable = (detail::sendable_v<First> && ...), copyable = (std::is_copy_constructible_v<First> && ...);
    static_assert(sendable,
                  "troupe: bind: an argument is a pointer, a view, an iterator or a reference wrapper: it would dangle or "
                  "race. Give a value, or wrap it in troupe::unchecked");
    static_assert(copyable, "troupe: bind: each firing sends a copy, so the arguments given must be copyable");
    if constexpr (sendable && copyable) {
      return [to = *this, ... given = std::move(first)](auto&&... rest) {
        to.template tell<Method>(given..., std::forward<decltype(rest)>(rest)...);
      };
    } else {
      return [](auto&&...) {};
    }
  }

  // Ends the actor once it has handled the messages sent before; what is sent after becomes dead letters.
  void stop() const;

  explicit operator bool() const noexcept { return cell_ != nullptr; }
  friend bool operator==(const ref&, const ref&) noexcept = default;
  std::size_t hash() const noexcept { return std::hash<const void*>{}(cell_); }

 private:
  template <class U>
  friend class ref;
  friend struct ref_access;
  explicit ref(actor::cell* adopted) noexcept : cell_(adopted) {}

  void deliver(actor::message* mail) const {
    if (cell_ == nullptr) [[unlikely]] refuse(mail);
    actor::deliver(*cell_, *mail);
  }
  [[noreturn]] static void refuse(actor::message* mail) {
    mail->act(mail, nullptr, actor::message_act::discard);
    throw usage_error("troupe: this ref refers to no actor: assign it the result of spawn() before sending");
  }

  actor::cell* cell_ = nullptr;
};

// Between the library's own parts.
struct ref_access {
  template <class T>
  static ref<T> adopt(actor::cell* cell) noexcept {
    return ref<T>(cell);
  }
  template <class T>
  static actor::cell* cell_of(const ref<T>& r) noexcept {
    return r.cell_;
  }
};

namespace actor {
const char* stop_by_message(message* mail, void* object, message_act act);
void check_self(cell* running, const void* object);
}  // namespace actor

template <class T>
void ref<T>::stop() const {
  deliver(actor::make_message<actor::message>(&actor::stop_by_message));
}

// A ref of the actor whose handler or constructor is running, to keep or to send: troupe::self(this).
// Throws usage_error when `object` is not the running actor.
//
// Example:
//     struct Clock {
//       int left = 3;
//       void tick() { if (--left > 0) troupe::self(this).tell<&Clock::tick>(); }
//     };
//     troupe::runtime rt;
//     rt.spawn<Clock>().tell<&Clock::tick>();
//     rt.run();
template <class T>
ref<T> self(const T* object) {
  actor::cell* running = actor::current_cell();
  actor::check_self(running, object);
  actor::add_ref(*running);
  return ref_access::adopt<T>(running);
}

// Whatever the actor is: its address owns its part of it.
template <class T>
struct is_sendable<ref<T>> : std::true_type {};

}  // namespace troupe

template <class T>
struct std::hash<troupe::ref<T>> {
  std::size_t operator()(const troupe::ref<T>& r) const noexcept { return r.hash(); }
};
