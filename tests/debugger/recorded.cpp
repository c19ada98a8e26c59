// A program with a flight recorder, whose last turns are known.
//
//   debugged_turns          says `ready` and stays as it is until it is killed
//   debugged_turns crash    ends by SIGSEGV in a handler
//   debugged_turns many     has many more turns than a ring has room for, and stays
#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <troupe/troupe.hpp>
#include <utility>

using namespace std::chrono_literals;
using troupe::ref;
using troupe::task;

namespace {

struct Account {
  int balance = 40;
  void deposit(int amount) { balance += amount; }
  void withdraw(int amount) { balance -= amount; }
  int read() const { return balance; }
  void crash() { ::raise(SIGSEGV); }
};

struct Bank {
  ref<Account> account;
  task<int> audit() {
    co_await troupe::sleep_for(2ms);
    co_return co_await account.ask<&Account::read>();  // line of the last wait
  }
};

struct Counter {
  ref<Counter> next;
  void meet(ref<Counter> other) { next = std::move(other); }
  void count(int left) {
    if (left > 0) next.tell<&Counter::count>(left - 1);
  }
};

void say_ready() {
  std::puts("ready");
  std::fflush(stdout);
}

task<> story(ref<Account> account, ref<Bank> bank, bool crashes) {
  account.tell<&Account::deposit>(5);
  co_await troupe::sleep_for(2ms);
  account.tell<&Account::withdraw>(7);
  co_await bank.ask<&Bank::audit>();
  if (crashes) account.tell<&Account::crash>();
  co_await troupe::sleep_for(50ms);
  say_ready();
  co_await troupe::sleep_for(1h);
}

}  // namespace

int main(int argc, char** argv) {
  // The script is no ancestor of this process.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  const std::string_view how = argc > 1 ? argv[1] : "";
  troupe::runtime rt({.workers = 1, .flight_recorder_bytes = std::size_t{64} << 10});
  if (how == "many") {
    const ref<Counter> one = rt.spawn<Counter>(), two = rt.spawn<Counter>();
    one.tell<&Counter::meet>(two);
    two.tell<&Counter::meet>(one);
    one.tell<&Counter::count>(100'000);
  }
  const ref<Account> account = rt.spawn<Account>();
  rt.spawn(story(account, rt.spawn<Bank>(account), how == "crash"));
  rt.run();
}
