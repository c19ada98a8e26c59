// submit: calls that run concurrently, each in a context of its own.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <exception>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "troupe/actor/sendable.hpp"
#include "troupe/parallel/submitted.hpp"
#include "troupe/task/result.hpp"

namespace troupe {

namespace submissions {

template <class T>
struct awaited {
  using type = T;
};
template <class T>
struct awaited<task<T>> {
  using type = T;
};

// A function with its arguments. If it takes a context, the context is its first argument.
template <class F, class... Args>
class call {
 public:
  static constexpr bool takes_context = std::is_invocable_v<F&, context&, Args&...>;
  static_assert(takes_context || std::is_invocable_v<F&, Args&...>,
                "troupe: submit: the function takes other arguments (those given, or a "
                "troupe::context& in front of them)");
  static_assert((is_sendable<Args>::value && ...),
                "troupe: submit: an argument is a pointer, a view, an iterator, a lock or a "
                "reference wrapper, or has a std::pmr allocator; the "
                "call runs later and on another thread: give it a value, or troupe::persisted");

  template <class... Given>
  explicit call(F given, Given&&... args)
      : function_(std::move(given)), args_(std::forward<Given>(args)...) {}

  decltype(auto) operator()(context& memory) {
    return std::apply(
        [&](Args&... args) -> decltype(auto) {
          if constexpr (takes_context) {
            return std::invoke(function_, memory, args...);
          } else {
            return std::invoke(function_, args...);
          }
        },
        args_);
  }

 private:
  F function_;
  std::tuple<Args...> args_;
};

struct drop_value {
  template <class... Value>
  void operator()(Value&&...) const noexcept {}
};
struct throw_error {
  [[noreturn]] void operator()(std::exception_ptr failure) const {
    std::rethrow_exception(std::move(failure));
  }
};

// One submission: from the creation of its context to the end of its callback.
template <class Call, class OnValue, class OnError>
struct work {
  using returned = std::invoke_result_t<Call&, context&>;
  using value = typename awaited<returned>::type;
  static constexpr bool is_coroutine = !std::is_same_v<returned, value>;
  static_assert(std::is_void_v<value>
                    ? std::is_invocable_v<OnValue&>
                    : std::is_invocable_v<OnValue&, std::add_rvalue_reference_t<value>>,
                "troupe: submit: then: the callback must be callable with the result of the call");
  static_assert(std::is_invocable_v<OnError&, std::exception_ptr>,
                "troupe: submit: then: the errback must be callable with (std::exception_ptr)");

  Call called;
  OnValue on_value;
  OnError on_error;
  actor_hold actor;
};

// One call of a submission, with its context and its result.
template <class Work>
struct attempt {
  explicit attempt(Work& work) noexcept : job(work) {}
  using value = typename Work::value;

  // Makes the call. An exception from it is its result.
  void make() noexcept {
    try {
      memory = make_context();
      if constexpr (!Work::is_coroutine) {
        context_scope inside(*memory);
        if constexpr (std::is_void_v<value>) {
          job.called(*memory);
          result.set();
        } else {
          result.set(job.called(*memory));
        }
      }
    } catch (...) {
      result.fail(std::current_exception());
    }
  }

  // Calls the callback, or the errback with the error of the call or of the callback.
  void deliver() noexcept {
    // moved, since the context may end with its report
    std::exception_ptr failure = result.take_failure();
    try {
      std::optional<context_scope> inside;
      if (memory) inside.emplace(*memory);
      if (failure == nullptr) {
        if constexpr (std::is_void_v<value>) {
          job.on_value();
        } else {
          job.on_value(result.take());
        }
        return;
      }
    } catch (...) {
      failure = std::current_exception();
    }
    try {
      std::optional<context_scope> inside;
      if (memory) inside.emplace(*memory);
      return job.on_error(failure);
    } catch (...) {
      failure = std::current_exception();
    }
    report(std::move(failure), std::move(memory));
  }

  static void deliver_in_turn(void* self) noexcept { static_cast<attempt*>(self)->deliver(); }

  Work& job;
  owned_context memory;  // destroyed after the result
  tasks::result_of<value> result;
};

// The rest of make() for a function that is a coroutine.
template <class Work>
task<> await_call(attempt<Work>& tried) {
  using value = typename Work::value;
  try {
    if constexpr (std::is_void_v<value>) {
      co_await tried.job.called(*tried.memory);
      tried.result.set();
    } else {
      tried.result.set(co_await tried.job.called(*tried.memory));
    }
  } catch (...) {
    tried.result.fail(std::current_exception());
  }
  const bool ends = co_await being_cancelled();
  // An exception must not outlive its context.
  if (ends && tried.result.failed())
    end_cancelled(tried.result.take_failure(), std::move(tried.memory));
}

template <class Work>
task<> run(Work work) {
  attempt<Work> tried(work);
  tried.make();
  if constexpr (Work::is_coroutine) {
    if (!tried.result.there()) co_await await_call(tried);
  }
  if (work.actor.get() == nullptr) {
    tried.deliver();
    co_return;
  }
  future<bool> done = run_in_turn(work.actor.get(), &tried, &attempt<Work>::deliver_in_turn);
  const bool handled = co_await std::move(done);
  // If the actor has stopped and not handled the result, no other code would learn of the failure.
  if (std::exception_ptr failure = handled ? nullptr : tried.result.take_failure())
    report(std::move(failure), std::move(tried.memory));
}

}  // namespace submissions

// A submitted call. It begins when this object is destroyed, at the end of the statement, or when
// then() is called, which sets the callbacks for the value and the error.
template <class Call>
class submission {
 public:
  submission(runtime* on, Call called) : runtime_(on), call_(std::move(called)) {}
  submission(submission&& other) noexcept
      : runtime_(other.runtime_),
        call_(std::move(other.call_)),
        open_(std::exchange(other.open_, false)) {}
  submission& operator=(submission&&) = delete;
  ~submission() noexcept(false) {
    if (open_ && std::uncaught_exceptions() == unwinding_)
      begin(submissions::drop_value(), submissions::throw_error());
  }

  // `callback` gets the value; `errback` gets the error of the call or of the callback, as a
  // std::exception_ptr. Thread: both run in the call's context, in a later turn of the actor whose
  // handler submitted the call, and which lives until then; outside of actors they run on the pool.
  // Errors: an exception from the errback is a failure, which run() throws; without an errback each
  // error is a failure.
  template <class Callback, class Errback>
  void then(Callback&& callback, Errback&& errback) && {
    begin(std::forward<Callback>(callback), std::forward<Errback>(errback));
  }
  template <class Callback>
  void then(Callback&& callback) && {
    begin(std::forward<Callback>(callback), submissions::throw_error());
  }

 private:
  template <class Callback, class Errback>
  void begin(Callback&& callback, Errback&& errback) {
    open_ = false;
    using work = submissions::work<Call, std::decay_t<Callback>, std::decay_t<Errback>>;
    work started{std::move(call_), std::forward<Callback>(callback), std::forward<Errback>(errback),
                 submissions::actor_hold()};
    submissions::start(runtime_, submissions::run(std::move(started)));
  }

  runtime* runtime_;
  Call call_;
  bool open_ = true;
  const int unwinding_ = std::uncaught_exceptions();
};

namespace submissions {

template <class F, class... Args>
auto submitted(runtime* on, F&& function, Args&&... args) {
  using made_call = call<std::decay_t<F>, std::decay_t<Args>...>;
  return submission<made_call>(on,
                               made_call(std::forward<F>(function), std::forward<Args>(args)...));
}

}  // namespace submissions

// Calls the function on the pool, in a context of its own. this_context() returns it, and the
// function may take it as its first parameter, a troupe::context&. The function may be a coroutine;
// then it must take the context as a parameter, since there is no current context after a co_await.
//
// Thread: call it in a handler or a task; elsewhere pass the runtime as the first argument. Cost:
// about 300 ns. Errors: see then(). Lifetime: the arguments are kept by value; their types are
// those that a message may hold. The context lives until the callback or the errback has run: the
// value may refer to it, and an error may until it was delivered; an error that run() throws may
// until run() throws another error.
//
// Example:
//     int main() {
//       troupe::runtime rt;
//       troupe::submit(rt, [](troupe::context& here, std::string text) {
//         std::pmr::vector<char> letters(text.begin(), text.end(), &here);
//         return std::count(letters.begin(), letters.end(), 'l');
//       }, std::string("parallel")).then(
//           [](auto count) { std::cout << count << " times\n"; },
//           [](std::exception_ptr) { std::cout << "failed\n"; });
//       rt.run();
//     }
template <class F, class... Args>
requires(!std::derived_from<std::remove_cvref_t<F>, runtime>) auto submit(F&& function,
                                                                          Args&&... args) {
  return submissions::submitted(nullptr, std::forward<F>(function), std::forward<Args>(args)...);
}
template <class F, class... Args>
auto submit(runtime& on, F&& function, Args&&... args) {
  return submissions::submitted(&on, std::forward<F>(function), std::forward<Args>(args)...);
}

}  // namespace troupe
