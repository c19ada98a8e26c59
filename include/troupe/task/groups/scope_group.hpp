// scope_group: the children of a task_scope. For the library's own use; users meet task_scope.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "troupe/memory/block_pool.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/result.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/when.hpp"

namespace troupe::tasks {

class scope_group;
class scope_wait;

// One task of a scope. The scope holds a ref until the child has ended, each handle holds one.
// Thread: turns of the scope's actor; when the scope has ended, the holder of the last ref.
struct scope_child : branch {
  // Whether the result is kept for a handle; and whether its exception also has another owner.
  enum class keeps : std::uint8_t { nothing, its_own, shared };
  struct kind {
    // The task has ended: keeps its result, and destroys its frame. Returns the exception that it
    // threw, or null. `first`: the exception of an earlier child, which this child may have passed
    // on.
    std::exception_ptr (*settle)(scope_child&, keeps retention,
                                 const std::exception_ptr& first) noexcept;
    // The task will not run, or not to its end: destroys its frame. Its result is `why`.
    void (*drop)(scope_child&, const std::exception_ptr& why) noexcept;
    void (*free)(scope_child&) noexcept;
  };
  scope_child(scope_group& within, coroutine& task, const kind& of_kind) noexcept;
  void release() noexcept {
    if (--refs == 0) operations.free(*this);
  }

  const kind& operations;
  scope_wait* waits = nullptr;  // for this child
  scope_child* next = nullptr;  // of those that have not started, or whose values were not taken
  std::size_t number = 0;       // in the order of start
  std::uint32_t refs = 1;
};

template <class T>
struct child_of final : scope_child {
  child_of(scope_group& within, task<T>&& given) noexcept
      : scope_child(within, task_access::root(given), child_kind), running(std::move(given)) {}
  static child_of& make(scope_group& within, task<T>&& given) {
    return *::new (memory::allocate(sizeof(child_of))) child_of(within, std::move(given));
  }

  static std::exception_ptr settle(scope_child& base, keeps retention,
                                   const std::exception_ptr& first) noexcept {
    auto& self = static_cast<child_of&>(base);
    auto& from = task_access::result(self.running);
    std::exception_ptr failure = from.take_failure();
    if (retention != keeps::nothing) {
      if (failure == nullptr) failure = failure_of([&] { self.keep(from); });
      if (failure != nullptr) self.result.fail(failure);
      if (retention == keeps::shared || failure == first) self.result.share_failure();
    }
    { const task<T> ended = std::move(self.running); }
    return failure;
  }
  void keep(result_of<T>& from) {
    if constexpr (std::is_void_v<T>) {
      result.set();
    } else {
      result.set(from.take());
    }
  }
  static void drop(scope_child& base, const std::exception_ptr& why) noexcept {
    auto& self = static_cast<child_of&>(base);
    self.result.fail(why);
    { const task<T> never = std::move(self.running); }
  }
  static void free(scope_child& base) noexcept {
    auto& self = static_cast<child_of&>(base);
    std::destroy_at(&self);
    memory::deallocate(&self, sizeof(child_of));
  }
  static constexpr kind child_kind{&settle, &drop, &free};

  task<T> running;
  result_of<T> result;
};

// The body of a scope, when it is a coroutine. The coroutine that awaits the scope keeps it.
struct scope_body final : scope_child {
  template <class T>
  scope_body(scope_group& within, task<T>& given) noexcept
      : scope_child(within, task_access::root(given), body_kind),
        failure_in([](coroutine& ended, keeps retention, const std::exception_ptr& first) {
          auto& from = static_cast<promise_of<T>&>(ended).result;
          const bool is_shared = retention == keeps::shared || from.failure() == first;
          return is_shared ? from.share_failure() : from.failure();
        }) {}
  ~scope_body();
  static std::exception_ptr settle(scope_child& base, keeps retention,
                                   const std::exception_ptr& first) noexcept {
    auto& self = static_cast<scope_body&>(base);
    return self.failure_in(self.root, retention, first);
  }
  static void keep(scope_child&, const std::exception_ptr&) noexcept {}
  static void leave(scope_child&) noexcept {}
  static constexpr kind body_kind{&settle, &keep, &leave};
  std::exception_ptr (*failure_in)(coroutine& task, keeps retention,
                                   const std::exception_ptr& first);
};

// A coroutine's wait for one child, or for the next child that ends.
class scope_wait final : public suspension {
 public:
  // For the search for deadlocks: which coroutine must end before.
  void wait_for_end_of(const scope_child& child, coroutine& awaiting) noexcept;
  scope_wait() noexcept : suspension(&act_on) {}
  // Returns false if the coroutine is cancelled already.
  bool suspend(coroutine& awaiting, scope_wait*& last_in) noexcept;
  // Throws cancelled if the wait was cancelled, and deadlock if it was refused.
  void check() const;
  // Ends the first wait of a list, which is not empty.
  static scope_wait& take(scope_wait*& from) noexcept;

  scope_child* got = nullptr;  // owns a ref of it
  bool has_ended = false;      // one child has ended, and this wait is notified

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  static const char* act_on(sched::message*, void*, sched::message_act);
  const scope_child* child_ = nullptr;  // that it waits for; null: for the next that ends
  scope_wait* next_ = nullptr;
  scope_wait** link_ = nullptr;  // null when it is in no list
};

// Awaits the children, of which each may add others. Thread: turns of the actor that awaits it.
class scope_group final : public group {
 public:
  // With `collects` it keeps the children that have ended, for next().
  explicit scope_group(bool collects) noexcept : group(scope_kind), collects_(collects) {}
  scope_group(const scope_group&) = delete;
  scope_group& operator=(const scope_group&) = delete;
  ~scope_group();

  bool start(coroutine& awaiting, scope_body* body) noexcept;
  void forget_body() noexcept;
  // At the end: throws the first failure, or cancelled.
  void check();

  // The scope gets the child, which waits until it may start. Takes over the ref, even if it throws
  // usage_error: the caller runs in no child of this scope, nor in its body.
  void add_child(scope_child& child);
  void cancel(bool body_too) noexcept;
  void set_limit(std::size_t most);
  std::size_t unfinished() const noexcept;
  // All failures are reported, and not the first alone.
  void tell_all() noexcept { tells_all_ = true; }
  const std::vector<std::exception_ptr>& failures() const noexcept { return failures_; }

  // Waits for the next child that ends. Returns false if the coroutine need not suspend.
  bool wait_next(scope_wait& wait, coroutine& awaiting) noexcept;
  // After the wait: a call that is cancelled takes nothing (docs/protocols/given_up_waits.md).
  void put_back_if_cancelled(scope_wait& wait) noexcept;
  // Throws usage_error if the coroutine is of another actor.
  bool wait_for(scope_wait& wait, scope_child& child, coroutine& awaiting);
  // The children whose values were not taken, in the order in which they ended. The caller
  // releases them.
  scope_child* take_ended() noexcept { return std::exchange(ended_.first, nullptr); }

 private:
  friend class waiting_scopes;
  struct queue {
    void add(scope_child& child) noexcept;
    void add_first(scope_child& child) noexcept;
    scope_child* take() noexcept;
    scope_child* first = nullptr;
    scope_child* last = nullptr;
  };
  static const kind scope_kind;
  static scope_group& as_this(group& base) noexcept { return static_cast<scope_group&>(base); }
  void start_all() noexcept;
  void start_children() noexcept;
  void list_if_needed() noexcept;
  bool is_running() const noexcept;
  void ended(scope_child& child) noexcept;
  void forget_child(scope_child& child) noexcept;
  bool try_next(scope_wait& wait) noexcept;
  void fail(std::exception_ptr&& failure, bool was_cancelled, bool is_kept) noexcept;
  void tell_next(scope_child& child, bool has_value) noexcept;
  void drop_waiting() noexcept;
  void reclaim_all() noexcept;
  void end_contexts(bool body_too) noexcept;
  template <class Act>
  void for_each_started(Act act) noexcept;

  const bool collects_;
  // The part that was cancelled, perhaps by the end of the awaiting call: the children, or all with
  // the body.
  enum class cancelled_part : std::uint8_t { none, children, all };
  cancelled_part cancelled_ = cancelled_part::none;
  bool was_cut_ = false;  // a child was cancelled before it ended
  bool starting_ = false;
  bool tells_all_ = false;
  std::size_t limit_ = SIZE_MAX, running_ = 0, spawned_ = 0;
  scope_body* body_ = nullptr;
  // The next child of a for_each_started. These loops nest: a child that fails, or that cancels its
  // scope, inside of a loop begins another.
  struct cursor {
    async_call* next;
    cursor* outer;
  };
  cursor* cursors_ = nullptr;
  queue waiting_, ended_;
  std::size_t untold_ = 0;  // children that have ended, and that next() has not reported
  scope_wait* next_waits_ = nullptr;
  scope_group* next_listed_ = nullptr;
  // the asks of the body and of the children run in these; null until needed
  context_ref around_all_, around_children_;
  untaken_error first_failure_;
  std::vector<std::exception_ptr> failures_;
};

// Awaits the children of a scope, and its body.
class scope_join {
 public:
  scope_join(scope_group& group, scope_body* body) noexcept : group_(group), body_(body) {}
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    return group_.start(awaiting.promise(), body_);
  }
  void await_resume() const { group_.check(); }

 private:
  scope_group& group_;
  scope_body* body_;
};

}  // namespace troupe::tasks
