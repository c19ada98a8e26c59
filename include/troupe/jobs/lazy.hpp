// lazy: a value that is computed when it is needed, in parallel with the other values that are
// needed at that time.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <concepts>
#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/base/type_name.hpp"
#include "troupe/jobs/job.hpp"
#include "troupe/jobs/resource.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/result.hpp"

namespace troupe {

template <class T>
class lazy;

namespace jobs {

template <class Given>
inline constexpr bool is_lazy = false;
template <class T>
inline constexpr bool is_lazy<lazy<T>> = true;

template <class T>
struct job_of : job {
  using job::job;
  ~job_of() { forget(); }
  // No user gets the result any more. An exception that none has received is reported.
  void forget() noexcept {
    // order: relaxed  the last handle was dropped after each use of it
    if (told.load(std::memory_order_relaxed)) result.share_failure();
    result.reset();
  }
  tasks::result_of<T> result;
  std::atomic<bool> told{false};  // its exception was thrown to a user
};

template <class T, class Function>
struct lazy_job final : job_of<T> {
  template <class F>
  lazy_job(F&& given, const char* job_name, std::uint32_t made_at)
      : job_of<T>(&perform, job_name, made_at), function(std::forward<F>(given)) {}

  static void perform(job& base, job::act requested) noexcept {
    auto& self = static_cast<lazy_job&>(base);
    if (requested == job::act::free) {
      std::destroy_at(&self);
      return memory::deallocate(&self, sizeof(lazy_job));
    }
    if (requested == job::act::report) {
      if (const std::exception_ptr failed = self.result.take_failure())
        report_unheard(self, failed);
      return;
    }
    if (requested == job::act::forget) return self.forget();
    if (requested == job::act::cancel) {
      self.result.fail(std::make_exception_ptr(
          cancelled("troupe: lazy: it was dropped, since its runtime was stopped or ends")));
      return self.function.reset();
    }
    try {
      if constexpr (std::is_void_v<T>) {
        std::invoke(std::move(*self.function));
        self.result.set();
      } else {
        self.result.set(std::invoke(std::move(*self.function)));
      }
    } catch (...) {
      self.result.fail(std::current_exception());
    }
    self.function.reset();  // frees the captures now, not with the last handle of the value
  }

  std::optional<Function> function;
};

template <class T, class Function>
TROUPE_NOINLINE job_of<T>& make_lazy_here(Function&& function, memory_use use, const char* name,
                                          std::uint32_t line) {
  using made_job = lazy_job<T, std::decay_t<Function>>;
  static_assert(
      alignof(made_job) <= alignof(std::max_align_t),
      "troupe: lazy: the function is over-aligned; put its captures into a std::unique_ptr");
  void* place = memory::allocate(sizeof(made_job));
  made_job* job = nullptr;
  try {
    job = ::new (place) made_job(std::forward<Function>(function), name, line);
  } catch (...) {
    memory::deallocate(place, sizeof(made_job));
    throw;
  }
  // order: relaxed  no other thread can see the job yet
  job->needs_memory.store(use == memory_use::needs, std::memory_order_relaxed);
  keep(*job);
  return *job;
}

// The function runs in the context of the call that makes the lazy.
template <class T, class Function>
job_of<T>& make_lazy(Function&& function, memory_use use, tasks::source_line where) {
  const char* const name = base::type_name<std::decay_t<Function>>();
  const std::uint32_t line = tasks::location_of(where).line();
  if (tasks::current_context() == nullptr) [[likely]]
    return make_lazy_here<T>(std::forward<Function>(function), use, name, line);
  return make_lazy_here<T>(
      [within = tasks::context_ref::current(), name,
       call =
           std::decay_t<Function>(std::forward<Function>(function))]() mutable -> decltype(auto) {
        tasks::inside_span inside(within.get(), "lazy", name);
        try {
          inside.check();
          return std::invoke(std::move(call));
        } catch (...) {
          inside.fail(std::current_exception());
          throw;
        }
      },
      use, name, line);
}

}  // namespace jobs

// A value that may be needed later. Making a lazy runs nothing. The first get() or co_await submits
// all lazies that this thread has made and not yet submitted, so that other workers begin with
// them, and computes the needed value on the calling thread, unless another thread has begun it.
// The function runs once, on any thread; the lazies run in any order. All copies of the lazy, on
// all threads, share its value or its exception. Lifetime: a lazy is a counted handle; the value is
// freed with the last handle.
//
// get() never deadlocks, for any number of workers and any depth of nesting: a value that no thread
// has begun is computed at once by the thread that needs it, and a value that a thread has begun
// makes progress. A value that needs itself throws troupe::deadlock in one of the threads that need
// it. Plain code and posted procedures use get(); a handler or a task must not block its thread,
// and uses co_await. A thread that waits in plain code runs lazies that were queued for the needed
// value: hold no lock that these may take.
//
// Thread: it runs in the runtime of the handler, task, job or blocking call that needs it; on other
// threads, in the runtime that this thread created last; without a runtime, all of it runs in the
// thread that needs it. A lazy whose last handle is destroyed before any thread needs its value is
// dropped and counted, unless a lazy_scope was made with unwanted::run. Cost: about 40 ns.
//
// Objects that the function captures by reference must live until it has run: any other get() of
// this thread submits this lazy too, as long as a handle to it exists. A stop that discards drops
// all lazies that no thread has begun; a caller that needs such a lazy gets troupe::cancelled. With
// g++ 12 name the lazy before you await it (`lazy one([x] { … }); co_await one;`): see task.
//
// Example:
//     troupe::runtime rt;
//     const auto half = [](int n) { return n / 2; };
//     auto one = troupe::lazy([&] { return half(10); });
//     auto two = troupe::lazy([&] { return half(20); });
//     std::cout << one.get() + two.get() << '\n';
template <class T = void>
class lazy {
 public:
  using value_type = T;

  // An empty lazy, with neither value nor function. get(), co_await and the range functions throw
  // usage_error until another lazy is assigned. A lazy that was moved from or released is also
  // empty.
  //
  // Example:
  //     std::vector<troupe::lazy<int>> squares(10);
  //     for (int i = 0; i < 10; ++i) squares[i] = troupe::lazy([i] { return i * i; });
  //     std::cout << squares[9].get() << '\n';
  lazy() noexcept = default;

  template <class Function>
  requires(
      !std::same_as<std::remove_cvref_t<Function>, lazy> &&
      std::is_invocable_v<std::decay_t<Function>>) explicit lazy(Function&& function,
                                                                 tasks::source_line made_at =
                                                                     __builtin_source_location())
      : lazy(jobs::use_of<T>, std::forward<Function>(function), made_at) {}
#define TROUPE_NO_FUNCTION                                                             \
  "troupe: lazy: it takes a callable without parameters: a lambda, lazy([&] { return " \
  "work(5); }), or parallel(work)(5)"
  template <class Given TROUPE_SAYS(TROUPE_NO_FUNCTION)>
  requires(!jobs::is_lazy<std::remove_cvref_t<Given>> &&
           !std::is_invocable_v<std::decay_t<Given>>) explicit lazy(Given&&)
      TROUPE_REFUSED(TROUPE_NO_FUNCTION);
#undef TROUPE_NO_FUNCTION
  // For a function whose type does not show how it uses memory (resource.hpp).
  template <class Function>
  requires std::is_invocable_v<std::decay_t<Function>> lazy(
      memory_use use, Function&& function, tasks::source_line made_at = __builtin_source_location())
      : job_(&jobs::make_lazy<T>(std::forward<Function>(function), use, made_at)) {
    static_assert(!std::is_reference_v<std::invoke_result_t<std::decay_t<Function>>>,
                  "troupe: lazy: the function returns a reference, which may dangle when the value "
                  "is wanted; return a value");
    static_assert(!tasks::makes_task<Function>,
                  "troupe: lazy: the function is a coroutine, which would never run: return get() "
                  "of a work, or give a task to spawn()");
  }
  lazy(const lazy& other) noexcept : job_(other.job_) {
    if (job_ != nullptr) job_->add_ref();
  }
  lazy(lazy&& other) noexcept : job_(std::exchange(other.job_, nullptr)) {}
  lazy& operator=(lazy other) noexcept {
    std::swap(job_, other.job_);
    return *this;
  }
  ~lazy() { release(); }

  // The value, which lives as long as a copy of this lazy. Throws the function's exception;
  // deadlock; usage_error in a handler.
  decltype(auto) get() const {
    check();
    jobs::need(*job_);
    return value();
  }
  // Whether the lazy has a function or a value, that is, is not empty.
  bool valid() const noexcept { return job_ != nullptr; }
  explicit operator bool() const noexcept { return valid(); }
  // Whether get() would return at once. False for an empty lazy.
  bool ready() const noexcept { return job_ != nullptr && job_->is_done(); }
  // Drops this handle's share of the value now.
  void release() noexcept {
    if (auto* held = std::exchange(job_, nullptr)) held->drop_ref();
  }

  // A lazy is a range if its value is a range.
  auto begin() const requires std::ranges::range<const T> { return std::ranges::begin(get()); }
  auto end() const requires std::ranges::range<const T> { return std::ranges::end(get()); }

  class awaiter {
   public:
    explicit awaiter(lazy awaited)
        : awaited_(std::move(awaited)),
          done_(jobs::when_done(*awaited_.job_)),
          wait_(done_.operator co_await()) {}
    awaiter(awaiter&&) = delete;
    bool await_ready() const noexcept { return wait_.await_ready(); }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) {
      return wait_.await_suspend(awaiting);
    }
    decltype(auto) await_resume() {
      wait_.await_resume();
      return awaited_.value();
    }

   private:
    const lazy awaited_;
    future<> done_;
    future<>::awaiter wait_;
  };
  // co_await gives a reference to the value, which lives as long as a copy of the lazy.
  awaiter operator co_await() const& {
    check();
    return awaiter(*this);
  }

 private:
  decltype(auto) value() const {
    // order: relaxed  read when no handle is left
    if (job_->result.failed()) [[unlikely]]
      job_->told.store(true, std::memory_order_relaxed);
    if constexpr (std::is_void_v<T>) {
      job_->result.value();
    } else {
      return job_->result.value();
    }
  }
  void check() const {
    if (job_ == nullptr) [[unlikely]] {
      throw usage_error(
          "troupe: lazy: it is empty (made without a function, moved from, or released): assign it "
          "a lazy before you use its value");
    }
  }
  jobs::job_of<T>* job_ = nullptr;
};

// lazy(f) is a lazy of the type that f returns.
template <class Function>
lazy(Function&&) -> lazy<std::invoke_result_t<std::decay_t<Function>>>;
template <class Function>
lazy(Function&&, tasks::source_line) -> lazy<std::invoke_result_t<std::decay_t<Function>>>;
template <class Function>
lazy(memory_use, Function&&) -> lazy<std::invoke_result_t<std::decay_t<Function>>>;

// Returns a function object whose calls make lazies: a call keeps the arguments by value and runs
// nothing.
//
// Example:
//     auto half = troupe::parallel([](int n) { return n / 2; });
//     troupe::lazy<int> five = half(10);
//     std::cout << five.get() << '\n';
template <class Function>
auto parallel(Function&& function, tasks::source_line made_at = __builtin_source_location()) {
  return [function = std::forward<Function>(function), made_at]<class... Args>(Args&&... args) {
    return lazy(
        [function, kept = std::tuple<std::decay_t<Args>...>(std::forward<Args>(
                       args)...)]() mutable { return std::apply(function, std::move(kept)); },
        made_at);
  };
}

// Decides about the lazies that this thread makes inside the scope and that no thread has needed:
// at the end of the scope they are dropped, or submitted to run. Lazies that are made by other
// lazies and works, which happen to run on this thread meanwhile, do not belong to the scope, since
// they may refer to objects that no longer exist at its end. Errors: if a dropped value is an
// exception, and no handle is left to throw it, it is a failure of the runtime, which run() throws;
// without a runtime it ends the program. Scopes nest. Thread: a scope belongs to its thread. In a
// coroutine it throws usage_error, since a coroutine may continue on another thread, or share this
// thread with others that make lazies. A plain handler, a posted procedure and a lazy may have a
// scope.
//
// Example:
//     {
//       troupe::lazy_scope all(troupe::unwanted::run);
//       troupe::lazy log([] { std::cout << "written\n"; });
//     }
enum class unwanted { drop, run };
class lazy_scope {
 public:
  explicit lazy_scope(unwanted at_end = unwanted::drop) : scope_(at_end == unwanted::run) {}

 private:
  jobs::pending_scope scope_;
};

}  // namespace troupe
