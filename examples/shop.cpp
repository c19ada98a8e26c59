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
// `examples/cluster/up` starts three of them, and the servers that they need. With `--page PORT` a
// browser on this machine sees at http://127.0.0.1:PORT/troupe/ who is there, which node has which
// actors, and what they do. With `--announce` as well the pages of the other nodes link to it: for
// nodes of one machine.
//
// Each customer has a cart, an actor named by the customer, and each article is an actor that knows
// how many of it are left. Whoever sends them a message need not know on which node they are.
// `--serve` runs a node until SIGTERM or SIGINT, without customers unless it is told how many; its
// actors are handed over to the other nodes then, and customers notice nothing. Customers count
// what becomes of their orders.
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/cluster/node.hpp"
#include "troupe/http/server.hpp"
#include "troupe/observe_page/observe_page.hpp"
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
        co_await stock.ask<&Article::take>(1);
        ++got;
      } catch (const SoldOut&) {
        is_sold_out = true;
      } catch (const cluster::error& e) {
        // The article's node has ended: the order goes on without it.
        if (e.kind() == cluster::failure::stopped) throw;
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
  std::atomic<bool> closes{false};  // customers end with the order that they have begun
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
    co_await cart.ask<&Cart::add>("article " + std::to_string((round * 7 + i) % 20));
  }
  co_return co_await cart.ask<&Cart::order>();
}

struct Shopping {
  int customers = 20;
  std::chrono::milliseconds pause{1};  // of each, after an order
  std::chrono::nanoseconds until{};
};

troupe::task<> customer(cluster::node shop, std::string name, std::shared_ptr<Totals> totals,
                        Shopping how) {
  const auto cart = shop.get<Cart>(name);
  int round = static_cast<int>(name.back());
  do {
    std::string end = "done";
    std::size_t got = 0;
    try {
      const int current = round++;
      got = co_await shop_once(cart, current);
    } catch (const cluster::error& e) {
      end = cluster::name_of(e.kind());
    } catch (const troupe::timed_out&) {
      end = "timed out";
    } catch (const cluster::remote_exception& e) {
      end = e.type();
    }
    totals->add(end, got);
    co_await troupe::sleep_for(how.pause);
  } while (troupe::now() < how.until && !totals->closes);
}

// Until then, or until the shop closes.
troupe::task<> shop_all(cluster::node shop, std::shared_ptr<Totals> totals, Shopping how) {
  std::vector<troupe::future<>> all;
  for (int i = 0; i < how.customers; ++i)
    all.push_back(troupe::spawn(
        customer(shop, shop.self().name + " customer " + std::to_string(i), totals, how)));
  for (auto& one : all) co_await std::move(one);
}

// ---- the program ----

struct Options {
  cluster::options node{.name = "shop"};
  Shopping shopping;
  int seconds = 1;
  bool serve = false;
  std::optional<int> page;
  bool announce = false;
};
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr const char* usage =
    "usage: shop [--customers N] [--pause MILLISECONDS] [--seconds N] [--serve]\n"
    "            [--page PORT [--announce]] [--name NAME]\n"
    "            [--nats SERVERS --database TARGET]\n";

int number_of(std::string_view option, std::string_view text, int least = 1, int most = 1'000'000) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw WrongUse(std::string(option) + " takes a number from " + std::to_string(least) + " to " +
                   std::to_string(most));
  return value;
}

Options parse(int argc, char** argv) {
  Options chosen;
  bool has_customers = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--serve" || option == "--announce") {
      (option == "--serve" ? chosen.serve : chosen.announce) = true;
      continue;
    }
    if (i + 1 == argc) throw WrongUse(std::string(option) + " takes a value, or is not known");
    const std::string value = argv[++i];
    if (option == "--customers") {
      chosen.shopping.customers = number_of(option, value);
      has_customers = true;
    } else if (option == "--pause") {
      chosen.shopping.pause = std::chrono::milliseconds(number_of(option, value));
    } else if (option == "--page") {
      chosen.page = number_of(option, value, 0, 65'535);  // 0: any that is free
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
  if (chosen.serve && !has_customers) chosen.shopping.customers = 0;
  return chosen;
}

troupe::task<> serve(cluster::node shop, Shopping how) {
  auto signals = troupe::signal_listener::listen({SIGINT, SIGTERM});
  how.until = std::chrono::nanoseconds::max();
  const auto totals = std::make_shared<Totals>();
  auto shopping = troupe::spawn(shop_all(shop, totals, how));
  co_await signals.next();
  totals->closes = true;
  co_await std::move(shopping);
  co_await shop.stop();
  std::cout << "handed over" << std::endl;
}

troupe::task<> buy(cluster::node shop, Shopping how) {
  const auto totals = std::make_shared<Totals>();
  co_await shop_all(shop, totals, how);
  for (const auto& [end, count] : totals->orders)
    std::cout << "orders " << end << ": " << count << '\n';
  std::cout << "articles: " << totals->articles << '\n';
  const auto now = shop.counts();
  std::cout << "nodes: " << now.members << ", shards here: " << now.shards
            << ", actors here: " << now.actors << '\n';
  co_await shop.stop();
}

// The page of the running program, for browsers of this machine, while this exists.
class Page {
 public:
  Page(troupe::runtime& rt, int port) : web_(routes()) {
    auto listener =
        troupe::tcp_listener::listen(troupe::endpoint::loopback(static_cast<std::uint16_t>(port)));
    address_ = "http://127.0.0.1:" + std::to_string(listener.local().port()) + "/troupe/";
    std::cout << "page: " << address_ << std::endl;
    rt.spawn(web_.serve(std::move(listener)));
  }
  Page(const Page&) = delete;
  ~Page() { web_.stop(); }
  const std::string& address() const { return address_; }

 private:
  static troupe::http::router routes() {
    troupe::http::router made;
    troupe::add_observe_page(made);
    return made;
  }
  troupe::http::server web_;
  std::string address_;
};

troupe::task<> run(troupe::runtime& rt, Options chosen) {
  std::optional<Page> page;
  if (chosen.page) page.emplace(rt, *chosen.page);
  if (page && chosen.announce) chosen.node.page = page->address();
  const cluster::node shop(
      rt, chosen.node, cluster::kind<Article, &Article::take, &Article::deliver>(),
      cluster::kind<Cart, &Cart::add, &Cart::order>(), cluster::exception<SoldOut>());
  co_await shop.ready();
  std::cout << "joined as " << shop.self().name << ' ' << shop.self().id << std::endl;
  Shopping how = chosen.shopping;
  how.until = troupe::now() + std::chrono::seconds(chosen.seconds);
  auto does = chosen.serve ? serve(shop, how) : buy(shop, how);
  co_await std::move(does);
}

int main(int argc, char** argv) try {
  if (argc > 1 && std::string_view(argv[1]) == "--help") {
    std::cout << usage;
    return 0;
  }
  const Options chosen = parse(argc, argv);
  troupe::runtime_options options;
  options.observe = chosen.page.has_value();
  troupe::runtime rt(options);
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
