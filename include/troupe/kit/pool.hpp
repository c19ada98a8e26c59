// pool: makes resources when they are needed, lends them one by one, and reuses them.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "troupe/base/time_span.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/kit/made_task.hpp"
#include "troupe/kit/pool_core.hpp"
#include "troupe/kit/retry.hpp"
#include "troupe/kit/stoppable_sleep.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"
#include "troupe/task/when.hpp"

namespace troupe {

namespace kit {

template <class Resource>
struct pool_resource final : pool_entry {
  explicit pool_resource(Resource&& given) : pool_entry(&destroys), value(std::move(given)) {}
  static void destroys(pool_entry& self) noexcept { delete &static_cast<pool_resource&>(self); }
  Resource value;
};

template <class Resource>
struct pool_state final : pool_core {
  explicit pool_state(const pool_options& given) : pool_core(given) {}

  // Held by the task that looks at idle resources, even if it is destroyed before it begins.
  struct looks_claim {
    explicit looks_claim(const std::shared_ptr<pool_state>& watched) noexcept : pool(watched) {}
    looks_claim(looks_claim&& other) noexcept = default;
    looks_claim& operator=(looks_claim&&) = delete;
    ~looks_claim() {
      if (const auto self = pool.lock()) self->release_looks();
    }
    std::weak_ptr<pool_state> pool;
  };

  static Resource& of(const slot& mine) noexcept {
    return static_cast<pool_resource<Resource>*>(mine.entry())->value;
  }
  task<bool> is_good(slot& mine) {
    bool good = false;
    std::exception_ptr failed;
    try {
      task<bool> checked = check(of(mine));
      good = co_await std::move(checked);
    } catch (...) {
      failed = std::current_exception();
    }
    // An exception from the check means that the resource is bad; a cancellation means nothing.
    if (failed != nullptr && is_cancellation(failed)) std::rethrow_exception(std::move(failed));
    co_return good;
  }
  task<> fill(slot& mine) {
    task<Resource> making = make();
    Resource resource = co_await std::move(making);
    mine.fill(*new pool_resource<Resource>(std::move(resource)));
  }

  // Gives the slot a resource that is fit to be used.
  static task<> prepare(std::shared_ptr<pool_state> self, slot& mine) {
    while (mine.take()) {
      if (self->check == nullptr || !mine.wants_check()) co_return;
      const bool good = co_await self->is_good(mine);
      if (good) co_return;
    }
    co_await self->fill(mine);
  }

  task<> look() {
    const std::uint64_t number = begin_look();
    for (;;) {
      slot next = next_of_look(number);
      if (!next) break;
      bool good = true;
      if (check != nullptr) good = co_await is_good(next);
      end_look(std::move(next), good);
    }
    for (;;) {
      slot missing = take_missing();
      if (!missing) co_return;
      co_await fill(missing);
      missing.put_back();
    }
  }
  // Runs as a task of its own until the pool is closed or destroyed, or the runtime ends.
  static task<> keep_looking(looks_claim claim) {
    try {
      for (;;) {
        time_span pause{};
        {
          const std::shared_ptr<pool_state> self = claim.pool.lock();
          if (self == nullptr || self->is_closed()) co_return;
          pause = self->options.look_every;
          task<> once = look_once(self);
          co_await std::move(once);
        }
        co_await sleep_for(pause).weak();
      }
    } catch (const cancelled&) {
      // The runtime ends.
    }
  }
  // A step that fails now is tried again at the next check.
  static task<> look_once(std::shared_ptr<pool_state> self) {
    std::exception_ptr failed;
    try {
      co_await self->look();
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed != nullptr && is_cancellation(failed)) std::rethrow_exception(std::move(failed));
  }
  static void start_looks(const std::shared_ptr<pool_state>& self) {
    if (self->claim_looks()) static_cast<void>(spawn(keep_looking(looks_claim(self))));
  }

  unique_function<task<Resource>()> make;
  unique_function<task<bool>(Resource&)> check;
  unique_function<bool(Resource&)> is_reusable;
};

template <class Resource>
class borrow_call;

}  // namespace kit

// Makes, lends and keeps resources that are expensive to make: connections, sessions, buffers.
// There are at most `max` of them; when all are lent, callers wait in order. Copies refer to the
// same pool.
//
// Thread: any, but borrow() is awaited in a handler or a task. The callables may be called by
// several threads at a time. Cost: borrow() and the end of the lease 140 ns if a resource
// is idle, try_borrow() and the end of the lease 80 ns. Errors: option_error.
// Lifetime: leases keep the pool's state alive.
//
// Example:
//     struct connection {
//       int number;
//     };
//     troupe::task<connection> open_connection() {
//       co_await troupe::sleep_for(std::chrono::milliseconds(1));
//       co_return connection{7};
//     }
//     troupe::task<> use(troupe::pool<connection> connections) {
//       auto one = co_await connections.borrow().timeout(std::chrono::seconds(1));
//       std::cout << one->number << '\n';
//     }  // the connection goes back
//     int main() {
//       troupe::runtime rt;
//       troupe::pool<connection> connections({.max = 2}, open_connection);
//       for (int i = 0; i < 5; ++i) rt.spawn(use(connections));
//       rt.run();
//       std::cout << connections.counts().made << " were made\n";  // 1 or 2
//     }
template <class Resource>
class pool {
  static_assert(
      std::is_object_v<Resource> && std::move_constructible<Resource>,
      "troupe: pool: a resource is moved into the pool: use a std::unique_ptr to one that "
      "cannot be moved");
  using state = kit::pool_state<Resource>;

 public:
  // A resource that is lent. The destructor of the lease returns it, on any thread. Move-only.
  class [[nodiscard]] lease {
   public:
    lease() noexcept = default;
    lease(lease&&) noexcept = default;
    lease& operator=(lease&& other) noexcept {
      lease(std::move(other)).swap(*this);
      return *this;
    }
    ~lease() { end(); }

    explicit operator bool() const noexcept { return static_cast<bool>(slot_); }
    Resource& operator*() const noexcept { return state::of(slot_); }
    Resource* operator->() const noexcept { return std::addressof(**this); }

    // Destroys the resource, because it is broken: the next caller that needs one gets a new one.
    void discard() noexcept {
      slot_.end();
      pool_.reset();
    }
    void swap(lease& other) noexcept {
      pool_.swap(other.pool_);
      slot_.swap(other.slot_);
    }

   private:
    friend pool;
    friend kit::borrow_call<Resource>;
    lease(std::shared_ptr<state> lender, kit::pool_core::slot&& held) noexcept
        : pool_(std::move(lender)), slot_(std::move(held)) {}
    void end() noexcept {
      if (!slot_) return;
      bool reusable = true;
      if (pool_->is_reusable != nullptr) {
        try {
          reusable = pool_->is_reusable(**this);
        } catch (...) {
          reusable = false;
        }
      }
      reusable ? slot_.put_back() : slot_.end();
    }
    std::shared_ptr<state> pool_;
    kit::pool_core::slot slot_;  // after pool_: it is destroyed first
  };

  // `make` makes a resource: it returns the resource, a task of it, or another awaitable. An
  // exception from it goes to the caller that asked for the resource; the next caller in the line
  // tries again. `check` returns whether an idle resource still works: a bool, a task of it, or
  // another awaitable; false, or an exception other than cancelled, means that the resource is
  // destroyed. `is_reusable` returns the same when a lease ends, on the thread that ends it. It
  // must not block.
  template <class Make>
  explicit pool(pool_options options, Make make) : pool(std::move(options), std::move(make), 0) {}
  template <class Make, class Check>
  pool(pool_options options, Make make, Check check)
      : pool(std::move(options), std::move(make), std::move(check), 0) {}
  template <class Make, class Check, class IsReusable>
  pool(pool_options options, Make make, Check check, IsReusable is_reusable)
      : state_(std::make_shared<state>(options)) {
    state_->make = [make = std::move(make)]() mutable { return kit::as_made_task<Resource>(make); };
    if constexpr (!std::is_same_v<Check, int>) {
      state_->check = [check = std::move(check)](Resource& resource) mutable {
        return kit::as_made_task<bool>(check, resource);
      };
    }
    if constexpr (!std::is_same_v<IsReusable, int>) state_->is_reusable = std::move(is_reusable);
  }

  // Lends a resource: co_await it, optionally with timeout() or stop(), for a lease. The limits
  // cover the wait for other callers, the check of an idle resource and the making of a new one.
  // Waiting callers are served in order. Errors: timed_out, cancelled, pool_closed, and the
  // exceptions of `make`. Thread: in a handler or a task. A plain thread lets a task do it:
  // `rt.spawn(connections.borrow().as_task()).get()`, or one of your own that sets a limit.
  using borrowing = tasks::limited_task<kit::borrow_call<Resource>>;
  borrowing borrow() const { return borrowing(std::in_place, state_); }

  // Lends a resource if one is idle and needs no check. Thread: any.
  std::optional<lease> try_borrow() const {
    kit::pool_core::slot mine = state_->try_take();
    if (!mine) return std::nullopt;
    return lease(state_, std::move(mine));
  }

  pool_counts counts() const { return state_->counts(); }

  // Closes the pool: all waiting and all later callers get pool_closed. Idle resources are
  // destroyed at once, lent ones when they are returned. The future is ready when all are
  // destroyed.
  future<> close() const {
    state_->close();
    return state_->drained().wait();
  }

 private:
  std::shared_ptr<state> state_;
};

template <class Resource>
struct is_sendable<pool<Resource>> : std::true_type {};

namespace kit {

template <class Resource>
class borrow_call {
 public:
  using result = typename pool<Resource>::lease;
  explicit borrow_call(std::shared_ptr<pool_state<Resource>> from) noexcept
      : from_(std::move(from)) {}
  task<result> start(tasks::limits within) && {
    return borrow(std::move(from_), std::move(within));
  }

 private:
  static task<result> borrow(std::shared_ptr<pool_state<Resource>> from, tasks::limits within) {
    pool_state<Resource>::start_looks(from);
    const bool ends = co_await tasks::being_cancelled();
    if (ends || within.stop().stop_requested() || !from->take_at_once()) {
      const pool_core::counted_wait counted(*from);
      auto waits = from->wait();
      if (within.any()) {
        co_await std::move(waits).timeout(within.left()).stop(within.stop());
      } else {
        co_await std::move(waits);
      }
    }
    pool_core::slot mine(*from);
    task<> prepared = pool_state<Resource>::prepare(from, mine);
    task<> limited = run_within(std::move(prepared), std::move(within), "a resource of a pool");
    co_await std::move(limited);
    mine.lend();
    co_return result(std::move(from), std::move(mine));
  }
  std::shared_ptr<pool_state<Resource>> from_;
};

}  // namespace kit

}  // namespace troupe
