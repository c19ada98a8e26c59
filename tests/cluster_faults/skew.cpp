// A node of an old or of a new version of one program, for skew.py. Its clients ask methods that
// both versions have. It is told what to do by lines on its standard input:
//   status  the number of shards here, and of members
//   new     asks what only the new version has, or has otherwise, and says how each ask ends
//   finish  ends the clients, and says how many asks were answered since the last time,
//           how many failed, and with what the first of them
//   sum     says what all accounts hold together
//   stop    hands the shards over while clients ask, and ends as after finish
//
//     skew NATS DATABASE NAME
#include <atomic>
#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "troupe/cluster/node.hpp"
#include "troupe/troupe.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr int key_count = 24;
constexpr int client_count = 8;

struct Counter {
  std::int64_t count = 0;
  std::int64_t add(std::int64_t n) { return count += n; }
#if defined(TROUPE_TEST_NEW)
  std::int64_t twice(std::int64_t n) { return count += 2 * n; }
  std::string scale(double by) { return std::to_string(by); }
#else
  std::int64_t scale(std::int64_t by) { return count *= by; }
#endif
};
struct Account {
  std::int64_t cents = 0;
  std::int64_t deposit(std::int64_t n) { return cents += n; }
#if defined(TROUPE_TEST_NEW)
  std::int64_t balance() const { return cents; }
#endif
};
#if defined(TROUPE_TEST_NEW)
struct Added {
  std::int64_t one() { return 1; }
};
#endif

cluster::node make_node(runtime& rt, cluster::options chosen) {
#if defined(TROUPE_TEST_NEW)
  return cluster::node(rt, std::move(chosen),
                       cluster::kind<Counter, &Counter::add, &Counter::twice, &Counter::scale>(),
                       cluster::kind<Added, &Added::one>(),
                       durable::kind<Account, &Account::deposit, &Account::balance>());
#else
  return cluster::node(rt, std::move(chosen),
                       cluster::kind<Counter, &Counter::add, &Counter::scale>(),
                       durable::kind<Account, &Account::deposit>());
#endif
}

void say(const std::string& text) { std::cout << text + '\n' << std::flush; }

std::string text_of(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const cluster::error& e) {
    return std::string(cluster::name_of(e.kind())) + ": " + e.what();
  } catch (const durable::unknown_method& e) {
    return std::string("durable::unknown_method: ") + e.what();
  } catch (const std::exception& e) {
    return e.what();
  }
}

// The node of the asker has ended, and has sent nothing.
bool is_stopped(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const cluster::error& e) {
    return e.kind() == cluster::failure::stopped;
  } catch (...) {
    return false;
  }
}

std::string key_of(int number) { return "key " + std::to_string(number); }

struct totals {
  std::atomic<bool> ends{false};
  std::atomic<std::int64_t> answered{0}, failed{0};
  std::mutex mutex;
  std::string first_failure = "none";
};

task<> client(cluster::node on, totals& all, int number) {
  for (int i = number; !all.ends; ++i) {
    const std::string key = key_of(i % key_count);
    std::exception_ptr failed;
    try {
      auto counts = on.get<Counter>(key).ask<&Counter::add>(1);
      co_await std::move(counts);
      auto deposits = on.get_durable<Account>(key).ask<&Account::deposit>(1);
      co_await std::move(deposits);
      ++all.answered;
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed != nullptr && is_stopped(failed)) break;
    if (failed != nullptr && all.failed++ == 0) {
      std::lock_guard held(all.mutex);
      all.first_failure = text_of(failed);
    }
    co_await sleep_for(20ms);  // sleeps: between asks
  }
}

#if defined(TROUPE_TEST_NEW)
template <class Ask>
task<> ask_new(std::string what, Ask ask) {
  std::exception_ptr failed;
  try {
    auto asks = ask();
    static_cast<void>(co_await std::move(asks));
  } catch (...) {
    failed = std::current_exception();
  }
  say("asked " + what + ": " + (failed == nullptr ? "answered" : text_of(failed)));
}

task<> ask_all_new(cluster::node on) {
  for (int i = 0; i < key_count; ++i) {
    const std::string key = key_of(i);
    const auto counter = on.get<Counter>(key);
    auto first = ask_new("twice", [counter] { return counter.ask<&Counter::twice>(0); });
    co_await std::move(first);
    auto second = ask_new("scale", [counter] { return counter.ask<&Counter::scale>(0.5); });
    co_await std::move(second);
    auto third = ask_new("one", [one = on.get<Added>(key)] { return one.ask<&Added::one>(); });
    co_await std::move(third);
    auto fourth = ask_new("balance", [account = on.get_durable<Account>(key)] {
      return account.ask<&Account::balance>();
    });
    co_await std::move(fourth);
  }
  say("asked all");
}
#endif

task<> sum_all(cluster::node on) {
  std::int64_t sum = 0;
  for (int i = 0; i < key_count; ++i) {
    auto deposits = on.get_durable<Account>(key_of(i)).ask<&Account::deposit>(0);
    sum += co_await std::move(deposits);
  }
  say("sum " + std::to_string(sum));
}

task<std::string> next_line() {
  auto reads = blocking([] {
    std::string line;
    return std::getline(std::cin, line) ? line : std::string("stop");
  });
  co_return co_await std::move(reads);
}

task<> finish(totals& all, std::vector<future<>>& clients) {
  all.ends = true;
  for (future<>& one : std::exchange(clients, {})) co_await std::move(one);
  std::lock_guard held(all.mutex);
  say("finished " + std::to_string(all.answered.exchange(0)) + ' ' + std::to_string(all.failed) +
      ' ' + all.first_failure);
}

task<> serve(runtime& rt, cluster::options chosen) {
  const cluster::node on = make_node(rt, std::move(chosen));
  auto joins = on.ready();
  co_await std::move(joins);
  totals all;
  std::vector<future<>> clients;
  for (int i = 0; i < client_count; ++i) clients.push_back(spawn(client(on, all, i)));
  say("joined");
  for (std::string line; line != "stop";) {
    auto reads = next_line();
    line = co_await std::move(reads);
    if (line == "status") {
      const cluster::counts now = on.counts();
      say("status " + std::to_string(now.shards) + ' ' + std::to_string(now.members));
    }
#if defined(TROUPE_TEST_NEW)
    if (line == "new") {
      auto asks = ask_all_new(on);
      co_await std::move(asks);
    }
#endif
    if (line == "sum") {
      auto sums = sum_all(on);
      co_await std::move(sums);
    }
    if (line == "finish") {
      auto finishes = finish(all, clients);
      co_await std::move(finishes);
    }
  }
  auto stops = on.stop();
  co_await std::move(stops);
  auto finishes = finish(all, clients);
  co_await std::move(finishes);
  say("stopped");
}

}  // namespace
}  // namespace troupe::test

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    troupe::cluster::options chosen;
    chosen.nats = argv[1];
    chosen.database = argv[2];
    chosen.name = argv[3];
    troupe::runtime_options small;
    small.workers = 1;
    troupe::runtime rt(small);
    auto done = rt.spawn(troupe::test::serve(rt, chosen));
    rt.run();
    done.get();
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "skew: " << e.what() << std::endl;
    return 1;
  }
}
