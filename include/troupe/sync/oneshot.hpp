// oneshot: a channel for one value.
#pragma once

#include "troupe/base/language.hpp"

#include <utility>

#include "troupe/task/future.hpp"

namespace troupe {

// Makes the two ends of a channel for one value: a promise, which sends it, and the future, which
// receives it. These are all operations of a channel for one value: the promise can be set once,
// from any thread; the future is awaited, with timeout() and stop(), or blocks in get(); a promise
// that is dropped resolves the future with broken_promise, and abandoned() returns whether no
// receiver waits any more.
//
// Thread: any. Cost: one block of memory, about 10 ns. Errors: as promise and future.
//
// Example:
//     troupe::task<> answer(troupe::promise<int> to) {
//       to.set_value(42);
//       co_return;
//     }
//     troupe::task<> ask(troupe::runtime& rt) {
//       auto [to, from] = troupe::oneshot<int>();
//       rt.spawn(answer(std::move(to)));
//       std::cout << co_await std::move(from).timeout(std::chrono::seconds(1)) << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(ask(rt));
//       rt.run();
//     }
template <class T = void>
std::pair<promise<T>, future<T>> oneshot() {
  promise<T> given;
  future<T> from = given.get_future();
  return {std::move(given), std::move(from)};
}

}  // namespace troupe
