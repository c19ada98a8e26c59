// ref::tell_every and ref::tell_after: messages that a timer sends.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>

#include "troupe/actor/ref.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/runtime/timer.hpp"

namespace troupe {

namespace actor {

// A timer of the runtime of that actor. `period` zero: once.
timer start_timer(const cell& actor, time_span span, time_span period,
                  unique_function<void()> sends, const timer_options& options);

// Sends a call of Method each time, unless the last one has not been handled yet.
template <class T, auto Method, class... Args>
class repeated_tell {
 public:
  repeated_tell(const ref<T>& receiver, std::stop_source ends, Args&&... args)
      : receiver_(receiver),
        ended_(receiver.watch()),
        ends_(std::move(ends)),
        given_(std::move(args)...) {}
  repeated_tell(repeated_tell&&) = default;

  void operator()() {
    if (ended_.ready()) {
      ends_.request_stop();
    } else if (last_.expired()) {
      send();
    }
  }

 private:
  void send() {
    // The message owns it, until its handler has ended or the message is discarded.
    auto unhandled = std::make_shared<char>();
    last_ = unhandled;
    try {
      receiver_.tell(
          [unhandled = std::move(unhandled), given = given_](T& self) mutable -> decltype(auto) {
            return std::apply(
                [&self](auto&... each) -> decltype(auto) {
                  return std::invoke(Method, self, std::move(each)...);
                },
                given);
          });
    } catch (const mailbox_full&) {
      // It will have space after one of the next periods.
    }
  }

  ref<T> receiver_;
  future<ended> ended_;
  std::stop_source ends_;
  std::tuple<Args...> given_;
  std::weak_ptr<char> last_;
};

}  // namespace actor

template <class T>
template <auto Method, class... Args>
timer ref<T>::tell_every(time_span period, Args... args) const {
  constexpr bool copyable = (std::is_copy_constructible_v<Args> && ...),
                 sendable = (detail::sendable_v<Args> && ...);
  static_assert(
      copyable,
      "troupe: tell_every: each period sends a copy of the arguments, which must be copyable");
  static_assert(sendable,
                "troupe: tell_every: an argument is a pointer, a view, an iterator, a lock or a "
                "reference wrapper: it would dangle or race. Give a value, or wrap it in "
                "troupe::unchecked");
  if constexpr (copyable && sendable) {
    if (!address_.refers()) refuse();
    if (period.count() <= 0)
      throw option_error("troupe: tell_every: the period must be longer than zero");
    std::stop_source ends;
    timer_options options;
    options.stop = ends.get_token();
    return actor::start_timer(
        *address_.get(), period, period,
        actor::repeated_tell<T, Method, Args...>(*this, std::move(ends), std::move(args)...),
        options);
  }
}

template <class T>
template <auto Method, class... Args>
timer ref<T>::tell_after(time_span span, Args... args) const {
  if (!address_.refers()) refuse();
  return actor::start_timer(
      *address_.get(), span, std::chrono::nanoseconds(0),
      [receiver = *this, ... given = std::move(args)]() mutable {
        receiver.template tell<Method>(std::move(given)...);
      },
      timer_options());
}

}  // namespace troupe
