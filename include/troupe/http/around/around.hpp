// around: functions in front of the handlers of all routes of a router, or of one route.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

// A handler of any type.
struct route_call {
  virtual ~route_call() = default;
  // Whether the handler is a coroutine.
  bool waits = false;
  // Whether it takes the request, in which it also finds the path's parameters.
  bool takes_request = false;
  // False: it answers without the body; the server then does not wait for the body.
  bool reads_body = true;
  std::size_t parameters = 0;
  // Call the handler. Return false if a parameter's text does not fit its type. run() is for
  // handlers that are no coroutines; start() is for coroutines, and makes the task, which the
  // caller awaits.
  virtual bool run(request& asked, const path_values& values, response& answer) const = 0;
  virtual bool start(request& asked, const path_values& values,
                     std::optional<task<response>>& later) const = 0;
};

// The handler behind a function in front of it. Call it once, in a co_await: it returns the
// handler's answer; a status_error from the handler is already converted to an answer. Lifetime: as
// the request.
class next_handler {
 public:
  next_handler(const route_call& handler, const path_values& values) noexcept
      : handler_(&handler), values_(&values) {}
  task<response> operator()(request& asked) const;

 private:
  const route_call* handler_;
  const path_values* values_;
};

// A function in front of a handler, of one of three forms. For the library's own use.
struct around_call {
  virtual ~around_call() = default;
  enum class form { before, after, around };
  virtual form which() const noexcept = 0;
  virtual std::optional<response> before(const request& asked) const = 0;
  virtual void after(const request& asked, response& answer) const = 0;
  virtual task<response> around(request& asked, next_handler next) const = 0;
};

// std::optional<response>(const request&): an answer in place of the handler's.
template <class F>
concept before_function = std::is_invocable_r_v < std::optional<response>,
const F&, const request& > ;
// void(const request&, response&): changes the answer, including the answer to an error.
template <class F>
concept after_function = std::is_invocable_v<const F&, const request&, response&>;
// task<response>(request&, next_handler).
template <class F>
concept around_function = std::is_invocable_r_v < task<response>,
const F&, request&, next_handler > ;

// One of these functions, kept in front of a handler.
template <class F>
class around_call_of final : public around_call {
  static_assert(before_function<F> || after_function<F> || around_function<F>,
                "troupe: a function in front of a handler is std::optional<response>(const "
                "request&), void(const request&, response&), or task<response>(request&, "
                "next_handler), and const, for several threads call it at a time");

 public:
  explicit around_call_of(F function) : function_(std::move(function)) {}
  form which() const noexcept override {
    if constexpr (before_function<F>) return form::before;
    return around_function<F> ? form::around : form::after;
  }
  std::optional<response> before([[maybe_unused]] const request& asked) const override {
    if constexpr (before_function<F>) return function_(asked);
    return std::nullopt;
  }
  void after([[maybe_unused]] const request& asked,
             [[maybe_unused]] response& answer) const override {
    if constexpr (!before_function<F> && after_function<F>) function_(asked, answer);
  }
  task<response> around(request& asked, next_handler next) const override {
    if constexpr (around_function<F>) {
      return function_(asked, next);
    } else {
      return next(asked);
    }
  }

 private:
  const F function_;
};

// The handler with the function in front of it. For the library's own use.
std::unique_ptr<const route_call> put_around(std::unique_ptr<const route_call> handler,
                                             std::shared_ptr<const around_call> function);

}  // namespace troupe::http
