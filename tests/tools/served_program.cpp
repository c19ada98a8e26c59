// A server for scrape.py and operate.py: its page and numbers, beside a handler that counts and a
// store of durable actors. Prints its port, and runs until its standard input ends.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>
#include <thread>
#include <troupe/durable/sqlite_storage.hpp>
#include <troupe/durable/store.hpp>
#include <troupe/http/server.hpp>
#include <troupe/observe_page/observe_page.hpp>
#include <troupe/otlp/exporter.hpp>
#include <troupe/troupe.hpp>
#include <utility>

using namespace std::chrono_literals;

struct Quick {
  long sum = 0;
  void add(int n) { sum += n; }
};

struct Account {
  std::int64_t cents = 0;
  std::int64_t deposit(std::int64_t amount) { return cents += amount; }
};

troupe::task<> keep_accounts(troupe::runtime& rt, const std::atomic<bool>& ends) {
  auto file = troupe::durable::sqlite_storage(rt, ":memory:");
  auto opens = troupe::durable::store::open(rt, std::move(file),
                                            troupe::durable::kind<Account, &Account::deposit>());
  troupe::durable::store store = co_await std::move(opens);
  const troupe::durable::ref<Account> alice = store.get<Account>("alice");
  // order: relaxed  a hint; nothing else is published
  while (!ends.load(std::memory_order_relaxed)) {
    co_await alice.ask<&Account::deposit>(1);
    co_await troupe::sleep_for(20ms);
  }
}

int main() {
  std::optional<troupe::otlp::exporter> exporter;
  troupe::http::router routes;
  troupe::add_observe_page(routes);
  routes.post("/v1/traces", [] { return troupe::http::response(200); });
  troupe::runtime_options options;
  options.observe = true;
  troupe::runtime rt(options);
  troupe::http::server web(std::move(routes));
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  // Spans are recorded, so that histograms have exemplars. The server is its own collector.
  troupe::otlp::exporter_options spans;
  spans.url = "http://" + listener.local().to_string() + "/v1/traces";
  spans.flush_time = 0ms;
  exporter.emplace(std::move(spans));
  std::cout << listener.local().port() << std::endl;
  const auto quick = rt.spawn<Quick>();
  std::atomic<bool> ends_soon = false;
  rt.spawn(keep_accounts(rt, ends_soon));
  auto ticks = rt.every(10ms, [=] { quick.tell<&Quick::add>(1); });
  std::thread ends([&, held = rt.hold()] {
    while (std::cin.get() != std::char_traits<char>::eof()) {
    }
    ticks.cancel();
    // order: relaxed  a hint; nothing else is published
    ends_soon.store(true, std::memory_order_relaxed);
    web.stop();
  });
  rt.spawn(web.serve(std::move(listener)));
  rt.run();
  ends.join();
}
