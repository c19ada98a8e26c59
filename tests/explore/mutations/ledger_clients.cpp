// The ledger of examples/ledger.cpp with two clients, on a simulated database: one opens an account
// with a deposit, the other pays from it. An acknowledged transfer has to reach its receiver.
#define main ledger_main
#include "ledger.cpp"
#undef main
#include <chrono>

#include "troupe/durable/simulated_storage.hpp"
#include "troupe/http/client.hpp"

namespace {

using namespace std::chrono_literals;

troupe::task<int> post(http::client web, std::string url, std::string key, std::string body) {
  http::client_request asked("POST", std::move(url));
  asked.field("Idempotency-Key", key).body(std::move(body), "application/json");
  http::client_response answer = co_await web.send(std::move(asked));
  const int status = answer.status();
  co_await answer.read_all();
  co_return status;
}

troupe::task<> deposit(http::client web, std::string at, std::string name) {
  const std::string url = at + "/accounts/" + name + "/deposits";
  const int status = co_await post(web, url, "to " + name, R"({"cents": 500})");
  troupe::expect(status == 200);
}

// The other deposit is usually there by then. A refusal is an answer as well.
troupe::task<bool> pay(http::client web, std::string at) {
  co_await troupe::sleep_for(30us);
  co_await deposit(web, at, "bob");
  const int status = co_await post(web, at + "/transfers", "pays",
                                   R"({"from": "alice", "to": "bob", "cents": 120})");
  troupe::expect(status == 200 || status == 409);
  co_return status == 200;
}

troupe::task<bool> trade(http::server server) {
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  const std::string at = "http://" + listener.local().to_string();
  auto serves = troupe::spawn(server.serve(std::move(listener)));
  const http::client web;
  auto deposits = troupe::spawn(deposit(web, at, "alice"));
  const bool is_paid = co_await pay(web, at);
  co_await std::move(deposits);
  server.stop();
  co_await std::move(serves);
  co_return is_paid;
}

troupe::task<durable::store> open(troupe::runtime& rt) {
  const durable::simulated_database database;
  return durable::store::open(rt, database.storage(),
                              durable::kind<Account, &Account::deposit, &Account::pay,
                                            &Account::balance, &Account::all_entries>());
}

}  // namespace

int main() {
  troupe::runtime rt;
  auto opened = rt.spawn(open(rt));
  rt.run();
  const durable::store ledger = opened.get();
  auto traded = rt.spawn(trade(http::server(make_routes(ledger))));
  rt.run();
  auto balance = ledger.get<Account>("bob").ask<&Account::balance>();
  rt.run();
  troupe::expect(balance.get() == (traded.get() ? 620 : 500));
}
