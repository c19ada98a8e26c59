// ref: the typed, counted address of an actor. Its methods send messages to the actor.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "troupe/actor/bounded.hpp"
#include "troupe/actor/call.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/conditional_message.hpp"
#include "troupe/actor/consume.hpp"
#include "troupe/actor/method.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/actor/sendable.hpp"
#include "troupe/actor/supervision.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/base/time_span.hpp"

namespace troupe {

class timer;

namespace actor {
template <class T>
inline constexpr bool is_ref = false;

template <class Base, class Derived>
concept lies_at_a_fixed_distance = requires(Base* base) {
  static_cast<Derived*>(base);
};
[[noreturn]] void refuse_far_base(std::size_t offset);
// How many bytes the Base part lies behind the beginning of a Derived.
template <class Derived, class Base>
std::size_t offset_of_base() noexcept {
  // any address but null: a null pointer converts to null, without the offset of the base
  auto* const whole = reinterpret_cast<Derived*>(std::uintptr_t{1} << 20);
  return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(static_cast<Base*>(whole)) -
                                  reinterpret_cast<std::uintptr_t>(whole));
}
}  // namespace actor

// A counted address of an actor of class T. Messages go through it; the actor's object is never
// touched directly.
//
// Thread: any. Cost: one atomic operation to copy or drop a ref. Lifetime: refs keep the actor
// alive; when the last ref is dropped and the actor has handled its mail, the runtime destroys the
// actor. A ref may outlive the runtime: messages sent through it are then dropped.
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
  // Refers to no actor. A message sent through such a ref throws usage_error.
  ref() = default;

  ref(const ref& other) noexcept : address_(other.address_) { share(); }
  ref(ref&& other) noexcept : address_(std::exchange(other.address_, {})) {}
  // Converts a ref of a class that derives publicly from T: the new ref is of the same actor, as a
  // T. All operations work through it; only `consume` has further conditions. The two classes may
  // differ in `reentrant`: the actor's own class decides. Cost: a message to a base that does not
  // lie at the beginning of the object allocates one more block, in about 10 ns. Throws usage_error
  // if the base begins more than 32,767 bytes behind the beginning of the object.
  template <class Derived>
  requires(!std::is_same_v<Derived, T> && std::is_convertible_v<Derived*, T*> &&
           std::is_base_of_v<T, Derived>) ref(const ref<Derived>& other)
  noexcept(near<Derived>) : ref(ref<Derived>(other)) {}
  template <class Derived>
  requires(!std::is_same_v<Derived, T> && std::is_convertible_v<Derived*, T*> &&
           std::is_base_of_v<T, Derived>) ref(ref<Derived>&& other)
  noexcept(near<Derived>) : address_(part_of<Derived>(other.address_)) { other.address_ = {}; }
  ref& operator=(ref other) noexcept {
    std::swap(address_, other.address_);
    return *this;
  }
  ~ref() {
    if (address_.is_plain()) {
      actor::drop_ref(address_.plain());
    } else if (address_.refers()) [[unlikely]] {
      actor::drop_ref(*address_.get());
    }
  }

  // Sends a call of Method with these arguments and returns at once. The arguments are converted to
  // the method's own parameter types; an argument that can only be moved is moved. An actor handles
  // the messages of one sender in the order in which they were sent, and delivery is causal (P2).
  // Thread: any. Cost: about 10 ns to an actor of the same worker. Throws std::bad_alloc, an
  // exception from the conversion of an argument, or mailbox_full if the mailbox is bounded and
  // full (depending on its policy, see when_full.hpp).
  template <auto Method, class... Args>
  void tell(Args&&... args) const {
    tell_by<Method>([this]<class Message>(Message* mail) { this->deliver(mail); },
                    std::forward<Args>(args)...);
  }
  // Refused: the name denotes several methods (method.hpp). The same overloads of ask, send, bind
  // and tell_when below refuse it too.
  template <detail::several_methods Methods, class... Args>
  void tell(Args&&...) const = delete;

  // Sends a callable, which the actor calls with itself, `f(T&)`, in one of its turns. The callable
  // must own its captures: the compiler cannot detect a captured reference that will dangle.
  // Otherwise as tell() of a method.
  template <class Callable>
  void tell(Callable&& callable) const {
    tell_callable([this]<class Message>(Message* mail) { this->deliver(mail); },
                  std::forward<Callable>(callable));
  }

  // tell() that waits for space in a bounded mailbox: co_await it. The coroutine is suspended; no
  // thread blocks. Senders get space in the order in which they began to wait. Throws cancelled
  // when the actor that awaits it is stopped; then no message was sent.
  //
  // Example:
  //     struct Sink { int sum = 0; void put(int n) { sum += n; } };
  //     troupe::task<> feed(troupe::ref<Sink> sink) {
  //       for (int i = 0; i < 1000; ++i) co_await sink.send<&Sink::put>(i);
  //     }
  //     int main() {
  //       troupe::runtime rt;
  //       rt.spawn(feed(rt.spawn<Sink>({.mailbox = {.messages = 10}})));
  //       rt.run();
  //     }
  template <auto Method, class... Args>
  task<> send(Args... args) const {
    const ref receiver = *this;
    if (!receiver.address_.refers()) refuse();
    if (!receiver.address_.get()->is_bounded()) {
      receiver.template tell<Method>(std::move(args)...);
      co_return;
    }
    future<actor::permit> later = actor::wait_for_permit_of<T>(*receiver.address_.get());
    actor::permit permit = co_await std::move(later);
    receiver.template tell_into<Method>(permit, std::move(args)...);
  }
  template <detail::several_methods Methods, class... Args>
  task<> send(Args...) const = delete;

  // Refuses a method that is passed as an argument; the compile error shows the right spelling.
  template <class Member, class First, class... Rest>
  requires std::is_member_pointer_v<std::decay_t<Member>>
  void tell(Member&&, First&&, Rest&&...) const {
    static_assert(!std::is_member_pointer_v<std::decay_t<Member>>,
                  "troupe: tell: name the method as a template argument: tell<&T::method>(...)");
  }

  // Sends a message that the actor handles only once `predicate(const T&)` is true. The arguments
  // after `predicate` are the same as for tell(): a method with its arguments, or a callable. For
  // example, a queue actor handles `take` only while it is not empty.
  //
  // When: the actor calls the predicate when it reaches the message, and again after each later
  // message whose handler has finished. The message does not hold back the messages behind it. If
  // several waiting messages may be handled, the actor takes the one that it reached first.
  //
  // The predicate runs in the actor's turns, often, and must own its captures. An exception that it
  // throws is a failure of the actor, like an exception from the handler. A message that waits for
  // its predicate occupies no space in a bounded mailbox. It becomes a dead letter if the actor
  // ends first. A program that has nothing else left to do while such a message waits is stalled.
  // Cost: for each message that the actor handles, one call of each waiting predicate.
  //
  // Example:
  //     struct Till {
  //       int coins = 0;
  //       void put(int n) { coins += n; }
  //       void pay(int n) { coins -= n; }
  //     };
  //     troupe::runtime rt;
  //     auto till = rt.spawn<Till>();
  //     till.tell_when<&Till::pay>([](const Till& self) { return self.coins >= 10; }, 10);
  //     for (int i = 0; i < 3; ++i) till.tell<&Till::put>(4);
  //     rt.run();
  template <auto Method, class Predicate, class... Args>
  void tell_when(Predicate&& predicate, Args&&... args) const {
    if constexpr (actor::fits_guard<T, Predicate>()) {
      tell_by<Method>(
          [&]<class Message>(Message* mail) {
            this->deliver_guarded(std::forward<Predicate>(predicate), mail);
          },
          std::forward<Args>(args)...);
    }
  }
  template <detail::several_methods Methods, class Predicate, class... Args>
  void tell_when(Predicate&&, Args&&...) const = delete;
  template <class Predicate, class Callable>
  void tell_when(Predicate&& predicate, Callable&& callable) const {
    if constexpr (actor::fits_guard<T, Predicate>()) {
      tell_callable(
          [&]<class Message>(Message* mail) {
            this->deliver_guarded(std::forward<Predicate>(predicate), mail);
          },
          std::forward<Callable>(callable));
    }
  }

  // Sends a call of Method and returns a future of its result: the value that the method returns,
  // or the exception that it throws. A handler may return a value, a future, or a task; a task may
  // suspend the actor's turn. Thread: any. Errors: the future gets actor_stopped if the actor has
  // stopped, or stops before it answers. If a bounded mailbox is full and its policy is
  // when_full::suspend, the ask waits for space, in the order in which the waiting senders began to
  // wait; if a timeout or a stop token ends this wait, nothing was sent. Otherwise as tell().
  //
  // Example:
  //     struct Adder {
  //       int add(int a, int b) { return a + b; }
  //     };
  //     troupe::task<> use(troupe::ref<Adder> adder) {
  //       std::cout << co_await adder.ask<&Adder::add>(1, 2) << '\n';
  //     }
  //     int main() {
  //       troupe::runtime rt;
  //       rt.spawn(use(rt.spawn<Adder>()));
  //       rt.run();
  //     }
  template <auto Method, class... Args>
  [[nodiscard]] auto ask(Args&&... args) const {
    constexpr detail::misfit found = detail::misfit_of_call<T, decltype(Method), Args...>();
    TROUPE_CHECK_CALL(found, "ask");
    if constexpr (found == detail::misfit::none) {
      using traits = detail::method_traits<decltype(Method)>;
      constexpr bool answers = answerable<typename traits::result>;
      static_assert(answers,
                    "troupe: ask: the method returns a pointer, a view or a reference wrapper to "
                    "the actor's own data. Return a value, or wrap it in troupe::unchecked");
      if constexpr (answers)
        return ask_by<typename traits::template call<T, Method>>(std::forward<Args>(args)...);
    }
  }

  template <detail::several_methods Methods, class... Args>
  void ask(Args&&...) const = delete;

  // The same with a callable `f(T&)`, which the actor calls in one of its turns.
  template <class Callable>
  [[nodiscard]] auto ask(Callable&& callable) const {
    using stored = std::decay_t<Callable>;
    constexpr bool fits = std::is_invocable_v<stored&&, T&>, refers = !detail::sendable_v<stored>;
    constexpr bool kept = std::is_constructible_v<stored, Callable>;
    static_assert(fits, "troupe: ask: the callable must be callable with (T&)");
    static_assert(
        !fits || !refers,
        "troupe: ask: the callable is or holds a pointer, a view, an iterator, a lock or a "
        "reference wrapper: it would dangle or race. Ask with a lambda that owns its captures");
    static_assert(!fits || refers || kept,
                  "troupe: ask: the callable can only be moved; give it with std::move");
    if constexpr (fits && !refers && kept) {
      constexpr bool answers = answerable<std::invoke_result_t<stored&&, T&>>;
      static_assert(answers,
                    "troupe: ask: the callable returns a pointer, a view or a reference wrapper to "
                    "the actor's own data. Return a value, or wrap it in troupe::unchecked");
      if constexpr (answers)
        return ask_by<actor::callable_call<T, stored>>(std::forward<Callable>(callable));
    }
  }

  // Returns a function object that holds a ref, the method, and copies of its first arguments. An
  // event source keeps it and calls it later with the remaining arguments; each call is a tell().
  //
  //     auto on_click = counter.bind<&Counter::add>();  ... on_click(3);
  template <auto Method, class... First>
  auto bind(First... first) const {
    constexpr bool sendable = (detail::sendable_v<First> && ...),
                   copyable = (std::is_copy_constructible_v<First> && ...);
    static_assert(sendable,
                  "troupe: bind: an argument is a pointer, a view, an iterator, a lock or a "
                  "reference wrapper: it would dangle or "
                  "race. Give a value, or wrap it in troupe::unchecked");
    static_assert(
        copyable,
        "troupe: bind: each call sends a copy of the bound arguments, which must be copyable");
    if constexpr (sendable && copyable) {
      return [receiver = *this, ... given = std::move(first)](auto&&... rest) {
        receiver.template tell<Method>(given..., std::forward<decltype(rest)>(rest)...);
      };
    } else {
      return [](auto&&...) {};
    }
  }
  template <detail::several_methods Methods, class... First>
  void bind(First...) const = delete;

  // tell() of Method after each `period`, until the returned timer is cancelled or the actor ends.
  // A period is skipped while the actor has not handled the last call, or while its mailbox is
  // full: calls never queue up, and never overlap in a reentrant actor. Each call gets copies of
  // the arguments. The timer keeps the actor and the program alive. Thread: any. Cost: an armed
  // timer, and a message for each period. Errors: usage_error without an actor; option_error for a
  // period that is not longer than zero.
  //
  // Example:
  //     struct Meter { int n = 0; void tick(int by) { n += by; } };
  //     troupe::runtime rt({.policy = troupe::policy::simulated});
  //     auto meter = rt.spawn<Meter>();
  //     auto ticks = meter.tell_every<&Meter::tick>(std::chrono::seconds(1), 2);
  //     rt.after(std::chrono::seconds(10), [&ticks] { ticks.cancel(); });
  //     rt.run();
  template <auto Method, class... Args>
  timer tell_every(time_span period, Args... args) const;
  // tell() of Method, once, after `span`; the returned timer cancels it.
  template <auto Method, class... Args>
  timer tell_after(time_span span, Args... args) const;

  // Ends the actor once it has handled the messages that were sent before; messages sent later
  // become dead letters. A suspended turn is cancelled at once, and until the end so is each turn
  // that would suspend: the operation that it awaits throws cancelled. Thread: any; does not wait.
  // Throws usage_error without an actor, std::bad_alloc.
  void stop() const;
  // Ends the actor in its next turn, before any waiting message is handled; all of them become dead
  // letters. A running handler is not interrupted. A suspended handler is cancelled, and the actor
  // ends when that handler has finished. Thread: any; does not wait. Throws usage_error without an
  // actor, std::bad_alloc.
  void stop_now() const;

  // Ends the actor once it is quiet, and gives its object back: co_await the future, with a timeout
  // or a stop token as for an ask. The actor is quiet when it has handled all mail, and no call and
  // no message of tell_when() is waiting. Messages sent afterwards become dead letters; a watch()
  // of the actor gets `consumed`.
  //
  // An object that was passed to runtime::activate comes back as the very same object. An object
  // that spawn() constructed is moved out.
  //
  // Errors, in the future: usage_error if a spawned object's class cannot be moved or its actor has
  // a context; usage_error through a ref of a base class, unless the object was activated and the
  // base has a virtual destructor; usage_error while another consume() of the actor is under way;
  // actor_stopped if the actor ends in another way; deadlock in a handler of the actor itself. A
  // caller that gives up before the object is taken leaves the actor unchanged. A caller that gives
  // up at the very moment at which the object is taken loses the object.
  [[nodiscard]] future<std::unique_ptr<T>> consume() const {
    if (!address_.refers()) [[unlikely]]
      refuse();
    return actor::consume<T>(*address_.get(), address_.offset());
  }

  // Returns a future that is ready, with the reason, when the actor has ended. Neither a watch nor
  // its future keeps the actor alive; this ref does, like any ref. Thread: any.
  [[nodiscard]] future<ended> watch() const;

  // A number that identifies the actor in logs: no two living actors of one runtime have the same.
  // Texts about stalls, dumps, failures and dead letters name the actor by it, as in `Account #17`.
  // 0 if this ref refers to no actor. Thread: any.
  std::uint64_t id() const noexcept {
    return address_.refers() ? actor::id_of(*address_.get()) : 0;
  }

  explicit operator bool() const noexcept { return address_.refers(); }
#define TROUPE_NOT_CALLED                                                                   \
  "troupe: ref: a method of an actor is not called but sent: to.tell<&T::method>(...), or " \
  "co_await "                                                                               \
  "to.ask<&T::method>(...) for its result"
  template <int = 0 TROUPE_SAYS(TROUPE_NOT_CALLED)>
  T* operator->() const TROUPE_REFUSED(TROUPE_NOT_CALLED);
#undef TROUPE_NOT_CALLED
  friend bool operator==(const ref&, const ref&) noexcept = default;
  std::size_t hash() const noexcept { return std::hash<const void*>{}(address_.get()); }

 private:
  template <class U>
  friend class ref;
  friend struct ref_access;
  explicit ref(actor::address adopted) noexcept : address_(adopted) {}

  void share() const noexcept {
    if (address_.is_plain()) {
      actor::add_ref(address_.plain());
    } else if (address_.refers()) [[unlikely]] {
      actor::add_ref(*address_.get());
    }
  }

  template <class Derived>
  static constexpr bool near = sizeof(Derived) <= actor::address::offset_max;
  // The address of the T part of the actor whose Derived part is at `whole`.
  template <class Derived>
  static actor::address part_of(const actor::address& whole) noexcept(near<Derived>) {
    constexpr bool fixed = actor::lies_at_a_fixed_distance<T, Derived>;
    static_assert(
        fixed,
        "troupe: ref: the base class is a virtual base of the actor's, whose position a ref cannot "
        "compute: derive without `virtual`, or send by a ref of the actor's own class");
    if constexpr (fixed) {
      const std::size_t offset = whole.offset() + actor::offset_of_base<Derived, T>();
      const bool differs = actor::is_reentrant<T>() != actor::is_reentrant<Derived>();
      if (!whole.refers() || (offset == 0 && !differs && whole.is_plain())) return whole;
      if (offset > actor::address::offset_max) actor::refuse_far_base(offset);
      return actor::address(whole.get(), offset);
    } else {
      return {};
    }
  }

  template <class R>
  static constexpr bool answerable = std::is_void_v<typename actor::answer_of<R>::type> ||
                                     detail::sendable_v<typename actor::answer_of<R>::type>;

  template <class Put, class Callable>
  static void tell_callable(Put put, Callable&& callable) {
    using stored = std::decay_t<Callable>;
    constexpr bool spelled = !std::is_member_pointer_v<stored>,
                   fits = !spelled || std::is_invocable_v<stored&&, T&>;
    constexpr bool refers = !detail::sendable_v<stored>,
                   kept = std::is_constructible_v<stored, Callable>;
    static_assert(spelled,
                  "troupe: tell: name the method as a template argument: tell<&T::method>(...)");
    static_assert(fits, "troupe: tell: the callable must be callable with (T&)");
    static_assert(
        !fits || !refers,
        "troupe: tell: the callable is or holds a pointer, a view, an iterator, a lock or a "
        "reference wrapper: it would dangle or race. Tell a lambda that owns its captures");
    static_assert(!fits || refers || kept,
                  "troupe: tell: the callable can only be moved; give it with std::move");
    if constexpr (spelled && fits && !refers && kept) {
      if constexpr (actor::answer_of<std::invoke_result_t<stored&&, T&>>::is_coroutine) {
        using message =
            actor::coroutine_message<T, actor::callable_call<T, stored>, actor::no_answer>;
        put(actor::make_message<message>(actor::no_answer{}, std::forward<Callable>(callable)));
      } else {
        put(actor::make_message<actor::callable_message<T, stored>>(
            std::forward<Callable>(callable)));
      }
    }
  }

  // Makes the message and passes it to `put`, which delivers it.
  template <auto Method, class Put, class... Args>
  static void tell_by(Put put, Args&&... args) {
    constexpr detail::misfit found = detail::misfit_of_call<T, decltype(Method), Args...>();
    TROUPE_CHECK_CALL(found, "tell");
    if constexpr (found == detail::misfit::none) {
      using traits = detail::method_traits<decltype(Method)>;
      using message = typename traits::template message<T, Method>;
      if constexpr (actor::answer_of<typename traits::result>::is_coroutine) {
        put(actor::make_message<message>(actor::no_answer{}, std::forward<Args>(args)...));
      } else {
        put(actor::make_message<message>(std::forward<Args>(args)...));
      }
    }
  }

  template <auto Method, class... Args>
  TROUPE_NOINLINE void tell_into(actor::permit& permit, Args&&... args) const {
    tell_by<Method>(
        [&]<class Message>(Message* mail) {
          actor::deliver_told(*address_.get(), *for_part(mail));
          permit.use();  // the message now owns the permit
        },
        std::forward<Args>(args)...);
  }

  // Never inlined: a coroutine that asks must not keep the address of a thread-local across a
  // suspension, after which it may run on another thread.
  template <class Call, class... Args>
  TROUPE_NOINLINE auto ask_by(Args&&... args) const {
    using answer = actor::answer_of<std::invoke_result_t<Call&, T&>>;
    if (!address_.refers()) [[unlikely]]
      refuse();
    actor::cell& callee = *address_.get();
    const bool full = callee.is_bounded() && !actor::take_permit(callee);
    if (full && !actor::ask_waits_for_room(callee)) [[unlikely]] {
      promise<typename answer::type> refused;
      future<typename answer::type> later = refused.get_future();
      refused.set_exception(actor::full_error(callee));
      return later;
    }
    try {
      if constexpr (answer::is_coroutine) {
        return ask_coroutine<Call, typename answer::type>(full, std::forward<Args>(args)...);
      } else {
        using message = actor::asked_message<T, Call>;
        message& mail = *actor::make_message<message>(std::forward<Args>(args)...);
        future<typename answer::type> later = tasks::future_access::future_of(mail);
        actor::link_ask(mail.link, callee, &message::act_on);
        deliver_ask(full, *for_part(&mail), mail);
        return later;
      }
    } catch (...) {
      if (callee.is_bounded() && !full) actor::give_permit_back(callee);
      throw;
    }
  }

  void deliver_ask(bool full, actor::message& mail, const tasks::shared_state& answer) const {
    full ? actor::deliver_when_room(*address_.get(), mail, answer)
         : actor::deliver(*address_.get(), mail);
  }

  template <class Call, class Answer, class... Args>
  future<Answer> ask_coroutine(bool full, Args&&... args) const {
    using message = actor::coroutine_message<T, Call, actor::answer_to<Answer>>;
    auto& state =
        *::new (memory::allocate(sizeof(tasks::ask_state<Answer>))) tasks::ask_state<Answer>;
    promise<Answer> promised = tasks::future_access::promise_of<Answer>(state);
    future<Answer> later = promised.get_future();
    actor::link_ask(state.link, *address_.get(), &message::act_on);
    deliver_ask(full,
                *for_part(actor::make_message<message>(
                    actor::answer_to<Answer>{std::move(promised)}, std::forward<Args>(args)...)),
                state);
    return later;
  }

  template <class Message>
  void deliver(Message* mail) const {
    if (!address_.is_plain()) [[unlikely]]
      return deliver_to_part(mail);
    deliver_to(address_.plain(), mail);
  }
  static void deliver_to(actor::cell& callee, actor::message* mail) {
    if (callee.is_bounded()) [[unlikely]] {
      return actor::take_permit(callee) ? actor::deliver_with_permit(callee, *mail)
                                        : actor::refuse_full(callee, *mail);
    }
    actor::deliver_told(callee, *mail);
  }
  template <class Message>
  TROUPE_NOINLINE void deliver_to_part(Message* mail) const {
    if (!address_.refers()) {
      mail->act(mail, nullptr, actor::message_act::discard);
      refuse();
    }
    deliver_to(*address_.get(), for_part(mail));
  }
  // Takes ownership of the message, even if it throws.
  template <class Message>
  actor::message* for_part(Message* mail) const {
    if (address_.is_plain()) [[likely]]
      return mail;
    return wrap_for_part(mail);
  }
  template <class Message>
  TROUPE_NOINLINE actor::part_message<Message>* wrap_for_part(Message* mail) const {
    try {
      return actor::make_message<actor::part_message<Message>>(static_cast<actor::message*>(mail),
                                                               address_.offset());
    } catch (...) {
      mail->act(mail, nullptr, actor::message_act::discard);
      throw;
    }
  }
  template <class Predicate, class Message>
  void deliver_guarded(Predicate&& predicate, Message* mail) const {
    if (address_.is_plain()) [[likely]]
      return deliver_to(address_.plain(),
                        actor::guard<T, Message>(std::forward<Predicate>(predicate), mail));
    if (!address_.refers()) return deliver(mail);  // deliver() refuses it
    auto holds = [when = std::decay_t<Predicate>(std::forward<Predicate>(predicate)),
                  offset = address_.offset()](const std::byte& object) -> bool {
      return static_cast<bool>(
          std::invoke(when, *static_cast<const T*>(static_cast<const void*>(&object + offset))));
    };
    deliver_to(*address_.get(), actor::guard<std::byte, actor::part_message<Message>>(
                                    std::move(holds), wrap_for_part(mail)));
  }
  [[noreturn]] static void refuse() {
    throw usage_error(
        "troupe: this ref refers to no actor: assign it the result of spawn() before sending");
  }

  actor::address address_;
};

// Access for other parts of the library; not for users.
struct ref_access {
  template <class T>
  static ref<T> adopt(actor::cell* cell) noexcept {
    return ref<T>(actor::address(cell));
  }
  template <class T>
  static ref<T> adopt_part(actor::cell& cell, std::size_t offset) noexcept {
    return ref<T>(offset == 0 && cell.type->reentrant == actor::is_reentrant<T>()
                      ? actor::address(&cell)
                      : actor::address(&cell, offset));
  }
  template <class T>
  static actor::cell* cell_of(const ref<T>& r) noexcept {
    return r.address_.get();
  }
};

namespace actor {
const char* stop_by_message(message* mail, void* object, message_act act);
const char* cancel_by_message(message* mail, void* object, message_act act);
const char* stop_now_by_message(message* mail, void* object, message_act act);
void deliver_urgent(cell& to, message& mail);
future<ended> watch(cell& actor);
}  // namespace actor

template <class T>
void ref<T>::stop() const {
  if (!address_.refers()) [[unlikely]]
    refuse();
  actor::deliver(*address_.get(), *actor::make_message<actor::message>(&actor::stop_by_message));
  actor::deliver_urgent(*address_.get(),
                        *actor::make_message<actor::message>(&actor::cancel_by_message));
}

template <class T>
void ref<T>::stop_now() const {
  if (!address_.refers()) [[unlikely]]
    refuse();
  actor::deliver_urgent(*address_.get(),
                        *actor::make_message<actor::message>(&actor::stop_now_by_message));
}

template <class T>
future<ended> ref<T>::watch() const {
  if (!address_.refers()) [[unlikely]]
    refuse();
  return actor::watch(*address_.get());
}

template <class T>
any_ref::any_ref(const ref<T>& watched) noexcept : cell_(ref_access::cell_of(watched)) {
  if (cell_ != nullptr) actor::add_ref(*cell_);
}

template <class T>
inline constexpr bool actor::is_ref<ref<T>> = true;

// A ref is always sendable: its address owns its share of the actor.
template <class T>
struct is_sendable<ref<T>> : std::true_type {};

#undef TROUPE_CHECK_CALL

}  // namespace troupe

template <class T>
struct std::hash<troupe::ref<T>> {
  std::size_t operator()(const troupe::ref<T>& r) const noexcept { return r.hash(); }
};
