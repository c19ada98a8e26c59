// router: which handler answers which path.
#pragma once

#include <array>
#include <charconv>
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

#include "troupe/http/message.hpp"
#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

struct file_options;

// What the parameters of a pattern stand for in a path, decoded.
struct path_values {
  static constexpr std::size_t most = 8;
  std::array<std::string_view, most> value;
  std::size_t count = 0;
};

// A handler of any type.
struct route_call {
  virtual ~route_call() = default;
  // It is a coroutine.
  bool waits = false;
  std::size_t parameters = 0;
  // False when a parameter is none of its type. The first for handlers that do not wait.
  virtual bool run(request& asked, const path_values& values, response& answer) const = 0;
  virtual bool start(request& asked, const path_values& values, std::optional<task<response>>& later) const = 0;
};

struct route_options {
  // Bytes of a body; 0 (default): as the server's.
  std::size_t body_bytes = 0;
};

namespace routes {

template <class T>
bool from_path(std::string_view text, T& to) {
  if constexpr (std::is_same_v<T, bool>) {
    to = text == "true" || text == "1";
    return to || text == "false" || text == "0";
  } else if constexpr (std::integral<T> || std::floating_point<T>) {
    const auto [rest, bad] = std::from_chars(text.data(), text.data() + text.size(), to);
    return bad == std::errc{} && rest == text.data() + text.size();
  } else {
    static_assert(std::constructible_from<T, std::string_view>,
                  "troupe: a path's parameter is a number, a bool, a std::string or a std::string_view");
    to = T(text);
    return true;
  }
}

template <class Result, class... Args>
struct signature {
  using result = Result;
  using all = std::tuple<std::decay_t<Args>...>;
  static constexpr std::size_t size = sizeof...(Args);
};
template <class T>
struct signature_of : signature_of<decltype(&T::operator())> {};
template <class R, class... Args>
struct signature_of<R (*)(Args...)> : signature<R, Args...> {};
template <class R, class... Args>
struct signature_of<R (*)(Args...) noexcept> : signature<R, Args...> {};
template <class R, class T, class... Args>
struct signature_of<R (T::*)(Args...)> : signature<R, Args...> {};
template <class R, class T, class... Args>
struct signature_of<R (T::*)(Args...) const> : signature<R, Args...> {};
template <class R, class T, class... Args>
struct signature_of<R (T::*)(Args...) const noexcept> : signature<R, Args...> {};

template <class Tuple>
struct without_request {
  static constexpr bool had = false;
  using rest = Tuple;
};
// It stands for a reference: a request cannot be copied.
template <class... Rest>
struct without_request<std::tuple<request, Rest...>> {
  static constexpr bool had = true;
  using rest = std::tuple<Rest...>;
};

template <class Handler>
class call_of final : public route_call {
  using how = signature_of<Handler>;
  using split = without_request<typename how::all>;
  using values = typename split::rest;
  static constexpr bool is_coroutine = std::is_same_v<typename how::result, task<response>>;
  static_assert(is_coroutine || std::is_same_v<typename how::result, response>,
                "troupe: a handler returns http::response or task<http::response>");

 public:
  explicit call_of(Handler handler) : handler_(std::move(handler)) {
    waits = is_coroutine;
    parameters = std::tuple_size_v<values>;
  }
  bool run(request& asked, const path_values& given, response& answer) const override {
    if constexpr (!is_coroutine) {
      values typed;
      if (!fill(given, typed, std::make_index_sequence<std::tuple_size_v<values>>())) return false;
      answer = call(asked, typed);
    }
    return true;
  }
  bool start(request& asked, const path_values& given, std::optional<task<response>>& later) const override {
    if constexpr (is_coroutine) {
      values typed;
      if (!fill(given, typed, std::make_index_sequence<std::tuple_size_v<values>>())) return false;
      later.emplace(call(asked, typed));
    }
    return true;
  }

 private:
  template <std::size_t... I>
  static bool fill([[maybe_unused]] const path_values& given, [[maybe_unused]] values& typed, std::index_sequence<I...>) {
    return (from_path(given.value[I], std::get<I>(typed)) && ...);
  }
  typename how::result call([[maybe_unused]] request& asked, values& typed) const {
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
  Handler handler_;
};

}  // namespace routes

// Patterns: "/users/{id}/posts/{post}" has two parameters, a segment each; "/files/{path...}" takes the rest of the path,
// which may be empty. A slash that comes encoded (%2F) parts no segments: it is one in the parameter's value. Literal segments
// win over parameters, and those over a rest, among the patterns that have the method; what a parameter is called makes no
// difference. A handler is a function, or a const callable that is called on any thread and by
// several at a time; it takes the request, or not, and then a parameter for each one of the pattern: what is no number where it
// wants one is not found (404). It returns a response, or is a coroutine that does.
// HEAD is answered by the handler of GET, without the body; OPTIONS with the methods that there are. Other methods than a
// path has are answered 405, other paths 404.
//
// Example:
//     troupe::http::router routes;
//     routes.get("/", [] { return troupe::http::response::text("hello"); });
//     routes.get("/users/{id}", [](const troupe::http::request&, int id) {
//       return troupe::http::response::text("user " + std::to_string(id));
//     });
//     routes.put("/notes/{name}", [](troupe::http::request& asked, std::string name) -> troupe::task<troupe::http::response> {
//       const std::string_view text = co_await asked.read_all();
//       co_return troupe::http::response::text(name + " has " + std::to_string(text.size()) + " bytes");
//     });
class router {
 public:
  router();
  router(router&&) noexcept;
  router& operator=(router&&) noexcept;
  ~router();

  // Throw usage_error for a pattern that is malformed or there already, and when the handler does not take as many
  // parameters as it has.
  template <class Handler>
  router& get(std::string_view pattern, Handler handler, const route_options& options = {}) {
    return add(method::get, pattern, std::move(handler), options);
  }
  template <class Handler>
  router& post(std::string_view pattern, Handler handler, const route_options& options = {}) {
    return add(method::post, pattern, std::move(handler), options);
  }
  template <class Handler>
  router& put(std::string_view pattern, Handler handler, const route_options& options = {}) {
    return add(method::put, pattern, std::move(handler), options);
  }
  template <class Handler>
  router& patch(std::string_view pattern, Handler handler, const route_options& options = {}) {
    return add(method::patch, pattern, std::move(handler), options);
  }
  template <class Handler>
  router& remove(std::string_view pattern, Handler handler, const route_options& options = {}) {
    return add(method::remove, pattern, std::move(handler), options);
  }
  template <class Handler>
  router& add(method on, std::string_view pattern, Handler handler, const route_options& options = {}) {
    add_call(on, pattern, std::make_unique<routes::call_of<Handler>>(std::move(handler)), options);
    return *this;
  }
  // GET of what lies in a folder; `prefix` ends with '/'. See files.hpp. Throws usage_error, and io_error when there is no
  // such folder.
  router& files(std::string_view prefix, const std::string& folder);
  router& files(std::string_view prefix, const std::string& folder, const file_options& options);

  // The library's own: what there is at a path.
  struct route {
    std::unique_ptr<const route_call> call;
    route_options options;
  };
  struct place;
  struct found {
    const route* handler = nullptr;  // null: not by this method
    unsigned methods = 0;            // where it is null: a bit for each that the path has; 0: no such path
    path_values values;
  };
  found find(method by, std::string_view path) const;
  unsigned all_methods() const noexcept;
  // "GET, HEAD, OPTIONS"
  static std::string allowed(unsigned methods);

 private:
  void add_call(method on, std::string_view pattern, std::unique_ptr<route_call> call, const route_options& options);
  struct table;
  std::unique_ptr<table> table_;
};

}  // namespace troupe::http
