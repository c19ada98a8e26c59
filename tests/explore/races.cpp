// More mistakes: timers, deadlines, ends and hand-made synchronization that race.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "explore/found.hpp"
#include "explore/pauses.hpp"
#include "explore/planted.hpp"
#include "troupe/troupe.hpp"

namespace planted {
namespace {

using namespace std::chrono_literals;

// ---- two timers, of which the second one counts on what the first one has begun ----

struct Ledger {
  bool is_closed = false;
  void close() { is_closed = true; }
  void report() { troupe::expect(is_closed); }
};
struct Step {
  troupe::ref<Ledger> ledger;
  troupe::ref<Step> next;
  void close() { next ? next.tell<&Step::close>() : ledger.tell<&Ledger::close>(); }
};

void count_on_another_timer(troupe::explored_run&) {
  troupe::runtime rt;
  auto ledger = rt.spawn<Ledger>();
  auto step = rt.spawn<Step>(ledger, rt.spawn<Step>(ledger, troupe::ref<Step>()));
  auto first = step.tell_after<&Step::close>(100us);
  auto second = ledger.tell_after<&Ledger::report>(140us);
  rt.run();
}

// ---- a deadline ends a transfer between its two parts ----

struct Till {
  int money = 50;
  void change(int by) { money += by; }
};
troupe::task<> transfer(troupe::ref<Till> from, troupe::ref<Till> to) {
  co_await from.ask<&Till::change>(-10);
  co_await to.ask<&Till::change>(10);
}
troupe::task<> transfer_in_time(troupe::ref<Till> from, troupe::ref<Till> to) {
  try {
    co_await transfer(from, to).timeout(40us);
  } catch (const troupe::timed_out&) {
  }
}

void end_between_two_parts(troupe::explored_run&) {
  troupe::runtime rt;
  auto from = rt.spawn<Till>(), to = rt.spawn<Till>();
  rt.spawn(transfer_in_time(from, to));
  rt.run();
  int sum = 0;
  from.tell([&sum](Till& self) { sum += self.money; });
  to.tell([&sum](Till& self) { sum += self.money; });
  rt.run();
  troupe::expect(sum == 100);
}

// ---- three actors, of which one is always empty, ask each other if they have nothing ----

struct Shop {
  int stock = 1;
  troupe::ref<Shop> other;
  void know(troupe::ref<Shop> met) { other = std::move(met); }
  void sell() { --stock; }
  void refill() { ++stock; }
  troupe::task<int> get() {
    if (stock > 0) co_return stock--;
    co_return co_await other.ask<&Shop::get>();
  }
};
troupe::task<> shop(troupe::ref<Shop> at, int thinks) {
  auto waits = pause(thinks);
  co_await std::move(waits);
  at.tell<&Shop::sell>();
  auto travels = pause(6);
  co_await std::move(travels);
  at.tell<&Shop::refill>();
}
troupe::task<> buy(troupe::ref<Shop> at) {
  auto waits = pause(2);
  co_await std::move(waits);
  static_cast<void>(co_await at.ask<&Shop::get>());
}

void ask_round_three_shops(troupe::explored_run&) {
  troupe::runtime rt;
  std::vector<troupe::ref<Shop>> shops;
  for (const int stock : {1, 1, 0}) shops.push_back(rt.spawn<Shop>(stock));
  for (std::size_t i = 0; i < 3; ++i) shops[i].tell<&Shop::know>(shops[(i + 1) % 3]);
  rt.run();
  rt.spawn(shop(shops[0], 0));
  rt.spawn(shop(shops[1], 10));
  rt.spawn(buy(shops[0]));
  rt.run();
}

// ---- an event is reset after another party has set it ----

struct Gate {
  troupe::event open;
  int jobs = 0;
};
struct Log {
  int lines = 0;
  void write() { ++lines; }
};
troupe::task<> drain(std::shared_ptr<Gate> gate, troupe::ref<Log> log, int wanted) {
  for (int done = 0; done < wanted;) {
    auto opens = gate->open.wait();
    co_await std::move(opens);
    done += std::exchange(gate->jobs, 0);
    co_await log.ask<&Log::write>();  // a job that comes here is forgotten by the reset
    gate->open.reset();
  }
}
troupe::task<> add_jobs(std::shared_ptr<Gate> gate, int count) {
  for (int i = 0; i < count; ++i) {
    ++gate->jobs;
    gate->open.set();
    auto waits = pause(12);
    co_await std::move(waits);
  }
}

void reset_what_another_set(troupe::explored_run&) {
  troupe::runtime rt;
  auto gate = std::make_shared<Gate>();
  rt.spawn(drain(gate, rt.spawn<Log>(), 3));
  rt.spawn(add_jobs(gate, 3));
  rt.run();
}

// ---- two callers make the same thing, since it is looked for before it is made ----

struct Maker {
  int made = 0;
  int make() { return ++made; }
};
struct Cache {
  std::optional<int> kept;
};
troupe::task<> look_up(std::shared_ptr<Cache> cache, troupe::ref<Maker> maker, int thinks) {
  auto waits = pause(thinks);
  co_await std::move(waits);
  if (!cache->kept) {
    const int made = co_await maker.ask<&Maker::make>();
    troupe::expect(!cache->kept);
    cache->kept = made;
  }
}

void make_twice(troupe::explored_run&) {
  troupe::runtime rt;
  auto cache = std::make_shared<Cache>();
  auto maker = rt.spawn<Maker>();
  rt.spawn(look_up(cache, maker, 0));
  rt.spawn(look_up(cache, maker, 14));
  rt.run();
}

// ---- the end of the first producer closes the channel for the second one ----

troupe::task<> produce(troupe::channel<int> to, std::shared_ptr<int> active, int thinks) {
  auto waits = pause(thinks);
  co_await std::move(waits);
  ++*active;
  co_await to.send(1);
  if (--*active == 0) to.close();  // "the last one"
}
troupe::task<> consume(troupe::channel<int> from, std::shared_ptr<int> sum) {
  while (const auto got = co_await from.receive()) *sum += *got;
}

void close_for_another(troupe::explored_run&) {
  troupe::runtime rt;
  const auto channel = troupe::channel<int>::rendezvous();
  auto active = std::make_shared<int>(0), sum = std::make_shared<int>(0);
  rt.spawn(produce(channel, active, 0));
  rt.spawn(produce(channel, active, 0));
  auto waits = [](troupe::channel<int> from, std::shared_ptr<int> into) -> troupe::task<> {
    auto begins = pause(6);
    co_await std::move(begins);
    auto reads = consume(std::move(from), std::move(into));
    co_await std::move(reads);
  };
  rt.spawn(waits(channel, sum));
  rt.run();
  troupe::expect(*sum == 2);
}

// ---- the count of ends overtakes the last results ----

struct Total {
  int sum = 0, ends = 0;
  void add(int value) { sum += value; }
  void end() {
    if (++ends == 3) troupe::expect(sum == 6);
  }
};
struct Router {
  troupe::ref<Total> total;
  void add(int value) { total.tell<&Total::add>(value); }
};
struct Source {
  troupe::ref<Router> router;
  troupe::ref<Total> total;
  void work(int left) {
    if (left == 0) return later(8);
    router.tell<&Router::add>(1);
    troupe::self(this).tell<&Source::work>(left - 1);
  }
  void later(int turns) {
    if (turns == 0) return total.tell<&Total::end>();
    troupe::self(this).tell<&Source::later>(turns - 1);
  }
};

void end_before_the_last_result(troupe::explored_run&) {
  troupe::runtime rt;
  auto total = rt.spawn<Total>();
  for (int i = 0; i < 3; ++i)
    rt.spawn<Source>(rt.spawn<Router>(total), total).tell<&Source::work>(2);
  rt.run();
}

// ---- readers that become writers while they read ----

troupe::task<> read_then_write(std::shared_ptr<troupe::shared_mutex> lock, troupe::ref<Log> log,
                               int thinks) {
  auto waits = pause(thinks);
  co_await std::move(waits);
  auto reading = co_await lock->lock_shared();
  co_await log.ask<&Log::write>();
  auto more = co_await lock->lock_shared();  // behind a writer that waits
}
troupe::task<> write(std::shared_ptr<troupe::shared_mutex> lock, int thinks) {
  auto waits = pause(thinks);
  co_await std::move(waits);
  auto writing = co_await lock->lock();
}

void read_twice_behind_a_writer(troupe::explored_run&) {
  troupe::runtime rt;
  auto lock = std::make_shared<troupe::shared_mutex>();
  rt.spawn(read_then_write(lock, rt.spawn<Log>(), 0));
  rt.spawn(write(lock, 16));
  rt.run();
}

// ---- a stop cancels a handler between two changes of another actor ----

struct Stock {
  int left = 1, reserved = 0;
  void reserve() { --left, ++reserved; }
  void ship() { --reserved; }
};
struct Order {
  troupe::ref<Stock> stock;
  troupe::task<> run() {
    co_await stock.ask<&Stock::reserve>();
    co_await stock.ask<&Stock::ship>();
  }
};
troupe::task<> give_up(troupe::ref<Order> order) {
  auto waits = pause(20);
  co_await std::move(waits);
  order.stop();
}

void stop_in_the_middle(troupe::explored_run&) {
  troupe::runtime rt;
  auto stock = rt.spawn<Stock>();
  auto order = rt.spawn<Order>(stock);
  order.tell<&Order::run>();
  rt.spawn(give_up(order));
  rt.run();
  int reserved = 0;
  stock.tell([&reserved](Stock& self) { reserved = self.reserved; });
  rt.run();
  troupe::expect(reserved == 0);
}

// ---- four locks: two pairs are taken in order, a transfer over both is not ----

troupe::task<> lock_two(shared_lock first, shared_lock second, int thinks) {
  auto waits = pause(thinks);
  co_await std::move(waits);
  auto one = co_await first->lock();
  auto other = co_await second->lock();
}
troupe::task<> lock_three(shared_lock first, shared_lock second, shared_lock third, int thinks) {
  auto waits = pause(thinks);
  co_await std::move(waits);
  auto one = co_await first->lock();
  auto two = co_await second->lock();
  auto three = co_await third->lock();
}

void lock_over_two_pairs(troupe::explored_run&) {
  troupe::runtime rt;
  std::vector<shared_lock> locks;
  for (int i = 0; i < 4; ++i) locks.push_back(std::make_shared<troupe::mutex>());
  rt.spawn(lock_two(locks[0], locks[1], 0));
  rt.spawn(lock_two(locks[2], locks[3], 0));
  rt.spawn(lock_three(locks[1], locks[2], locks[3], 8));
  rt.spawn(lock_three(locks[3], locks[0], locks[2], 16));
  rt.run();
}

class races : public testing::TestWithParam<bug> {};

TEST_P(races, are_found_reduced_and_repeated) { expect_found_reduced_and_repeated(GetParam()); }

const bug all[] = {
    {"counting_on_another_timer", count_on_another_timer, "expect"},
    {"an_end_between_two_parts", end_between_two_parts, "expect"},
    {"asks_round_three_shops", ask_round_three_shops, "wait for itself"},
    {"a_reset_of_what_another_set", reset_what_another_set, "suspended"},
    {"made_twice", make_twice, "expect"},
    {"closed_for_another", close_for_another, ""},
    {"an_end_before_the_last_result", end_before_the_last_result, "expect"},
    {"a_second_read_behind_a_writer", read_twice_behind_a_writer, "suspended"},
    {"a_stop_in_the_middle", stop_in_the_middle, ""},
    {"locks_over_two_pairs", lock_over_two_pairs, "deadlock"},
};
INSTANTIATE_TEST_SUITE_P(each, races, testing::ValuesIn(all),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace planted
