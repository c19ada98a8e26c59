// A shop for check.py, in two processes. `back COLLECTOR`: the warehouse; prints its port, and runs
// until its standard input ends. `front COLLECTOR BACK COUNT SPANS`: the shop; sends itself so many
// requests, each of which goes through two actors to the warehouse, and prints what became of its
// spans.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <troupe/http/client.hpp>
#include <troupe/http/server.hpp>
#include <troupe/otlp/exporter.hpp>
#include <troupe/troupe.hpp>

using namespace std::chrono_literals;
namespace http = troupe::http;
namespace otlp = troupe::otlp;

namespace {

constexpr int clients = 16;

// What must not be in any span.
const std::string secret = "hunter2";

struct Stock {
  http::client web;
  std::string back;
  troupe::task<int> count(std::string key) {
    http::client_request asked("GET", back + "/stock/" + key + "?password=" + secret);
    asked.field("Authorization", secret);
    http::client_response answer = co_await web.send(std::move(asked));
    const std::string text = co_await answer.read_all();
    co_return std::stoi(text);
  }
};

struct Shop {
  static constexpr bool reentrant = true;
  troupe::ref<Stock> stock;
  troupe::task<int> buy(std::string key) { co_return co_await stock.ask<&Stock::count>(key); }
};

otlp::exporter_options options_for(const std::string& collector, const char* name) {
  otlp::exporter_options made;
  made.url = collector;
  made.service_name = name;
  made.interval = 100ms;
  return made;
}

void print(const otlp::exporter_counts& of, long milliseconds) {
  std::cout << "exported " << of.exported << "\ndropped " << of.dropped << "\nrejected "
            << of.rejected << "\nwaiting " << of.waiting << "\nmilliseconds " << milliseconds
            << std::endl;
}

int serve_stock(const std::string& collector) {
  otlp::exporter_options options = options_for(collector, "warehouse");
  options.spans = 100'000;
  otlp::exporter spans(std::move(options));
  {
    troupe::runtime rt;
    http::router routes;
    routes.get("/stock/{key}", [](std::string_view) { return http::response::text("7"); });
    http::server web(std::move(routes));
    auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
    std::cout << listener.local().port() << std::endl;
    std::thread ends([&, held = rt.hold()] {
      while (std::cin.get() != std::char_traits<char>::eof()) {
      }
      web.stop();
    });
    rt.spawn(web.serve(std::move(listener)));
    rt.run();
    ends.join();
  }
  spans.flush(30s);
  print(spans.counts(), 0);
  return 0;
}

troupe::task<> send_requests(http::client web, std::string at, std::atomic<int>& left,
                             std::atomic<int>& wrong) {
  while (left.fetch_sub(1) > 0) {
    http::client_response answer = co_await web.get(at);
    const std::string text = co_await answer.read_all();
    if (answer.status() != 200 || text != "7") ++wrong;
  }
}

troupe::task<> run_shop(troupe::runtime& rt, std::string back, int count, std::atomic<int>& wrong) {
  const auto stock = rt.spawn<Stock>(http::client(), back);
  const auto shop = rt.spawn<Shop>(stock);
  http::router routes;
  auto buy = [shop](std::string_view key) -> troupe::task<http::response> {
    std::string kept(key);
    const int found = co_await shop.ask<&Shop::buy>(std::move(kept));
    co_return http::response::owned(std::to_string(found), "text/plain");
  };
  routes.get("/buy/{key}", std::move(buy));
  http::server server(std::move(routes));
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  const std::string at =
      "http://127.0.0.1:" + std::to_string(listener.local().port()) + "/buy/tea?password=" + secret;
  troupe::future<> serving = rt.spawn(server.serve(std::move(listener)));
  std::atomic<int> left{count};
  const http::client web;
  std::vector<troupe::task<>> all;
  for (int i = 0; i < clients; ++i) all.push_back(send_requests(web, at, left, wrong));
  co_await troupe::when_all(std::move(all));
  web.close_idle();
  server.stop();
  co_await std::move(serving);
}

int run_front(const std::string& collector, const std::string& back, int count, std::size_t most) {
  otlp::exporter_options options = options_for(collector, "shop");
  options.spans = most;
  otlp::exporter spans(std::move(options));
  std::atomic<int> wrong{0};
  const auto began = std::chrono::steady_clock::now();
  {
    troupe::runtime rt;
    rt.spawn(run_shop(rt, back, count, wrong));
    rt.run();
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  if (most > 10'000) spans.flush(30s);
  print(spans.counts(), static_cast<long>(took.count()));
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  const std::string role = count > 2 ? words[1] : "";
  if (role == "back") return serve_stock(words[2]);
  if (role == "front" && count == 6)
    return run_front(words[2], words[3], std::atoi(words[4]),
                     static_cast<std::size_t>(std::atoi(words[5])));
  return 2;
}
