// call: a message to a durable actor on its way into the store. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/durable/codec.hpp"
#include "troupe/durable/message_id.hpp"
#include "troupe/durable/storage.hpp"
#include "troupe/task/future.hpp"

namespace troupe::durable {

class turn;

// The return value of a handler of a class with events: the events, and the answer.
template <class Event, class Answer = void>
struct changes {
  Answer answer{};
  std::vector<Event> events{};
};
template <class Event>
struct changes<Event, void> {
  std::vector<Event> events{};
};

namespace parts {

class engine;
struct turn_state;

// The party that waits for an answer, or for a commit. Exactly one of its functions is called,
// once.
class answer_to {
 public:
  answer_to() = default;
  answer_to(const answer_to&) = delete;
  answer_to& operator=(const answer_to&) = delete;
  virtual ~answer_to() = default;
  virtual void give(std::span<const std::byte> value) noexcept = 0;
  virtual void fail(const std::exception_ptr& why) noexcept = 0;

  std::unique_ptr<answer_to> next;  // another one that waits for the same
};

template <class T>
class answer_of final : public answer_to {
 public:
  future<T> get_future() { return answer_.get_future(); }
  void give(std::span<const std::byte> value) noexcept override {
    try {
      if constexpr (std::is_void_v<T>) {
        answer_.set_value();
      } else {
        answer_.set_value(decode<T>(value));
      }
    } catch (...) {
      answer_.set_exception(std::current_exception());
    }
  }
  void fail(const std::exception_ptr& why) noexcept override { answer_.set_exception(why); }

 private:
  promise<T> answer_;
};

// The parameters and the result of a member function of a durable class.
template <class Method>
struct method_of;
template <class Class, class Result, bool Turns, bool Const, class... Args>
struct method_facts {
  using owner = Class;
  using returned = Result;
  using arguments = std::tuple<std::decay_t<Args>...>;
  static constexpr bool takes_turn = Turns;
  static constexpr bool is_const = Const;
};
template <class C, class R, class... A>
struct method_of<R (C::*)(A...)> : method_facts<C, R, false, false, A...> {};
template <class C, class R, class... A>
struct method_of<R (C::*)(turn&, A...)> : method_facts<C, R, true, false, A...> {};
template <class C, class R, class... A>
struct method_of<R (C::*)(A...) const> : method_facts<C, R, false, true, A...> {};
template <class C, class R, class... A>
struct method_of<R (C::*)(turn&, A...) const> : method_facts<C, R, true, true, A...> {};
template <class C, class R, class... A>
struct method_of<R (C::*)(A...) noexcept> : method_facts<C, R, false, false, A...> {};
template <class C, class R, class... A>
struct method_of<R (C::*)(turn&, A...) noexcept> : method_facts<C, R, true, false, A...> {};
template <class C, class R, class... A>
struct method_of<R (C::*)(A...) const noexcept> : method_facts<C, R, false, true, A...> {};
template <class C, class R, class... A>
struct method_of<R (C::*)(turn&, A...) const noexcept> : method_facts<C, R, true, true, A...> {};

template <class T>
struct answer_type {
  using type = T;
};
template <class Event, class Answer>
struct answer_type<changes<Event, Answer>> {
  using type = Answer;
};
template <class T>
inline constexpr bool is_changes = false;
template <class Event, class Answer>
inline constexpr bool is_changes<changes<Event, Answer>> = true;

template <class T>
struct awaited_of {
  using type = T;
  static constexpr bool is_task = false;
};
template <class T>
struct awaited_of<task<T>> {
  using type = T;
  static constexpr bool is_task = true;
};

// The bytes of a call's arguments.
template <class Facts, class... Args>
bytes encode_arguments(Args&&... args) {
  using arguments = typename Facts::arguments;
  static_assert(std::tuple_size_v<arguments> == sizeof...(Args),
                "troupe: durable: the method takes another number of arguments; the turn is not "
                "given, and default arguments are not part of a method's type");
  static_assert(std::is_constructible_v<arguments, Args...>,
                "troupe: durable: these arguments do not fit the method's parameters");
  if constexpr (sizeof...(Args) == 0) {
    return {};
  } else {
    return encode(arguments(std::forward<Args>(args)...));
  }
}

// Two addresses that identify a class and a method.
template <class T>
inline char class_tag = 0;
template <auto Method>
inline char method_tag = 0;

struct request {
  const void* kind = nullptr;
  const void* method = nullptr;
  std::string key;
  bytes arguments;
  message_id id;  // none: a random one
  bool is_post = false;
  std::unique_ptr<answer_to> answer;
};

// Never throws: a failure is the answer.
void send(const std::shared_ptr<engine>& engine, request request) noexcept;
// From a handler.
void send_from(turn_state& from, request request);
void ask_from(turn_state& from, request request) noexcept;

}  // namespace parts
}  // namespace troupe::durable
