// end_watch: calls a function when an actor ends. For the library's own use; users have
// ref::watch.
#pragma once

#include "troupe/base/language.hpp"

#include <memory>
#include <utility>

#include "troupe/actor/supervision.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/shared_state.hpp"

namespace troupe::kit {

// Unlike future::then it does not keep the actor alive whose handler begins it, and it can be
// cancelled. Thread: any. The function runs on the thread that ends the actor, or in start() if the
// actor has ended, and must not throw.
class end_watch final : private tasks::nested_observer {
 public:
  static std::shared_ptr<end_watch> start(future<ended> end, unique_function<void()> on_end);
  end_watch(future<ended>&& end, unique_function<void()>&& on_end) noexcept
      : nested_observer{{&on_resolved}},
        state_(tasks::future_access::take(std::move(end))),
        on_end_(std::move(on_end)) {}
  end_watch(const end_watch&) = delete;
  end_watch& operator=(const end_watch&) = delete;

  // From now on the function is not called, unless a thread calls it now.
  void cancel() noexcept;

 private:
  static void on_resolved(tasks::observer& self) noexcept;
  static void tell(tasks::observer& self) noexcept;

  tasks::state_ref<tasks::state_of<ended>> state_;
  unique_function<void()> on_end_;
  std::shared_ptr<end_watch> self_;  // until it is notified or cancelled
};

}  // namespace troupe::kit
