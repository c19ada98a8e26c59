// Mistakes that users make with the parts of troupe, beyond the eleven planted bugs: each of them
// is found, reduced and repeated in the same way.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "explore/found.hpp"
#include "explore/pauses.hpp"
#include "explore/planted.hpp"
#include "troupe/troupe.hpp"

namespace planted {
namespace {

using namespace std::chrono_literals;

// ---- three locks, of which an actor says the second one ----

struct Routes {
  std::vector<std::size_t> next{1, 2, 0};
  std::size_t after(std::size_t from) { return next[from]; }
  void turn_round() { next = {1, 2, 1}; }
};

troupe::task<> cross(std::shared_ptr<std::vector<troupe::mutex>> tracks, troupe::ref<Routes> routes,
                     std::size_t from) {
  auto waits = pause(static_cast<int>(from) * 12);
  co_await std::move(waits);
  auto first = co_await (*tracks)[from].lock();
  const std::size_t to = co_await routes.ask<&Routes::after>(from);
  auto second = co_await (*tracks)[to].lock();
}

void lock_in_a_ring_that_is_asked_for(troupe::explored_run&) {
  troupe::runtime rt;
  auto tracks = std::make_shared<std::vector<troupe::mutex>>(3);
  auto routes = rt.spawn<Routes>();
  for (std::size_t i = 0; i < 3; ++i) rt.spawn(cross(tracks, routes, i));
  rt.run();
}

// ---- who does not get the lock leaves its work to the holder, which has looked already ----

struct Outbox {
  troupe::mutex busy;
  std::vector<int> waiting;
  int sent = 0;
};
struct Wire {
  int bytes = 0;
  void send(int size) { bytes += size; }
};

troupe::task<> flush(std::shared_ptr<Outbox> box, troupe::ref<Wire> wire, int text, int thinks) {
  auto waits = pause(thinks);
  co_await std::move(waits);
  box->waiting.push_back(text);
  const auto held = box->busy.try_lock();
  if (!held) co_return;  // the holder sends it
  while (!box->waiting.empty()) {
    const std::vector<int> texts = std::exchange(box->waiting, {});
    box->sent += static_cast<int>(texts.size());
  }
  co_await wire.ask<&Wire::send>(text);
}

void leave_work_to_the_holder(troupe::explored_run&) {
  troupe::runtime rt;
  auto box = std::make_shared<Outbox>();
  auto wire = rt.spawn<Wire>();
  rt.spawn(flush(box, wire, 1, 0));
  rt.spawn(flush(box, wire, 2, 20));
  rt.run();
  troupe::expect(box->sent == 2);
}

// ---- one condition for two reasons, and notify_one wakes the wrong party ----

struct Buffer {
  troupe::mutex busy;
  troupe::condition changed;
  std::deque<int> items;
};

troupe::task<> put(std::shared_ptr<Buffer> buffer, int count, int thinks) {
  for (int i = 0; i < count; ++i) {
    auto waits = pause(thinks);
    co_await std::move(waits);
    auto held = co_await buffer->busy.lock();
    while (buffer->items.size() == 1) co_await buffer->changed.wait(held);
    buffer->items.push_back(i);
    buffer->changed.notify_one();
  }
}
troupe::task<> take(std::shared_ptr<Buffer> buffer, int count) {
  for (int i = 0; i < count; ++i) {
    auto held = co_await buffer->busy.lock();
    while (buffer->items.empty()) co_await buffer->changed.wait(held);
    buffer->items.pop_front();
    buffer->changed.notify_one();
  }
}

void wake_the_wrong_party(troupe::explored_run&) {
  troupe::runtime rt;
  auto buffer = std::make_shared<Buffer>();
  rt.spawn(take(buffer, 2));
  rt.spawn(take(buffer, 2));
  rt.spawn(put(buffer, 2, 6));
  rt.spawn(put(buffer, 2, 9));
  rt.run();
}

// ---- a stop wins in a select while orders are left ----

struct Kitchen {
  troupe::channel<int> orders = troupe::channel<int>::unbounded();
  troupe::channel<int> stops = troupe::channel<int>::unbounded();
  int served = 0;
};

troupe::task<> cook(std::shared_ptr<Kitchen> kitchen) {
  for (;;) {
    const auto got = co_await troupe::select(kitchen->orders.receive(), kitchen->stops.receive());
    if (got.index() == 1) co_return;
    ++kitchen->served;
  }
}
troupe::task<> close_up(std::shared_ptr<Kitchen> kitchen) {
  for (int i = 0; i < 3; ++i) {
    co_await kitchen->orders.send(i);
    auto waits = pause(4);
    co_await std::move(waits);
  }
  co_await kitchen->stops.send(1);
}

void stop_before_the_last_order(troupe::explored_run&) {
  troupe::runtime rt;
  auto kitchen = std::make_shared<Kitchen>();
  rt.spawn(cook(kitchen));
  rt.spawn(close_up(kitchen));
  rt.run();
  troupe::expect(kitchen->served == 3);
}

// ---- the loser of when_any has its effect all the same ----

struct Printer {
  int pages = 0;
  int print() { return ++pages; }
};
struct Office {
  troupe::ref<Printer> near, far;
  int wanted = 0;
  troupe::task<> print() {
    ++wanted;
    const auto first =
        co_await troupe::when_any(near.ask<&Printer::print>(), troupe::sleep_for(60us));
    if (first.index() == 1) static_cast<void>(co_await far.ask<&Printer::print>());
  }
};

void print_twice(troupe::explored_run&) {
  troupe::runtime rt;
  auto near = rt.spawn<Printer>(), far = rt.spawn<Printer>();
  auto office = rt.spawn<Office>(near, far);
  office.tell<&Office::print>();
  rt.run();
  int pages = 0;
  near.tell([&pages](Printer& self) { pages += self.pages; });
  far.tell([&pages](Printer& self) { pages += self.pages; });
  rt.run();
  troupe::expect(pages == 1);
}

// ---- a timer that was cancelled has sent its message before ----

struct Session {
  troupe::timer ends;
  int uses = 0;
  bool is_open = true;
  void begin() { ends = troupe::self(this).tell_after<&Session::expire>(90us); }
  void use() {
    if (!is_open) return;
    ++uses;
    ends.cancel();
    ends = troupe::self(this).tell_after<&Session::expire>(90us);
    last_use = uses;
  }
  int last_use = 0, expiries = 0;
  void expire() {
    is_open = false;
    ++expiries;
  }
};

void cancel_too_late(troupe::explored_run&) {
  troupe::runtime rt;
  auto session = rt.spawn<Session>();
  session.tell<&Session::begin>();
  rt.spawn(
      [](troupe::ref<Session> used) -> troupe::task<> {
        auto waits = pause(10);
        co_await std::move(waits);
        used.tell<&Session::use>();
      },
      session);
  rt.run();
  int expiries = 0;
  session.tell([&expiries](Session& self) { expiries = self.expiries; });
  rt.run();
  troupe::expect(expiries == 1);
}

// ---- an ask reaches a worker that its pool has stopped ----

struct Worker {
  int work(int size) { return size; }
};
struct Pool {
  troupe::ref<Worker> idle;
  troupe::ref<Worker> lend() { return idle; }
  void shrink() { idle.stop(); }
};
troupe::task<> use_pool(troupe::ref<Pool> pool, std::shared_ptr<int> done) {
  const troupe::ref<Worker> worker = co_await pool.ask<&Pool::lend>();
  *done += co_await worker.ask<&Worker::work>(1);
}
troupe::task<> shrink_pool(troupe::ref<Pool> pool) {
  auto waits = pause(25);
  co_await std::move(waits);
  pool.tell<&Pool::shrink>();
}

void ask_after_stop(troupe::explored_run&) {
  troupe::runtime rt;
  auto pool = rt.spawn<Pool>(rt.spawn<Worker>());
  auto done = std::make_shared<int>(0);
  rt.spawn(use_pool(pool, done));
  rt.spawn(shrink_pool(pool));
  rt.run();
  troupe::expect(*done == 1);
}

// ---- an older setting overtakes a newer one over two relays ----

struct Display {
  int version = 0;
  void show(int shown) { version = shown; }
};
struct Relay {
  troupe::ref<Display> display;
  troupe::ref<Relay> next;
  void pass(int version) {
    next ? next.tell<&Relay::pass>(version) : display.tell<&Display::show>(version);
  }
};
struct Editor {
  troupe::ref<Relay> far, near;
  void save(int version) {
    (version % 2 == 1 ? far : near).tell<&Relay::pass>(version);
    if (version < 4) later(version, 10);
  }
  void later(int version, int turns) {
    if (turns == 0) return save(version + 1);
    troupe::self(this).tell<&Editor::later>(version, turns - 1);
  }
};

void overtake_over_relays(troupe::explored_run&) {
  troupe::runtime rt;
  auto display = rt.spawn<Display>();
  auto near = rt.spawn<Relay>(display, troupe::ref<Relay>());
  auto far = rt.spawn<Relay>(display, rt.spawn<Relay>(display, troupe::ref<Relay>()));
  rt.spawn<Editor>(far, near).tell<&Editor::save>(1);
  rt.run();
  int version = 0;
  display.tell([&version](Display& self) { version = self.version; });
  rt.run();
  troupe::expect(version == 4);
}

// ---- a reentrant actor's balance changes between the check and the change ----

struct Guard {
  int checks = 0;
  bool allows(int amount) { return ++checks, amount < 1'000; }
};
struct Account {
  static constexpr bool reentrant = true;
  troupe::ref<Guard> guard;
  int balance = 100;
  troupe::task<> withdraw(int amount) {
    if (balance < amount) co_return;
    const bool allowed = co_await guard.ask<&Guard::allows>(amount);
    if (allowed) balance -= amount;
  }
};
troupe::task<> withdraw_later(troupe::ref<Account> account, int thinks) {
  auto waits = pause(thinks);
  co_await std::move(waits);
  account.tell<&Account::withdraw>(80);
}

void change_between_awaits(troupe::explored_run&) {
  troupe::runtime rt;
  auto account = rt.spawn<Account>(rt.spawn<Guard>());
  rt.spawn(withdraw_later(account, 0));
  rt.spawn(withdraw_later(account, 15));
  rt.run();
  int balance = 0;
  account.tell([&balance](Account& self) { balance = self.balance; });
  rt.run();
  troupe::expect(balance >= 0);
}

// ---- a channel made by hand looks, is suspended, and waits then ----

struct Meter {
  int looks = 0;
  void note() { ++looks; }
};
struct Handmade {
  std::deque<int> values;
  std::optional<troupe::promise<>> waits;
  void send(int value) {
    values.push_back(value);
    if (waits) std::exchange(waits, std::nullopt)->set_value();
  }
};

troupe::task<> receive(std::shared_ptr<Handmade> from, troupe::ref<Meter> meter, int count) {
  for (int i = 0; i < count; ++i) {
    if (from->values.empty()) {
      co_await meter.ask<&Meter::note>();  // a value that comes here wakes nobody
      from->waits.emplace();
      auto woken = from->waits->get_future();
      co_await std::move(woken);
    }
    from->values.pop_front();
  }
}
troupe::task<> send_by_hand(std::shared_ptr<Handmade> to, int count) {
  for (int i = 0; i < count; ++i) {
    auto waits = pause(15);
    co_await std::move(waits);
    to->send(i);
  }
}

void wait_in_a_handmade_channel(troupe::explored_run&) {
  troupe::runtime rt;
  auto channel = std::make_shared<Handmade>();
  rt.spawn(receive(channel, rt.spawn<Meter>(), 3));
  rt.spawn(send_by_hand(channel, 3));
  rt.run();
}

// ---- a subscriber that keeps itself alive waits for its own end ----

struct Subscription {
  std::optional<troupe::channel<int>::sender> to;
  std::shared_ptr<Subscription> keeps;
};
struct Hub {
  std::map<int, std::shared_ptr<Subscription>> all;
  void attach(int id, std::shared_ptr<Subscription> added) { all.emplace(id, std::move(added)); }
  void detach(int id) {
    const auto found = all.find(id);
    if (found == all.end()) return;  // "it was never attached"
    found->second->keeps.reset();
    all.erase(found);
  }
};
struct Door {
  troupe::ref<Hub> hub;
  void attach(int id, std::shared_ptr<Subscription> added) {
    hub.tell<&Hub::attach>(id, std::move(added));
  }
};
troupe::task<> read_all(troupe::channel<int>::receiver from) {
  for (bool more = true; more;) more = (co_await from.receive()).has_value();
}
// Frees the subscription, for LeakSanitizer, when the program has ended.
struct Last {
  std::weak_ptr<Subscription> made;
  Last() = default;
  Last(const Last&) = delete;
  Last& operator=(const Last&) = delete;
  ~Last() {
    if (const auto left = made.lock()) left->keeps.reset();
  }
};
troupe::task<> subscribe(troupe::runtime& rt, troupe::ref<Door> door, troupe::ref<Hub> hub,
                         Last& last) {
  auto [to, from] = troupe::channel<int>::unbounded().split();
  auto made = std::make_shared<Subscription>();
  made->to.emplace(std::move(to));
  made->keeps = made;
  last.made = made;
  rt.spawn(read_all(std::move(from)));
  door.tell<&Door::attach>(1, std::move(made));
  auto waits = pause(12);
  co_await std::move(waits);
  hub.tell<&Hub::detach>(1);
}

void keep_oneself_alive(troupe::explored_run&) {
  troupe::runtime rt;
  Last last;
  auto hub = rt.spawn<Hub>();
  rt.spawn(subscribe(rt, rt.spawn<Door>(hub), hub, last));
  rt.run();
}

// ---- two tasks take two of three permits, one after the other ----

troupe::task<> take_permits(std::shared_ptr<troupe::semaphore> permits, int thinks) {
  auto waits = pause(thinks);
  co_await std::move(waits);
  auto first = co_await permits->acquire();
  auto second = co_await permits->acquire();
}

void take_permits_one_by_one(troupe::explored_run&) {
  troupe::runtime rt;
  auto permits = std::make_shared<troupe::semaphore>(2);
  rt.spawn(take_permits(permits, 0));
  rt.spawn(take_permits(permits, 7));
  rt.run();
}

// ---- a broadcast begins before its reader has subscribed ----

troupe::task<> follow(troupe::broadcast<int> news, troupe::ref<Meter> meter,
                      std::shared_ptr<int> heard) {
  co_await meter.ask<&Meter::note>();
  auto reader = news.subscribe();
  while (const auto got = co_await reader.receive()) *heard += got->value;
}
troupe::task<> announce(troupe::broadcast<int> news) {
  auto waits = pause(18);
  co_await std::move(waits);
  news.send(1);
  news.close();
}

void subscribe_too_late(troupe::explored_run&) {
  troupe::runtime rt;
  troupe::broadcast<int> news(8);
  auto heard = std::make_shared<int>(0);
  rt.spawn(follow(news, rt.spawn<Meter>(), heard));
  rt.spawn(announce(news));
  rt.run();
  troupe::expect(*heard == 1);
}

// ---- an audit adds two balances between which money is on its way ----

struct Till {
  int money = 100;
  int count() { return money; }
  void put(int amount) { money += amount; }
  void take(int amount) { money -= amount; }
};
struct Courier {
  troupe::ref<Till> from, to;
  troupe::task<> move() {
    co_await from.ask<&Till::take>(30);
    co_await to.ask<&Till::put>(30);
  }
};
struct Auditor {
  troupe::ref<Till> left, right;
  troupe::task<> audit() {
    const int first = co_await left.ask<&Till::count>();
    const int second = co_await right.ask<&Till::count>();
    troupe::expect(first + second == 200);
  }
  void later(int turns) {
    auto self = troupe::self(this);
    turns == 0 ? self.tell<&Auditor::audit>() : self.tell<&Auditor::later>(turns - 1);
  }
};

void audit_in_the_middle(troupe::explored_run&) {
  troupe::runtime rt;
  auto left = rt.spawn<Till>(), right = rt.spawn<Till>();
  rt.spawn<Courier>(left, right).tell<&Courier::move>();
  rt.spawn<Auditor>(left, right).tell<&Auditor::later>(12);
  rt.run();
}

// ---- a place is given to another party while a late message for the first one is on its way ----

struct Lockers {
  std::map<int, int> owner;
  int next_free = 1;
  std::map<int, std::string> content;
  int rent(int who) {
    const int nth = next_free;
    next_free = 2;
    owner[nth] = who;
    return nth;
  }
  void give_back(int nth) {
    owner.erase(nth);
    content.erase(nth);
    next_free = nth;
  }
  void store(int nth, std::string text, int who) {
    content[nth] = std::move(text);
    troupe::expect(!owner.contains(nth) || owner[nth] == who);
  }
};
struct Porter {
  troupe::ref<Lockers> lockers;
  void carry(int nth, std::string text, int who) {
    lockers.tell<&Lockers::store>(nth, std::move(text), who);
  }
};
troupe::task<> rent_one(troupe::ref<Lockers> lockers, troupe::ref<Porter> porter, int who,
                        int thinks) {
  auto waits = pause(thinks);
  co_await std::move(waits);
  const int nth = co_await lockers.ask<&Lockers::rent>(who);
  porter.tell<&Porter::carry>(nth, "a bag", who);
  auto stays = pause(8);
  co_await std::move(stays);
  co_await lockers.ask<&Lockers::give_back>(nth);
}

void use_a_place_of_another(troupe::explored_run&) {
  troupe::runtime rt;
  auto lockers = rt.spawn<Lockers>();
  auto porter = rt.spawn<Porter>(lockers);
  rt.spawn(rent_one(lockers, porter, 1, 0));
  rt.spawn(rent_one(lockers, porter, 2, 30));
  rt.run();
}

class mistakes : public testing::TestWithParam<bug> {};

TEST_P(mistakes, are_found_reduced_and_repeated) { expect_found_reduced_and_repeated(GetParam()); }

const bug all[] = {
    {"a_ring_of_locks_that_is_asked_for", lock_in_a_ring_that_is_asked_for, "deadlock"},
    {"work_left_to_the_holder", leave_work_to_the_holder, "expect"},
    {"the_wrong_party_is_notified", wake_the_wrong_party, "suspended"},
    {"a_stop_before_the_last_order", stop_before_the_last_order, "expect"},
    {"a_loser_with_an_effect", print_twice, "expect"},
    {"a_timer_cancelled_too_late", cancel_too_late, "expect"},
    {"an_ask_after_a_stop", ask_after_stop, "stopped"},
    {"a_setting_overtaken_over_relays", overtake_over_relays, "expect"},
    {"a_change_between_awaits", change_between_awaits, "expect"},
    {"a_handmade_channel", wait_in_a_handmade_channel, "suspended"},
    {"a_subscription_that_keeps_itself", keep_oneself_alive, "suspended"},
    {"permits_one_by_one", take_permits_one_by_one, "suspended"},
    {"a_late_subscription", subscribe_too_late, "expect"},
    {"an_audit_in_the_middle", audit_in_the_middle, "expect"},
    {"a_place_of_another", use_a_place_of_another, "expect"},
};
INSTANTIATE_TEST_SUITE_P(each, mistakes, testing::ValuesIn(all),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace planted
