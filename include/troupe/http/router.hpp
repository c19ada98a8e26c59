// router: maps the paths of requests to handlers.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/http/around/around.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

struct file_options;

// Options of one route.
struct route_options {
  // Maximum bytes of a request's body; 0 (default): the server's limit.
  std::size_t body_bytes = 0;
  // As server_options::decoded_body_bytes; 0 (default): the server's limit.
  std::size_t decoded_body_bytes = 0;
};

namespace routes {

template <class Arg>
inline constexpr bool is_request = std::is_same_v<std::remove_cvref_t<Arg>, request>;

template <bool IsConst, class Result, class... Args>
struct signature {
  using result = Result;
  using all = std::tuple<std::decay_t<Args>...>;
  static constexpr bool is_known = true;
  static constexpr bool is_const = IsConst;  // several threads may call it at the same time
  // Each of these three detects a parameter that is refused: a reference through which the handler
  // could change the value that it got, a copy of the request, a pointer to it.
  static constexpr bool changes_values =
      ((std::is_lvalue_reference_v<Args> && !std::is_const_v<std::remove_reference_t<Args>> &&
        !is_request<Args>) ||
       ...);
  static constexpr bool copies_request =
      ((is_request<Args> && !std::is_lvalue_reference_v<Args>) || ...);
  static constexpr bool points_to_request =
      ((std::is_pointer_v<std::decay_t<Args>> &&
        is_request<std::remove_pointer_t<std::decay_t<Args>>>) ||
       ...);
  // Whether the request, if the handler takes it, is the first parameter, and only that one.
  static constexpr bool begins_with_request = [] {
    [[maybe_unused]] bool others = false;
    bool ordered = true;
    ((ordered = ordered && !(others && is_request<Args>), others = true), ...);
    return ordered;
  }();
  static constexpr bool takes_path_values =
      ((is_request<Args> || text_value<std::decay_t<Args>>)&&...);
  static constexpr bool has_references = ((std::is_reference_v<Args> && !is_request<Args>) || ...);
};
struct no_signature {
  static constexpr bool is_known = false;
};
template <class F>
struct signature_of_call : no_signature {};
template <class R, class T, class... Args>
struct signature_of_call<R (T::*)(Args...)> : signature<false, R, Args...> {};
template <class R, class T, class... Args>
struct signature_of_call<R (T::*)(Args...) noexcept> : signature<false, R, Args...> {};
template <class R, class T, class... Args>
struct signature_of_call<R (T::*)(Args...) const> : signature<true, R, Args...> {};
template <class R, class T, class... Args>
struct signature_of_call<R (T::*)(Args...) const noexcept> : signature<true, R, Args...> {};
template <class R, class T, class... Args>
struct signature_of_call<R (T::*)(Args...) const&> : signature<true, R, Args...> {};
template <class R, class T, class... Args>
struct signature_of_call<R (T::*)(Args...) const& noexcept> : signature<true, R, Args...> {};
template <class R, class... Args>
struct signature_of_call<R (*)(Args...)> : signature<true, R, Args...> {};  // a static operator()
template <class R, class... Args>
struct signature_of_call<R (*)(Args...) noexcept> : signature<true, R, Args...> {};
template <class T>
struct signature_of : no_signature {};
template <class T>
requires requires { &T::operator(); }
struct signature_of<T> : signature_of_call<decltype(&T::operator())> {};
template <class R, class... Args>
struct signature_of<R (*)(Args...)> : signature<true, R, Args...> {};
template <class R, class... Args>
struct signature_of<R (*)(Args...) noexcept> : signature<true, R, Args...> {};

// The types of the path's parameters: the handler's parameters without the request, if it takes the
// request.
template <class Tuple>
struct without_request {
  static constexpr bool had = false;
  using rest = Tuple;
};
// In the tuple `request` means a reference, since a request cannot be copied.
template <class... Rest>
struct without_request<std::tuple<request, Rest...>> {
  static constexpr bool had = true;
  using rest = std::tuple<Rest...>;
};

enum class flaw {
  none,
  is_member,
  has_no_types,
  is_mutable,
  is_not_moved,
  points_to_request,
  copies_request,
  request_comes_late,
  changes_values,
  takes_other_values,
  answers_otherwise
};

// The first reason why no call_of can be made for this handler, or `none`.
template <class Handler, class Given>
consteval flaw flaw_of() {
  using how = signature_of<Handler>;
  if constexpr (std::is_member_function_pointer_v<Handler>) {
    return flaw::is_member;
  } else if constexpr (!how::is_known) {
    return flaw::has_no_types;
  } else if constexpr (!how::is_const) {
    return flaw::is_mutable;
  } else if constexpr (!std::constructible_from<Handler, Given>) {
    return flaw::is_not_moved;
  } else if constexpr (how::points_to_request) {
    return flaw::points_to_request;
  } else if constexpr (how::copies_request) {
    return flaw::copies_request;
  } else if constexpr (!how::begins_with_request) {
    return flaw::request_comes_late;
  } else if constexpr (how::changes_values) {
    return flaw::changes_values;
  } else if constexpr (!how::takes_path_values) {
    return flaw::takes_other_values;
  } else if constexpr (!std::is_same_v<typename how::result, response> &&
                       !std::is_same_v<typename how::result, task<response>>) {
    return flaw::answers_otherwise;
  } else {
    return flaw::none;
  }
}

// Whether a call_of can be made for this handler. If not, one compile error names the reason.
template <class Handler, class Given>
consteval bool is_handler() {
  constexpr flaw found = flaw_of<Handler, Given>();
  static_assert(found != flaw::is_member,
                "troupe: a member function is no HTTP handler, for it has no object: write a "
                "lambda that captures the object and calls it");
  static_assert(found != flaw::has_no_types,
                "troupe: an HTTP handler is a function, or an object with one operator() whose "
                "parameters have types: write "
                "const troupe::http::request& in place of auto, for a path's parameters are "
                "converted to the types that it names");
  static_assert(found != flaw::is_mutable,
                "troupe: an HTTP handler is called by several threads at a time and cannot change "
                "its captures: its operator() is const. Leave out `mutable`, and keep data that "
                "changes in an actor, a troupe::guarded or a std::atomic");
  static_assert(found != flaw::is_not_moved,
                "troupe: this HTTP handler cannot be copied: hand it over with std::move()");
  static_assert(found != flaw::points_to_request,
                "troupe: an HTTP handler takes the request as const troupe::http::request& or "
                "troupe::http::request&, not as a pointer");
  static_assert(found != flaw::copies_request,
                "troupe: an HTTP handler takes the request as const troupe::http::request& or "
                "troupe::http::request&, for it cannot be copied");
  static_assert(found != flaw::request_comes_late,
                "troupe: an HTTP handler takes the request first, and once, and the path's "
                "parameters behind it: write "
                "(const troupe::http::request&, std::string) and not (std::string, const "
                "troupe::http::request&)");
  static_assert(found != flaw::changes_values,
                "troupe: an HTTP handler takes a path's parameter by value or as a const "
                "reference, not as a reference that it could write to");
  static_assert(found != flaw::takes_other_values,
                "troupe: an HTTP handler's parameters after the request are the path's: each is a "
                "number, a bool, a std::string or a std::string_view, or is made from a "
                "std::string_view; read the body from the request");
  static_assert(found != flaw::answers_otherwise,
                "troupe: an HTTP handler returns troupe::http::response or "
                "troupe::task<troupe::http::response>");
  return found == flaw::none;
}

// A handler of this type as a route_call. run() and start() convert the path's values to a tuple of
// the handler's parameter types, and call the handler with it.
template <class Handler>
class call_of final : public route_call {
  using how = signature_of<Handler>;
  using split = without_request<typename how::all>;
  using typed_values = typename split::rest;
  static constexpr bool is_coroutine = std::is_same_v<typename how::result, task<response>>;

 public:
  explicit call_of(Handler handler) : handler_(std::move(handler)) {
    waits = is_coroutine;
    takes_request = split::had;
    parameters = std::tuple_size_v<typed_values>;
  }
  bool run(request& asked, const path_values& given, response& answer) const override {
    if constexpr (!is_coroutine) {
      typed_values typed;
      if (!fill(given, typed, std::make_index_sequence<std::tuple_size_v<typed_values>>()))
        return false;
      answer = call(asked, typed);
    }
    return true;
  }
  bool start(request& asked, const path_values& given,
             std::optional<task<response>>& later) const override {
    if constexpr (is_coroutine) {
      typed_values typed;
      if (!fill(given, typed, std::make_index_sequence<std::tuple_size_v<typed_values>>()))
        return false;
      if constexpr (how::has_references) {
        later.emplace(call_keeping(asked, std::move(typed)));
      } else {
        later.emplace(call(asked, typed));
      }
    }
    return true;
  }

 private:
  template <std::size_t... I>
  static bool fill([[maybe_unused]] const path_values& given, [[maybe_unused]] typed_values& typed,
                   std::index_sequence<I...>) {
    return (values::from_text(given.value[I], std::get<I>(typed)) && ...);
  }
  typename how::result call([[maybe_unused]] request& asked, typed_values& typed) const {
    return std::apply(
        [&](auto&... each) {
          if constexpr (split::had) {
            return handler_(asked, std::move(each)...);
          } else {
            return handler_(std::move(each)...);
          }
        },
        typed);
  }
  // Keeps the values in a frame around the handler, since a coroutine reads its reference
  // parameters later. Cost: one more frame than for a handler that takes values.
  task<response> call_keeping(request& asked, typed_values typed) const {
    task<response> running = call(asked, typed);
    co_return co_await std::move(running);
  }
  Handler handler_;
};

}  // namespace routes

// Maps paths to handlers.
//
// Patterns: "/users/{id}/posts/{post}" has two parameters, each for one segment that is not empty;
// "/files/{path...}" takes the rest of the path, which may be empty. A pattern has at most eight
// parameters. An encoded slash (%2F) does not separate
// segments; the parameter's value contains it as a slash. Among the patterns for a method, a
// literal segment has priority over a parameter, and a parameter over a rest; the names of
// parameters make no difference.
//
// A handler is a function, or a const callable. It may take the request first, and then takes one
// parameter for each parameter of the pattern; a handler that takes only the request reads them by
// name (request::path<int>("id")). It returns a response, or is a coroutine that returns one at its
// end. Thread: any, and several threads at the same time. A value that does not fit its type, such
// as text for a number, is answered 404. The handler of GET also answers HEAD, without the body.
// OPTIONS is answered with the path's methods. A method that the path does not have is answered
// 405, an unknown path 404.
//
// Example:
//     troupe::http::router routes;
//     routes.get("/", [] { return troupe::http::response::text("hello"); });
//     routes.get("/users/{id}", [](const troupe::http::request&, int id) {
//       return troupe::http::response::text("user " + std::to_string(id));
//     });
//     routes.put("/notes/{name}",
//                [](troupe::http::request& asked,
//                   std::string name) -> troupe::task<troupe::http::response> {
//                  const std::string_view text = co_await asked.read_all();
//                  co_return troupe::http::response::text(name + " has " +
//                                                         std::to_string(text.size()) + " bytes");
//                });
class router {
 public:
  router();
  router(router&&) noexcept;
  router& operator=(router&&) noexcept;
  ~router();

  // Add a handler for a method and a pattern. del() is for DELETE. Throw usage_error if the pattern
  // is malformed or was already added for this method, if the method can have no routes (CONNECT),
  // or if the handler's number of parameters differs from the pattern's.
  template <class Handler>
  router& get(std::string_view pattern, Handler&& handler, const route_options& options = {}) {
    return add(method::get, pattern, std::forward<Handler>(handler), options);
  }
  template <class Handler>
  router& post(std::string_view pattern, Handler&& handler, const route_options& options = {}) {
    return add(method::post, pattern, std::forward<Handler>(handler), options);
  }
  template <class Handler>
  router& put(std::string_view pattern, Handler&& handler, const route_options& options = {}) {
    return add(method::put, pattern, std::forward<Handler>(handler), options);
  }
  template <class Handler>
  router& patch(std::string_view pattern, Handler&& handler, const route_options& options = {}) {
    return add(method::patch, pattern, std::forward<Handler>(handler), options);
  }
  template <class Handler>
  router& del(std::string_view pattern, Handler&& handler, const route_options& options = {}) {
    return add(method::remove, pattern, std::forward<Handler>(handler), options);
  }
  template <class Handler>
  router& add(method on, std::string_view pattern, Handler&& handler,
              const route_options& options = {}) {
    using kept = std::decay_t<Handler>;
    if constexpr (routes::is_handler<kept, Handler>()) {
      add_call(on, pattern,
               std::make_unique<routes::call_of<kept>>(kept(std::forward<Handler>(handler))),
               options);
    }
    return *this;
  }
  // Removes the routes of this pattern for one method, or for all methods; the names of the
  // pattern's parameters make no difference. Returns the number of removed routes, 0 if there were
  // none. files() adds routes of GET with a pattern that ends with "{path...}". Throws usage_error
  // for a malformed pattern, and after the router was moved into a server, which keeps its routes
  // unchanged.
  std::size_t remove(std::string_view pattern);
  std::size_t remove(method removed, std::string_view pattern);
  template <class Handler>
  [[deprecated(
      "troupe: router::remove takes a route away; a handler of DELETE is added by del()")]] router&
  remove(std::string_view pattern, Handler handler, const route_options& options = {}) {
    return del(pattern, std::move(handler), options);
  }
  // Answers GET with the files in a folder; `prefix` ends with '/'. See files.hpp. Throws
  // usage_error, and io_error if there is no such folder.
  router& files(std::string_view prefix, const std::string& folder);
  router& files(std::string_view prefix, const std::string& folder, const file_options& options);

  // Puts a function in front of the handlers of all routes that were added so far, or of one
  // pattern: the function that was added last is called first. It is one of
  //     std::optional<response>(const request&)      an answer in place of the handler's
  //     void(const request&, response&)              changes the answer, of an error as well
  //     task<response>(request&, next_handler)       calls the handler, or does not
  // and const, since several threads may call it at the same time. The third form makes each
  // handler a coroutine. A function in front of all routes is in front of the answers to requests
  // without a route as well (404, 405, OPTIONS), which are made without their bodies. Errors:
  // usage_error for a pattern that has no routes.
  //
  // Example (declarations):
  //     #include <troupe/http/around/limits.hpp>
  //     void protect(troupe::http::router& routes) {
  //       routes.around(troupe::http::rate_per({.tokens = 100}));
  //       routes.around([](const troupe::http::request&, troupe::http::response& answer) {
  //         answer.field("Cache-Control", "no-store");
  //       });
  //     }
  template <class F>
  router& around(F&& function) {
    return add_around({}, make_around(std::forward<F>(function)), answers_options<F>);
  }
  template <class F>
  router& around(std::string_view pattern, F&& function) {
    return add_around(pattern, make_around(std::forward<F>(function)), answers_options<F>);
  }

  // The rest is for the library's own use.
  // The path of a page that shows the program: tools print its address. Empty: there is no such
  // page.
  void note_page(std::string path);
  const std::string& page() const noexcept;
  // Throws usage_error if the routes were moved away, for instance into a server.
  void check_is_here() const;
  // The handler for one method and pattern.
  struct route {
    std::unique_ptr<const route_call> call;
    route_options options;
    std::vector<std::string> names;  // of the pattern's parameters
    std::string pattern;
  };
  struct route_entry;
  struct found {
    const route* handler = nullptr;  // null: none for this method
    // if `handler` is null: one bit for each method that the path has; 0: no such path
    unsigned methods = 0;
    path_values values;
  };
  // The route that answers this request.
  found find(method by, std::string_view path) const;
  // The handler of requests without a route: null if no function is in front of all routes.
  const route* otherwise() const noexcept;
  // The answer to such a request. `methods`: the methods of its path, as found::methods.
  static response no_route(method asked, unsigned methods);
  // As found::methods, of all paths together: for "OPTIONS *".
  unsigned all_methods() const noexcept;
  // The value of the header Allow for found::methods, for instance "GET, HEAD, OPTIONS".
  static std::string allowed(unsigned methods);

 private:
  template <class F>
  static std::shared_ptr<const around_call> make_around(F&& function) {
    using kept = std::decay_t<F>;
    return std::make_shared<around_call_of<kept>>(kept(std::forward<F>(function)));
  }
  template <class F>
  static constexpr bool answers_options = requires {
    requires std::decay_t<F>::answers_options;
  };
  router& add_around(std::optional<std::string_view> pattern,
                     const std::shared_ptr<const around_call>& function, bool options);
  std::size_t take_away(std::string_view pattern, unsigned methods);
  void add_call(method on, std::string_view pattern, std::unique_ptr<route_call> call,
                const route_options& options);
  struct table;
  std::unique_ptr<table> table_;
};

}  // namespace troupe::http
