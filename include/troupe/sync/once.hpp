// once: an operation that runs once, for any number of parties that request it.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <functional>
#include <utility>

#include "troupe/sync/mutex.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

// Thread: any. Cost: about 10 ns when it is done. Errors: if the task of one party throws, that
// party gets the exception, and the next party tries. Lifetime: it must live as long as its calls.
//
// Example:
//     troupe::task<> open(std::shared_ptr<troupe::once> opened) {
//       const auto prepare = []() -> troupe::task<> {
//         std::cout << "only once\n";
//         co_return;
//       };
//       co_await opened->call(prepare);
//     }
//     int main() {
//       troupe::runtime rt;
//       auto opened = std::make_shared<troupe::once>();
//       rt.spawn(open(opened));
//       rt.spawn(open(opened));
//       rt.run();
//     }
class once {
 public:
  // Awaits the task that `make` makes, unless the operation was done before; if another party runs
  // it now, waits for that party.
  template <class Make>
  requires tasks::is_task<std::remove_cvref_t<std::invoke_result_t<Make&>>> task<> call(Make make) {
    // order: acquire  sees the effects of the operation; pairs with the release below
    if (done_.load(std::memory_order_acquire)) co_return;
    const auto held = co_await busy_.lock();
    // order: relaxed  written under the lock
    if (done_.load(std::memory_order_relaxed)) co_return;
    auto operation = make();
    co_await std::move(operation);
    // order: release  publishes the effects of the operation; pairs with the acquire above
    done_.store(true, std::memory_order_release);
  }
  // order: acquire  as in call()
  bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }

 private:
  mutex busy_;
  std::atomic<bool> done_{false};
};

}  // namespace troupe
