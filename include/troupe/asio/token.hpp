// token: the completion token by which a task or a handler awaits an operation of Asio.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "troupe/asio/library.hpp"
#include "troupe/asio/wait.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/task.hpp"

namespace troupe {
namespace parts {
inline namespace TROUPE_ASIO_ABI {

// The arguments of a handler of that signature, and the value that co_await makes of them: the
// arguments without a leading error code or exception, one as itself, several as a tuple.
template <class... Args>
struct asio_results {
  using stored = std::tuple<std::decay_t<Args>...>;
  template <class First>
  static constexpr bool is_error =
      std::same_as<First, asio_error_code> || std::same_as<First, std::exception_ptr>;
  static constexpr std::size_t skipped = [] {
    if constexpr (sizeof...(Args) != 0) {
      return is_error<std::tuple_element_t<0, stored>> ? 1u : 0u;
    } else {
      return 0u;
    }
  }();
  static constexpr std::size_t count = sizeof...(Args) - skipped;

  static void check(const asio_error_code& found, const asio_wait& wait) {
    if (!found) return;
    if (found == asio_library::error::operation_aborted) wait.check_cancelled();
    throw asio_system_error(found);
  }
  static void check(const std::exception_ptr& found, const asio_wait& wait) {
    if (found == nullptr) return;
    try {
      std::rethrow_exception(found);
    } catch (const asio_system_error& thrown) {
      if (thrown.code() == asio_library::error::operation_aborted) wait.check_cancelled();
      throw;
    }
  }
  static auto take(stored&& from, const asio_wait& wait) {
    if constexpr (skipped != 0) check(std::get<0>(from), wait);
    if constexpr (count == 1) {
      return std::get<skipped>(std::move(from));
    } else if constexpr (count > 1) {
      return [&]<std::size_t... At>(std::index_sequence<At...>) {
        return std::tuple<std::tuple_element_t<skipped + At, stored>...>(
            std::get<skipped + At>(std::move(from))...);
      }
      (std::make_index_sequence<count>());
    }
  }
  using value = decltype(take(std::declval<stored>(), std::declval<const asio_wait&>()));
};

// The executor of the object that an initiation is about, by the name that Asio's documentation
// gives it; an adaptor of tokens wraps an initiation.
template <class Initiation>
auto executor_of(const Initiation& initiation) {
  if constexpr (requires { initiation.get_executor(); }) {
    return initiation.get_executor();
  } else if constexpr (requires { initiation.initiation_; }) {
    return executor_of(initiation.initiation_);
  }
}

// The steps of an operation and the request to cancel it run one after the other, however many
// threads run the execution context: a cancellation signal is for one thread at a time.
template <class Executor>
struct asio_serial {
  explicit asio_serial(const Executor&) noexcept {}
};
#if TROUPE_ASIO_CANCELS
template <class Executor>
requires(!std::same_as<Executor, std::monostate>) struct asio_serial<Executor> {
  using executor_type = asio_library::strand<Executor>;
  explicit asio_serial(const Executor& of_object) : serial(of_object) {}
  executor_type get_executor() const noexcept { return serial; }
  executor_type serial;
};
#endif

// The handler that Asio gets. Asio may move it, calls it at most once, and destroys it.
template <class Wait>
class asio_handler : public Wait::serial_steps {
  using serial_steps = typename Wait::serial_steps;

 public:
  explicit asio_handler(Wait& wait) noexcept : serial_steps(wait), wait_(&wait) {}
  asio_handler(asio_handler&& other) noexcept
      : serial_steps(other), wait_(std::exchange(other.wait_, nullptr)) {}
  asio_handler& operator=(asio_handler&&) = delete;
  ~asio_handler() {
    if (wait_ != nullptr) wait_->finish();
  }
  template <class... Args>
  void operator()(Args&&... args) {
    Wait& wait = *std::exchange(wait_, nullptr);
    try {
      wait.result.emplace(std::forward<Args>(args)...);
    } catch (...) {
      wait.fail(std::current_exception());
    }
    wait.finish();
  }
#if TROUPE_ASIO_CANCELS
  using cancellation_slot_type = asio_library::cancellation_slot;
  cancellation_slot_type get_cancellation_slot() const noexcept {
    return wait_ == nullptr ? cancellation_slot_type() : wait_->signal.slot();
  }
#endif

 private:
  Wait* wait_;
};

template <class Stored, class Executor>
struct asio_wait_of : asio_wait, asio_serial<Executor> {
  using serial_steps = asio_serial<Executor>;
  explicit asio_wait_of(const Executor& of_object)
      : asio_wait(&post_cancel), serial_steps(of_object) {}
  std::optional<Stored> result;
#if TROUPE_ASIO_CANCELS
  asio_library::cancellation_signal signal;

  class request {
   public:
    explicit request(asio_wait_of& wait) noexcept : wait_(&wait) {}
    request(request&& other) noexcept : wait_(std::exchange(other.wait_, nullptr)) {}
    request& operator=(request&&) = delete;
    ~request() {
      if (wait_ != nullptr) wait_->leave();
    }
    void operator()() {
      if (!wait_->is_finished()) wait_->signal.emit(asio_library::cancellation_type::all);
    }

   private:
    asio_wait_of* wait_;
  };
#endif
  // Without memory the operation is not cancelled.
  static void post_cancel(asio_wait& wait) {
#if TROUPE_ASIO_CANCELS
    if constexpr (!std::same_as<Executor, std::monostate>) {
      auto& self = static_cast<asio_wait_of&>(wait);
      request asks(self);
      try {
        asio_library::post(self.serial, std::move(asks));
      } catch (...) {
      }
      return;
    }
#endif
    wait.leave();
  }
};

// Asio returns it for asio_token. It starts the operation when it is awaited; await it once.
template <class Results, class Initiation, class... Init>
class [[nodiscard, gnu::warn_unused]] asio_operation {
  using found_executor = decltype(executor_of(std::declval<const Initiation&>()));
  using executor =
      std::conditional_t<std::is_void_v<found_executor>, std::monostate, found_executor>;
  using wait = asio_wait_of<typename Results::stored, executor>;

 public:
  using result = typename Results::value;
  // of a branch of when_any that has lost (troupe/task/when.hpp)
  static constexpr const char* lost_as = "an operation of Asio";

  template <class Given, class... Args>
  explicit asio_operation(std::in_place_t, Given && initiation, Args && ... init)
      : initiation_(std::forward<Given>(initiation)), init_(std::forward<Args>(init)...) {}
  asio_operation(asio_operation && other)
      : initiation_(std::move(other.initiation_)),
        init_(std::move(other.init_)),
        limits_(std::move(other.limits_)) {}
  asio_operation& operator=(asio_operation&&) = delete;

  class awaiter {
   public:
    explicit awaiter(asio_operation& operation) noexcept : operation_(operation) {}
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) {
      return operation_.start(awaiting.promise());
    }
    result await_resume() { return operation_.take(); }

   private:
    asio_operation& operation_;
  };
  awaiter operator co_await()&& noexcept { return awaiter(*this); }

  // Limit the operation: it is cancelled after `at_most`, or when a stop is requested. When Asio
  // has ended it, co_await throws timed_out or cancelled, or gives the result that it had all the
  // same.
  asio_operation timeout(time_span at_most)&& {
    limits_.at_most = at_most;
    return std::move(*this);
  }
  asio_operation stop(std::stop_token token)&& {
    limits_.stop = std::move(token);
    return std::move(*this);
  }
  template <class Refused = void>
  asio_operation timeout(time_span) const& {
    tasks::refuse_named_awaitable<Refused>();
  }
  template <class Refused = void>
  asio_operation stop(const std::stop_token&) const& {
    tasks::refuse_named_awaitable<Refused>();
  }

 private:
  bool start(tasks::coroutine & suspended) {
    if constexpr (std::is_void_v<found_executor>) {
      wait_.emplace(std::monostate());
    } else {
      wait_.emplace(executor_of(initiation_));
    }
    wait& begun = *wait_;
    if (!begun.begin(suspended, limits_)) return false;
    try {
      std::apply(
          [&](auto&... init) {
            std::move(initiation_)(asio_handler<wait>(begun), std::move(init)...);
          },
          init_);
    } catch (...) {
      begun.fail(std::current_exception());
    }
    begun.started(limits_);
    return true;
  }
  result take() {
    wait_->end_limits();
    wait_->check(wait_->result.has_value());
    return Results::take(std::move(*wait_->result), *wait_);
  }

  Initiation initiation_;
  std::tuple<Init...> init_;
  asio_limits limits_;
  std::optional<wait> wait_;  // destroyed first: its result may refer to the arguments
};

}  // namespace TROUPE_ASIO_ABI
}  // namespace parts

// The completion token of troupe: an operation of Asio that gets it is awaited in a task or a
// coroutine handler, `co_await socket.async_read_some(buffer, troupe::asio_token)`.
//
// The operation starts at the co_await, on the calling thread, and must be awaited once. co_await
// gives the arguments of the operation's handler without its error code: nothing, one value, or a
// tuple. An error code is thrown as asio::system_error, an exception as itself.
// asio::experimental::as_tuple(troupe::asio_token) gives all arguments instead, and throws none.
// With .timeout(span) and .stop(token) the operation has limits.
//
// Thread: the coroutine continues where it belongs, in a turn of its actor, and never on a thread
// of the execution context. The program is not out of work while Asio has the operation; it ends
// only if a thread of yours runs the context. Cancellation: a limit, a loser of when_any, or the
// end of its actor emits all types of cancellation, on the executor of the operation's object, and
// the wait ends when Asio has ended the operation: buffers, sockets and arguments may lie in the
// coroutine. Cancelled by Asio (socket.cancel()) it throws asio::system_error, operation_aborted.
// Errors: also timed_out and cancelled; broken_promise if the context was destroyed first.
// Lifetime: end the runtime, or its last such wait, before its context has no thread any more; the
// destructor of a runtime waits until Asio has ended all operations.
//
// Boost.Asio: define TROUPE_BOOST_ASIO before the header is included; its versions before 1.77 know
// no cancellation of single operations, and a wait that is given up lasts until the operation ends.
// Boost 1.74 with g++ needs <utility> before <boost/asio.hpp>.
//
// Example (declarations):
//     #include <asio.hpp>
//     troupe::task<std::string> first_bytes(asio::ip::tcp::socket& from) {
//       std::string bytes(100, '\0');
//       auto read = from.async_read_some(asio::buffer(bytes), troupe::asio_token);
//       bytes.resize(co_await std::move(read).timeout(std::chrono::seconds(1)));
//       co_return bytes;
//     }
struct asio_token_t {
  explicit constexpr asio_token_t() = default;
};
inline constexpr asio_token_t asio_token{};

}  // namespace troupe

namespace TROUPE_ASIO {

template <class Result, class... Args>
class async_result<troupe::asio_token_t, Result(Args...)> {
 public:
  template <class Initiation, class Token, class... Init>
  static auto initiate(Initiation&& initiation, Token&&, Init&&... init) {
    return troupe::parts::asio_operation<troupe::parts::asio_results<Args...>,
                                         std::decay_t<Initiation>, std::decay_t<Init>...>(
        std::in_place, std::forward<Initiation>(initiation), std::forward<Init>(init)...);
  }
};

}  // namespace TROUPE_ASIO
