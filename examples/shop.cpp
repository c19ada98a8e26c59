// shop: carts and a stock of goods on one machine or on many, by the same program.
//
//     ./run examples/shop.cpp
//     ./run examples/shop.cpp --customers 50 --seconds 3
//
// On several machines, or several times on one, with a nats-server and a PostgreSQL database:
//
//     ./run examples/shop.cpp --nats nats://127.0.0.1 --database "dbname=shop" --serve &
//     ./run examples/shop.cpp --nats nats://127.0.0.1 --database "dbname=shop" --seconds 10
//
// Each customer has a cart, an actor named by the customer, and each article is an actor that knows
// how many of it are left. Whoever sends them a message need not know on which node they are.
// `--serve` runs a node without customers until SIGTERM or SIGINT; its actors are handed over to
// the other nodes then, and customers notice nothing. Customers count what becomes of their orders.
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/cluster/node.hpp"
#include "troupe/troupe.hpp"

namespace cluster = troupe::cluster;
using namespace std::chrono_literals;

// ---- what the shop is made of ----

struct SoldOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Article {
  explicit Article(std::string its_name) : name(std::move(its_name)) {}
  // Returns what is left.
  std::int64_t take(std::int64_t count) {
    if (count > left) throw SoldOut("there is no more of " + name);
    return left -= count;
  }
  std::int64_t deliver(std::int64_t count) { return left += count; }

  std::string name;
  std::int64_t left = 100;
};

struct Cart {
  explicit Cart(cluster::home its_home) : here(std::move(its_home)) {}
  std::size_t add(std::string article) {
    articles.push_back(std::move(article));
    return articles.size();
  }
  // Takes all articles out of the stock, wherever they are. Returns how many it got.
  troupe::task<std::size_t> order() {
    std::size_t got = 0;
    for (const std::string& article : std::exchange(articles, {})) {
      const auto stock = here.get<Article>(article);
      bool is_sold_out = false;
      try {
        auto takes = stock.ask<&Article::take>(1);
        co_await std::move(takes);
        ++got;
      } catch (const SoldOut&) {
        is_sold_out = true;
      }
      if (is_sold_out) stock.tell<&Article::deliver>(100);
    }
    co_return got;
  }

  cluster::home here;
  std::vector<std::string> articles;
};

// ---- customers ----

struct Totals {
  std::mutex mutex;
  std::map<std::string, std::uint64_t> orders;  // by what has become of them
  std::uint64_t articles = 0;

  void add(const std::string& end, std::size_t got) {
    std::lock_guard held(mutex);
    ++orders[end];
    articles += got;
  }
};

troupe::task<std::size_t> shop_once(cluster::ref<Cart> cart, int round) {
  for (int i = 0; i < 3; ++i) {
    auto adds = cart.ask<&Cart::add>("article " + std::to_string((round * 7 + i) % 20));
    co_await std::move(adds);
  }
  auto orders = cart.ask<&Cart::order>();
  co_return co_await std::move(orders);
}

troupe::task<> customer(cluster::node shop, std::string name, std::shared_ptr<Totals> totals,
                        std::chrono::nanoseconds until) {
  const auto cart = shop.get<Cart>(name);
  int round = static_cast<int>(name.back());
  do {
    std::string end = "done";
    std::size_t got = 0;
    try {
      auto shops = shop_once(cart, round++);
      got = co_await std::move(shops);
    } catch (const cluster::error& e) {
      end = cluster::name_of(e.kind());
    } catch (const troupe::timed_out&) {
      end = "timed out";
    } catch (const cluster::remote_exception& e) {
      end = e.type();
    }
    totals->add(end, got);
    co_await troupe::sleep_for(1ms);
  } while (troupe::now() < until);
}

// ---- the program ----

struct Options {
  cluster::options node{.name = "shop"};
  int customers = 20;
  int seconds = 1;
  bool serve = false;
};
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr const char* usage =
    "usage: shop [--customers N] [--seconds N] [--serve] [--name NAME] [--nats SERVERS --database "
    "TARGET]\n";

int number_of(std::string_view option, std::string_view text) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < 1 || value > 1'000'000)
    throw WrongUse(std::string(option) + " takes a number from 1 to 1000000");
  return value;
}

Options parse(int argc, char** argv) {
  Options chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--serve") {
      chosen.serve = true;
      continue;
    }
    if (i + 1 == argc) throw WrongUse(std::string(option) + " takes a value, or is not known");
    const std::string value = argv[++i];
    if (option == "--customers") {
      chosen.customers = number_of(option, value);
    } else if (option == "--seconds") {
      chosen.seconds = number_of(option, value);
    } else if (option == "--name") {
      chosen.node.name = value;
    } else if (option == "--nats") {
      chosen.node.nats = value;
    } else if (option == "--database") {
      chosen.node.database = value;
    } else {
      throw WrongUse("no option " + std::string(option));
    }
  }
  return chosen;
}

troupe::task<> serve(cluster::node shop) {
  auto signals = troupe::signal_listener::listen({SIGINT, SIGTERM});
  co_await signals.next();
  auto stops = shop.stop();
  co_await std::move(stops);
  std::cout << "handed over" << std::endl;
}

troupe::task<> buy(cluster::node shop, int customers, std::chrono::nanoseconds until) {
  const auto totals = std::make_shared<Totals>();
  std::vector<troupe::future<>> all;
  for (int i = 0; i < customers; ++i)
    all.push_back(troupe::spawn(customer(shop, "customer " + std::to_string(i), totals, until)));
  for (auto& one : all) co_await std::move(one);
  for (const auto& [end, count] : totals->orders)
    std::cout << "orders " << end << ": " << count << '\n';
  std::cout << "articles: " << totals->articles << '\n';
}

troupe::task<> run(troupe::runtime& rt, Options chosen) {
  const cluster::node shop(
      rt, chosen.node, cluster::kind<Article, &Article::take, &Article::deliver>(),
      cluster::kind<Cart, &Cart::add, &Cart::order>(), cluster::exception<SoldOut>());
  auto joins = shop.ready();
  co_await std::move(joins);
  std::cout << "joined as " << shop.self().name << ' ' << shop.self().id << std::endl;
  if (chosen.serve) {
    auto serves = serve(shop);
    co_await std::move(serves);
    co_return;
  }
  auto buys = buy(shop, chosen.customers, troupe::now() + std::chrono::seconds(chosen.seconds));
  co_await std::move(buys);
  const auto now = shop.counts();
  std::cout << "nodes: " << now.members << ", shards here: " << now.shards
            << ", actors here: " << now.actors << '\n';
  auto stops = shop.stop();
  co_await std::move(stops);
}

int main(int argc, char** argv) try {
  if (argc > 1 && std::string_view(argv[1]) == "--help") {
    std::cout << usage;
    return 0;
  }
  const Options chosen = parse(argc, argv);
  troupe::runtime rt;
  rt.spawn(run(rt, chosen));
  rt.run();
  return 0;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "shop: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "shop: " << failure.what() << '\n';
  return 1;
}
