// A program that waits for one thing of each kind. It writes what it says of itself, a dump, and
// then `ready`: the debugger must say the same (check.py, check_kinds).
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <span>
#include <string>
#include <thread>
#include <troupe/troupe.hpp>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using troupe::ref;
using troupe::task;

namespace {

troupe::channel<int> numbers = troupe::channel<int>::rendezvous();
troupe::channel<int> full = troupe::channel<int>::bounded(1);
troupe::event never;
troupe::promise<int> promised;
troupe::mutex gate;
troupe::shared_mutex shared;
troupe::semaphore permits(0);
std::atomic<bool> is_locked{false};

// The first of these becomes a sleeping task, which has no actor.
task<> nap() { co_await troupe::sleep_for(1h); }
task<> deep_nap() {
  task<> inner = nap();
  co_await std::move(inner);
}
task<> hears() { co_await never.wait(); }
task<> receives() {
  auto one = co_await numbers.receive();
  static_cast<void>(one);
}
task<> sends() {
  co_await full.send(1);
  co_await full.send(2);
}
task<> waits_for_promise() { co_await promised.get_future(); }
task<> acquires() { auto held = co_await permits.acquire(); }
task<> locks() {
  auto held = co_await gate.lock();
  co_await never.wait();
}
task<> locks_all() {
  auto held = co_await shared.lock();
  is_locked = true;
  co_await never.wait();
}
task<> locks_shared() {
  while (!is_locked.load()) co_await troupe::yield();
  auto held = co_await shared.lock_shared();
}
task<> one_of_two() { co_await troupe::when_any(nap(), hears()); }
task<> both() { co_await troupe::when_all(nap(), hears()); }
task<> scoped() {
  co_await troupe::scope([](troupe::task_scope& children) -> task<> {
    children.spawn(nap());
    children.spawn(hears());
    co_return;
  });
}
troupe::async_generator<int> values() {
  co_yield 1;
  co_await never.wait();
}
task<> reads_stream() {
  auto all = values();
  while (auto one = co_await all.next()) static_cast<void>(one);
}
task<> limited() {
  task<> inner = hears();
  co_await std::move(inner).timeout(1h);
}
task<> reads_pipe(int fd) {
  troupe::pipe_stream in = troupe::pipe_stream::adopt(fd);
  std::byte one{};
  co_await in.read(std::span(&one, 1));
}

struct Queue {
  std::vector<int> all;
  int take() { return all.back(); }
};
struct Slow {
  task<> work() { co_await never.wait(); }
  int answer() { return 1; }
};
task<> asks(ref<Slow> slow) { co_await slow.ask<&Slow::answer>(); }

}  // namespace

int main() {
  // The script is no ancestor of this process.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  troupe::runtime rt({.workers = 2});
  const ref<Slow> slow = rt.spawn<Slow>({.mailbox = {.messages = 1}});
  slow.tell<&Slow::work>();
  const ref<Queue> queue = rt.spawn<Queue>();
  queue.tell_when<&Queue::take>([](const Queue& one) { return !one.all.empty(); });
  int ends[2] = {};
  if (pipe(ends) != 0) return 1;
  rt.spawn(nap());
  rt.spawn(deep_nap());
  rt.spawn(hears());
  rt.spawn(receives());
  rt.spawn(sends());
  rt.spawn(waits_for_promise());
  rt.spawn(acquires());
  rt.spawn(locks());
  rt.spawn(locks());
  rt.spawn(locks_all());
  rt.spawn(locks_shared());
  rt.spawn(one_of_two());
  rt.spawn(both());
  rt.spawn(scoped());
  rt.spawn(reads_stream());
  rt.spawn(limited());
  rt.spawn(reads_pipe(ends[0]));
  for (int i = 0; i < 3; ++i) rt.spawn(asks(slow));
  std::thread([&rt, open = rt.hold()] {
    std::string dump;
    // sleeps: what has to wait first are turns of other threads
    for (int tries = 0; tries < 1'000 && dump.find("suspended: 22") == std::string::npos; ++tries) {
      usleep(50'000);
      dump = rt.dump();
    }
    std::cout << dump << "ready" << std::endl;
  }).detach();
  rt.run();
}
