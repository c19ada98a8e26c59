// A program with everything that the debugger's commands tell of: the script of the test stops it,
// or makes a core file of it, as soon as it says `ready`.
//
//   debugged_program          stays as it is until it is killed
//   debugged_program 100000   the same, among so many inactive actors
//   debugged_program crash    ends by abort() in a handler
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <troupe/troupe.hpp>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using troupe::ref;
using troupe::task;

namespace {

// Each call that waits for something that lasts counts itself just before.
std::atomic<int> waiting{0};
constexpr int all_waiting = 9, all_suspended = 11;
bool crashes = false;

[[gnu::noinline]] void say_ready() {
  std::puts("ready");
  std::fflush(stdout);
}

struct Sleeper {
  int visits = 7;
  void visit() { ++visits; }
};

// Where all chains of waits end.
struct Account {
  int balance = 40;

  task<int> audit(int depth) {
    if (depth == 0) {
      ++waiting;
      co_await troupe::sleep_for(1h);
      co_return balance;
    }
    task<int> next = audit(depth - 1);
    co_return co_await std::move(next) + 1;
  }
  task<int> withdraw(int amount) {
    const int rest = co_await audit(2);
    co_return rest - amount;
  }
  void deposit(int amount) { balance += amount; }
};

struct Bank {
  ref<Account> account;

  task<int> check(int amount) { co_return co_await account.ask<&Account::withdraw>(amount); }
  task<int> transfer(int amount) {
    const int left = co_await check(amount);
    co_return left;
  }
};

task<> order(ref<Bank> bank) {
  const int left = co_await bank.ask<&Bank::transfer>(3);
  std::printf("%d left\n", left);
}

// Each asks the other, with a limit: so the library does not refuse the cycle.
struct Partner {
  static inline std::atomic<int> begun{0};
  ref<Partner> other;
  task<int> begin(ref<Partner> with) {
    other = std::move(with);
    ++begun;
    while (begun.load() < 2) co_await troupe::yield();
    ++waiting;
    co_return co_await other.ask<&Partner::answer>().timeout(1h);
  }
  int answer() { return 1; }
};

struct Collector {
  ref<Account> account;
  troupe::future<int> later;

  task<int> one(int n) {
    ++waiting;
    co_await troupe::sleep_for(1h);
    co_return n;
  }
  task<int> both() {
    auto results = co_await troupe::when_all(one(1), account.ask<&Account::withdraw>(2));
    co_return std::get<0>(results) + std::get<1>(results);
  }
};

struct Counter {
  static constexpr bool reentrant = true;
  task<> count(int n) {
    ++waiting;
    co_await troupe::sleep_for(1h);
    std::printf("%d\n", n);
  }
};

struct Locked {
  troupe::mutex* gate;
  task<> pass() {
    ++waiting;
    auto held = co_await gate->lock();
    co_await troupe::sleep_for(1h);
  }
};

// Its handler runs when the program is stopped.
struct Busy {
  ref<Account> account;
  void work(troupe::future<int> later) {
    // sleeps: a turn that has counted itself may not be suspended yet
    usleep(20'000);
    troupe::promise<int> promised, kept;
    const troupe::future<int> none, soon = promised.get_future();
    promised.set_value(5);
    Account nobody;
    const task<int> never = nobody.audit(1);
    stop_here(account, later, none, soon, kept, never);
  }
  [[gnu::noinline]] void stop_here(const ref<Account>& to, const troupe::future<int>& answer,
                                   const troupe::future<int>& none, const troupe::future<int>& soon,
                                   const troupe::promise<int>& kept, const task<int>& never) {
    say_ready();
    if (crashes) std::abort();
    // sleeps: until the script kills the program
    for (volatile bool on = true; on;) usleep(1000);
    std::printf("%d%d%d%d%d%p\n", answer.ready(), static_cast<int>(to == account), none.valid(),
                soon.ready(), kept.abandoned(), static_cast<const void*>(&never));
  }
};

}  // namespace

int main(int argc, char** argv) {
  // The script is no ancestor of this process.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  crashes = argc > 1 && std::string_view(argv[1]) == "crash";
  const long many = argc > 1 && !crashes ? std::atol(argv[1]) : 0;
  troupe::runtime rt({.workers = 2});

  const ref<Account> account = rt.spawn<Account>();
  const ref<Bank> bank = rt.spawn<Bank>(Bank{account});
  const ref<Partner> one = rt.spawn<Partner>(), two = rt.spawn<Partner>();
  one.tell<&Partner::begin>(two);
  two.tell<&Partner::begin>(one);

  rt.spawn<Collector>(Collector{rt.spawn<Account>(), {}}).tell<&Collector::both>();

  const ref<Counter> counter = rt.spawn<Counter>();
  counter.tell<&Counter::count>(1);
  counter.tell<&Counter::count>(2);

  troupe::mutex gate;
  rt.spawn<Locked>(Locked{&gate}).tell<&Locked::pass>();
  rt.spawn<Locked>(Locked{&gate}).tell<&Locked::pass>();

  std::vector<ref<Sleeper>> sleepers;
  for (long i = 0; i < many; ++i) sleepers.push_back(rt.spawn<Sleeper>());

  rt.spawn(order(bank));
  // sleeps: what has to wait first are turns of other threads
  while (waiting.load() < all_waiting || rt.metrics().suspended < all_suspended) usleep(1000);
  for (int i = 0; i < 5; ++i) account.tell<&Account::deposit>(i);
  rt.spawn<Busy>(Busy{account}).tell<&Busy::work>(account.ask<&Account::withdraw>(1));
  rt.run();
}
