// A program for `troupe` to look into: a handler that is slow, a mailbox that grows, an ask that
// waits, five actors that wait alike, and others that wait for locks. It runs until its standard
// input ends.
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <troupe/troupe.hpp>

using namespace std::chrono_literals;

struct Slow {
  void work() { std::this_thread::sleep_for(15ms); }  // sleeps: it stands for slow work
};
struct Grows {
  troupe::future<> until;
  troupe::task<> wait() { co_await std::move(until); }
  void put(int) {}
};
struct Visitor {
  troupe::future<> until;
  troupe::task<> queue() { co_await std::move(until); }
};
troupe::mutex doors[2];
struct Knocker {
  troupe::task<> knock(int door) { const auto held = co_await doors[door].lock(); }
  troupe::task<> enter(int door) { const auto held = co_await doors[door].lock(); }
};
struct Keeper {
  int door;
  troupe::future<> until;
  std::vector<troupe::ref<Knocker>> knockers;
  troupe::task<> keep() {
    const auto held = co_await doors[door].lock();
    for (std::size_t i = 0; i < knockers.size(); ++i)
      i == 3 ? knockers[i].tell<&Knocker::enter>(door) : knockers[i].tell<&Knocker::knock>(door);
    co_await std::move(until);
  }
};
struct Quick {
  long sum = 0;
  void add(int n) { sum += n; }
  void fail() { throw std::runtime_error("on purpose"); }
};

int main() {
  troupe::runtime_options options;
  options.workers = 2;
  options.failure_lines = 0;
  options.warnings.mailbox = 1s;
  // Only the slow handler and the mailbox are worth a warning, also on a slow machine.
  options.warnings.lock = options.warnings.timer = 0s;
  troupe::runtime rt(options);
  troupe::promise<> end;
  auto slow = rt.spawn<Slow>();
  auto grows = rt.spawn<Grows>({.name = "the tree"}, end.get_future());
  std::vector<troupe::ref<Quick>> quick;
  for (int i = 0; i < 2'000; ++i) quick.push_back(rt.spawn<Quick>());
  for (int i = 0; i < 20'000; ++i)
    quick[static_cast<std::size_t>(i) % quick.size()].tell<&Quick::add>(i);
  quick[0].tell<&Quick::fail>();
  grows.tell<&Grows::wait>();
  std::vector<troupe::promise<>> gates(7);
  for (std::size_t i = 0; i < 5; ++i)
    rt.spawn<Visitor>(gates[i].get_future()).tell<&Visitor::queue>();
  for (int door = 0; door < 2; ++door) {
    std::vector<troupe::ref<Knocker>> knockers;
    for (int i = 0; i < (door == 0 ? 1 : 4); ++i) knockers.push_back(rt.spawn<Knocker>());
    auto& gate = gates[static_cast<std::size_t>(door) + 5];
    rt.spawn<Keeper>(door, gate.get_future(), std::move(knockers)).tell<&Keeper::keep>();
  }
  troupe::hold here = rt.hold();
  auto ticks = rt.every(30ms, [&, n = 0]() mutable {
    slow.tell<&Slow::work>();
    for (int i = 0; i < 10; ++i) grows.tell<&Grows::put>(++n);
  });
  std::thread ends([&] {
    std::cout << "ready" << std::endl;
    while (std::cin.get() != std::char_traits<char>::eof()) {
    }
    ticks.cancel();
    end.set_value();
    for (troupe::promise<>& gate : gates) gate.set_value();
    here = {};
  });
  try {
    rt.run();
  } catch (const std::runtime_error&) {  // the failure on purpose
  }
  ends.join();
  std::cout << rt.metrics().total.messages << std::endl;
}
