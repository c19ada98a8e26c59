#include "explore/planted.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <utility>

#include "troupe/troupe.hpp"

namespace planted {
namespace {

using namespace std::chrono_literals;

// ---- 1, 2: an update is lost ----

struct Clerk;
struct Stock {
  int items = 0;
  void read(troupe::ref<Clerk> clerk);
  void write(int now) { items = now; }
};
struct Clerk {
  troupe::ref<Stock> stock;
  void deliver() { stock.tell<&Stock::read>(troupe::self(this)); }
  void got(int items) { stock.tell<&Stock::write>(items + 1); }
};
void Stock::read(troupe::ref<Clerk> clerk) { clerk.tell<&Clerk::got>(items); }

struct Noise {
  troupe::ref<Noise> next;
  void know(troupe::ref<Noise> other) { next = std::move(other); }
  void hum(int left) {
    if (left != 0) next.tell<&Noise::hum>(left - 1);
  }
};
void hum(troupe::runtime& rt, int actors, int messages) {
  std::vector<troupe::ref<Noise>> all;
  for (int i = 0; i < actors; ++i) all.push_back(rt.spawn<Noise>());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].tell<&Noise::know>(all[(i + 1) % all.size()]);
    all[i].tell<&Noise::hum>(messages);
  }
}

void lose_an_update(int noisy) {
  troupe::runtime rt;
  auto stock = rt.spawn<Stock>();
  if (noisy != 0) hum(rt, noisy, 5);
  // the second one comes when the first one is usually done
  auto first = rt.spawn<Clerk>(stock), second = rt.spawn<Clerk>(stock);
  first.tell<&Clerk::deliver>();
  rt.spawn(
      [](troupe::ref<Clerk> clerk) -> troupe::task<> {
        for (int i = 0; i < 4; ++i) co_await troupe::yield();
        clerk.tell<&Clerk::deliver>();
      },
      second);
  rt.run();
  int items = 0;
  stock.tell([&items](Stock& self) { items = self.items; });
  rt.run();
  troupe::expect(items == 2);
}

// ---- 3: a cycle of asks ----

struct Peer {
  troupe::ref<Peer> other;
  void know(troupe::ref<Peer> to) { other = std::move(to); }
  int value() { return 1; }
  troupe::task<> begin() { static_cast<void>(co_await other.ask<&Peer::value>()); }
};

void ask_in_a_circle(troupe::explored_run&) {
  troupe::runtime rt;
  auto one = rt.spawn<Peer>(), other = rt.spawn<Peer>();
  one.tell<&Peer::know>(other);
  other.tell<&Peer::know>(one);
  one.tell<&Peer::begin>();
  other.tell<&Peer::begin>();
  rt.run();
}

// ---- 4: two mutexes in opposite orders ----

troupe::task<> move_between(std::shared_ptr<troupe::mutex> from,
                            std::shared_ptr<troupe::mutex> to) {
  auto first = co_await from->lock();
  auto second = co_await to->lock();
}

void lock_in_opposite_orders(troupe::explored_run&) {
  troupe::runtime rt;
  auto one = std::make_shared<troupe::mutex>(), other = std::make_shared<troupe::mutex>();
  rt.spawn(move_between(one, other));
  rt.spawn(move_between(other, one));
  rt.run();
}

// ---- 5, 6, 7: a message over one hop is overtaken by a later one over several ----

struct Target {
  bool opened = false;
  void open() { opened = true; }
  void use() { troupe::expect(opened); }
};
struct Hop {
  troupe::ref<Target> target;
  troupe::ref<Hop> next;
  void open() { target.tell<&Target::open>(); }
  void pass() {
    if (next) {
      next.tell<&Hop::pass>();
    } else {
      target.tell<&Target::use>();
    }
  }
};

void overtake(int hops, int noisy) {
  troupe::runtime rt;
  auto target = rt.spawn<Target>();
  if (noisy != 0) hum(rt, noisy, 5);
  auto direct = rt.spawn<Hop>(target, troupe::ref<Hop>());
  troupe::ref<Hop> chain;
  for (int i = 0; i < hops; ++i) chain = rt.spawn<Hop>(target, chain);
  direct.tell<&Hop::open>();
  chain.tell<&Hop::pass>();
  rt.run();
}

// ---- 8: one order of six events among twelve actors ----

struct Recorder {
  std::vector<int> seen;
  void note(int event) {
    seen.push_back(event);
    troupe::expect(seen != std::vector<int>{4, 5, 0, 1, 2, 3});
  }
};
struct Source {
  troupe::ref<Recorder> recorder;
  int event = 0;
  void act(int left) {
    if (event >= 0) recorder.tell<&Recorder::note>(event++);
    if (left != 0) troupe::self(this).tell<&Source::act>(left - 1);
  }
};

// Three sources send two events each; the other eight are beside.
void one_order_of_six(troupe::explored_run&) {
  troupe::runtime rt;
  auto recorder = rt.spawn<Recorder>();
  for (int i = 0; i < 11; ++i)
    rt.spawn<Source>(recorder, i % 4 == 1 ? i / 4 * 2 : -1).tell<&Source::act>(1);
  rt.run();
}

// ---- 9: an answer comes after its asker's limit, and changes state ----

struct Lender {
  int lent = 0;
  int lend() { return ++lent; }
};
struct Borrower {
  troupe::ref<Lender> lender;
  int borrowed = 0, refused = 0;
  troupe::task<> borrow() {
    try {
      borrowed += co_await lender.ask<&Lender::lend>().timeout(30us);
    } catch (const troupe::timed_out&) {
      ++refused;
    }
  }
};

void answer_late(troupe::explored_run&) {
  troupe::runtime rt;
  auto lender = rt.spawn<Lender>();
  auto borrower = rt.spawn<Borrower>(lender);
  borrower.tell<&Borrower::borrow>();
  rt.run();
  int lent = 0, borrowed = 0;
  lender.tell([&lent](Lender& self) { lent = self.lent; });
  borrower.tell([&borrowed](Borrower& self) { borrowed = self.borrowed; });
  rt.run();
  troupe::expect(lent == borrowed);
}

// ---- 10: a condition is signalled before its wait ----

struct Flag {
  bool is_ready = false;
  bool ready() { return is_ready; }
  void set() { is_ready = true; }
};
struct Signal {
  troupe::mutex busy;
  troupe::condition changed;
};

troupe::task<> wait_for_flag(troupe::ref<Flag> flag, std::shared_ptr<Signal> signal) {
  if (co_await flag.ask<&Flag::ready>()) co_return;
  // a notification that comes here is lost
  auto held = co_await signal->busy.lock();
  co_await signal->changed.wait(held);
}
troupe::task<> set_flag(troupe::ref<Flag> flag, std::shared_ptr<Signal> signal) {
  for (int i = 0; i < 30; ++i) co_await troupe::yield();
  co_await flag.ask<&Flag::set>();
  auto held = co_await signal->busy.lock();
  signal->changed.notify_one();
}

void signal_before_wait(troupe::explored_run&) {
  troupe::runtime rt;
  auto flag = rt.spawn<Flag>();
  auto signal = std::make_shared<Signal>();
  rt.spawn(wait_for_flag(flag, signal));
  rt.spawn(set_flag(flag, signal));
  rt.run();
}

// ---- 11: one actor is not run for 60 messages of others ----

struct Watched {
  int beats = 0;
  void beat() { ++beats; }
};
struct Monitor {
  int passed = 0;
  bool seen = false;
  void tick() { troupe::expect(++passed < 60 || seen); }
  void alive() { seen = true; }
};
struct Ticker {
  troupe::ref<Monitor> monitor;
  void tick(int left) {
    monitor.tell<&Monitor::tick>();
    if (left != 0) troupe::self(this).tell<&Ticker::tick>(left - 1);
  }
};
struct Live {
  troupe::ref<Monitor> monitor;
  void report() { monitor.tell<&Monitor::alive>(); }
};

void starve(troupe::explored_run&) {
  troupe::runtime rt;
  auto monitor = rt.spawn<Monitor>();
  auto live = rt.spawn<Live>(monitor);
  live.tell<&Live::report>();
  for (int i = 0; i < 4; ++i) rt.spawn<Ticker>(monitor).tell<&Ticker::tick>(20);
  rt.run();
}

}  // namespace

const std::vector<bug>& bugs() {
  using run = troupe::explored_run;
  static const std::vector<bug> all{
      {"lost_update", [](run&) { lose_an_update(0); }, "expect"},
      {"lost_update_in_noise", [](run&) { lose_an_update(40); }, "expect"},
      {"asks_in_a_cycle", ask_in_a_circle, "deadlock"},
      {"locks_in_opposite_orders", lock_in_opposite_orders, "deadlock"},
      {"overtaken_over_2_hops", [](run&) { overtake(2, 0); }, "expect"},
      {"overtaken_over_10_hops_in_noise", [](run&) { overtake(10, 10); }, "expect"},
      {"overtaken_over_40_hops", [](run&) { overtake(40, 0); }, "expect"},
      {"one_order_of_six", one_order_of_six, "expect"},
      {"answer_after_the_limit", answer_late, "expect"},
      {"signal_before_the_wait", signal_before_wait, "suspended"},
      {"one_actor_starves", starve, "expect"},
  };
  return all;
}

}  // namespace planted
