// The operations whose ways through the code ways.py counts, on one worker.
//
// instructions_ways WAY NUMBER FOLDER [URL] performs NUMBER operations, one after the other, under
// valgrind. For HTTP it prints its port, and serves until a client asks for /stop. Durable actors
// and
// the cluster have their files in the folder, and the cluster reaches its NATS server at the URL.
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/cluster/node.hpp"
#include "troupe/durable/sqlite_storage.hpp"
#include "troupe/durable/store.hpp"
#include "troupe/http/server.hpp"
#include "troupe/io/tcp.hpp"
#include "troupe/troupe.hpp"

namespace {

using namespace std::chrono_literals;
using troupe::task;

struct arguments {
  std::uint64_t number = 0;
  std::string folder, nats;
};

void must(bool well) {
  if (!well) std::abort();
}

// ---- a tell: two actors tell each other ----

struct player {
  troupe::ref<player> other;
  void meet(troupe::ref<player> partner) { other = std::move(partner); }
  void hit(std::uint64_t left) {
    if (left > 0) other.tell<&player::hit>(left - 1);
    if (left <= 1) other = {};
  }
};

void tell(const arguments& given) {
  troupe::runtime rt({.workers = 1});
  auto first = rt.spawn<player>(), second = rt.spawn<player>();
  first.tell<&player::meet>(second);
  second.tell<&player::meet>(first);
  first.tell<&player::hit>(given.number);
  rt.run();
}

// ---- an ask, of a coroutine handler ----

struct answerer {
  std::uint64_t next(std::uint64_t number) { return number + 1; }
};

struct asker {
  troupe::ref<answerer> other;
  task<std::uint64_t> ask_often(std::uint64_t times) {
    std::uint64_t number = 0;
    while (number < times) number = co_await other.ask<&answerer::next>(number);
    co_return number;
  }
};

void ask(const arguments& given) {
  troupe::runtime rt({.workers = 1});
  auto asks = rt.spawn<asker>(rt.spawn<answerer>()).ask<&asker::ask_often>(given.number);
  rt.run();
  must(asks.get() == given.number);
}

// ---- a wait: two tasks, of which each waits in a task of its own for a promise of the other ----

struct table {
  std::array<troupe::promise<>, 2> turns;
  std::uint64_t done = 0;
};

task<> wait_for(troupe::future<> turn) { co_await std::move(turn); }

task<> take_turns(table& shared, std::size_t me, troupe::future<> turn, std::uint64_t number) {
  for (;;) {
    auto waits = wait_for(std::move(turn));
    co_await std::move(waits);
    const bool is_last = shared.done + 1 >= number;
    if (shared.done < number) ++shared.done;
    troupe::promise<> next;
    turn = next.get_future();
    shared.turns[me] = std::move(next);
    shared.turns[1 - me].set_value();
    if (is_last) break;
  }
}

void wait(const arguments& given) {
  troupe::runtime rt({.workers = 1});
  table shared;
  rt.spawn(take_turns(shared, 0, shared.turns[0].get_future(), given.number));
  rt.spawn(take_turns(shared, 1, shared.turns[1].get_future(), given.number));
  shared.turns[0].set_value();
  rt.run();
  must(shared.done == given.number);
}

// ---- lazies: a thread makes one, and gets its value ----

void lazy_get(const arguments& given) {
  troupe::runtime rt({.workers = 1});
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < given.number; ++i) {
    auto half = troupe::lazy([i] { return i / 2; });
    sum += half.get();
  }
  rt.run();
  must(sum > 0);
}

// ---- HTTP ----

void serve(const arguments&) {
  troupe::runtime rt({.workers = 1});
  troupe::http::router routes;
  troupe::http::server* serving = nullptr;
  routes.get("/plaintext", [] { return troupe::http::response::view("Hello", "text/plain"); });
  routes.get("/stop", [&serving] {
    serving->stop();
    return troupe::http::response::view("stops", "text/plain");
  });
  troupe::http::server web(std::move(routes));
  serving = &web;
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  std::printf("%d\n", static_cast<int>(listener.local().port()));
  std::fflush(stdout);
  rt.spawn(web.serve(std::move(listener)));
  rt.run();
}

// ---- a durable actor, and one of a cluster ----

struct Account {
  std::int64_t cents = 0;
  std::int64_t deposit(std::int64_t amount) { return cents += amount; }
};

task<> post_often(troupe::runtime& rt, const arguments& given) {
  auto file = troupe::durable::sqlite_storage(rt, given.folder + "/store.db");
  auto opens = troupe::durable::store::open(rt, std::move(file), {},
                                            troupe::durable::kind<Account, &Account::deposit>());
  const troupe::durable::store store = co_await std::move(opens);
  const auto account = store.get<Account>("a");
  for (std::uint64_t i = 0; i < given.number; ++i) {
    auto posts = account.post<&Account::deposit>(1);
    co_await std::move(posts);
  }
  auto asks = account.ask<&Account::deposit>(0);
  must(co_await std::move(asks) == static_cast<std::int64_t>(given.number));
}

void durable_post(const arguments& given) {
  troupe::runtime rt({.workers = 1});
  auto done = rt.spawn(post_often(rt, given));
  rt.run();
  done.get();
}

troupe::cluster::node join(troupe::runtime& rt, const arguments& given, std::string name) {
  troupe::cluster::options chosen;
  chosen.nats = given.nats;
  chosen.database = "sqlite:" + given.folder + "/cluster.db";
  chosen.name = std::move(name);
  chosen.lease = 60s;
  return troupe::cluster::node(rt, std::move(chosen),
                               troupe::cluster::kind<Account, &Account::deposit>());
}

task<> ask_far(troupe::runtime& rt, const arguments& given) {
  // One after the other: the first sets the file up.
  troupe::cluster::node here = join(rt, given, "here");
  auto joins = here.ready();
  co_await std::move(joins);
  troupe::cluster::node there = join(rt, given, "there");
  auto joins_later = there.ready();
  co_await std::move(joins_later);
  while (here.counts().shards != 512 || there.counts().shards != 512)
    co_await troupe::sleep_for(10ms);
  auto account = here.get<Account>("0");
  for (int i = 1; there.counts().created == 0; ++i) {
    account = here.get<Account>(std::to_string(i));
    auto asks = account.ask<&Account::deposit>(0);
    static_cast<void>(co_await std::move(asks));
  }
  for (std::uint64_t i = 0; i < given.number; ++i) {
    auto asks = account.ask<&Account::deposit>(1);
    must(co_await std::move(asks) == static_cast<std::int64_t>(i + 1));
  }
  for (const auto* node : {&here, &there}) {
    auto stops = node->stop();
    co_await std::move(stops);
  }
}

void cluster_ask(const arguments& given) {
  troupe::runtime rt({.workers = 1});
  auto done = rt.spawn(ask_far(rt, given));
  rt.run();
  done.get();
}

struct way {
  std::string_view name;
  void (*perform)(const arguments&);
};
constexpr way ways[] = {{"tell", tell},
                        {"ask", ask},
                        {"wait", wait},
                        {"lazy.get", lazy_get},
                        {"http1", serve},
                        {"http2", serve},
                        {"durable_post", durable_post},
                        {"cluster_ask", cluster_ask}};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  arguments given;
  const std::string_view number = argv[2];
  std::from_chars(number.data(), number.data() + number.size(), given.number);
  if (argc > 3) given.folder = argv[3];
  if (argc > 4) given.nats = argv[4];
  for (const way& known : ways) {
    if (known.name != argv[1]) continue;
    known.perform(given);
    return 0;
  }
  return 2;
}
