// ledger: accounts and transfers that survive whatever ends the program.
//
//     ./run examples/ledger.cpp --database ledger.db --port 8080
//     curl -X POST -H 'Idempotency-Key: 1' -H 'Content-Type: application/json'
//          -d '{"cents": 500}' http://127.0.0.1:8080/accounts/alice/deposits
//     curl -X POST -H 'Idempotency-Key: 2' -H 'Content-Type: application/json'
//          -d '{"from": "alice", "to": "bob", "cents": 120}' http://127.0.0.1:8080/transfers
//     curl http://127.0.0.1:8080/accounts/bob
//
// Each account is a durable actor, whose state is the sum of its entries. A transfer is one message
// to the account that pays: its turn stores the payer's entry and the message to the receiver in
// one transaction, so that no crash can lose or double the money. A client that got no answer sends
// the request again with the same Idempotency-Key, and gets the answer of the first time. With
// --database postgresql://… all lies in a PostgreSQL database. SIGTERM or SIGINT ends the program;
// kill -9 does, too.
#include <charconv>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/durable/sqlite_storage.hpp"
#include "troupe/durable/store.hpp"
#if __has_include(<libpq-fe.h>) || __has_include(<postgresql/libpq-fe.h>)
#define LEDGER_HAS_POSTGRES 1
#include "troupe/durable_postgres/postgres_storage.hpp"
#else
#define LEDGER_HAS_POSTGRES 0
#endif
#include "troupe/http/server.hpp"
#include "troupe/http/values/json.hpp"
#include "troupe/troupe.hpp"

namespace durable = troupe::durable;
namespace http = troupe::http;

// ---- the accounts ----

struct Entry {
  std::string id;  // of the deposit or of the transfer
  std::int64_t cents = 0;
};

struct NotEnoughMoney : std::runtime_error {
  NotEnoughMoney() : std::runtime_error("there is not enough money in the account") {}
};

struct Account {
  using event = Entry;

  std::int64_t cents = 0;
  std::vector<Entry> entries;

  void apply(const Entry& one) {
    cents += one.cents;
    entries.push_back(one);
  }
  durable::changes<Entry, std::int64_t> deposit(std::string id, std::int64_t amount) const {
    return {cents + amount, {{id, amount}}};
  }
  durable::changes<Entry, std::int64_t> pay(durable::turn& turn, std::string to, std::string id,
                                            std::int64_t amount) const {
    if (amount > cents) throw NotEnoughMoney();
    turn.post<&Account::deposit>(to, id, amount);
    return {cents - amount, {{id, -amount}}};
  }
  std::int64_t balance() const { return cents; }
  std::vector<Entry> all_entries() const { return entries; }
};

// ---- the pages ----

struct Deposit {
  std::int64_t cents;
};
struct Transfer {
  std::string from, to;
  std::int64_t cents;
};
struct Balance {
  std::string account;
  std::int64_t cents;
};

std::string key_of(const http::request& asked) {
  const std::string_view key = asked.field("Idempotency-Key");
  if (key.empty() || key.size() > 100)
    throw http::status_error(400, "the request needs an Idempotency-Key of 1 to 100 characters");
  return std::string(key);
}

void check_amount(std::int64_t cents) {
  constexpr std::int64_t most = 1'000'000'000'000;
  if (cents <= 0 || cents > most) throw http::status_error(400, "cents: 1 to 1000000000000");
}

// The answer to a client whose request was not done, or of which nobody knows.
http::response failure_of(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const durable::handler_failed& why) {
    return http::response::text(std::string(why.what()) + "\n").status(409);
  } catch (const durable::id_mismatch& why) {
    return http::response::text(std::string(why.what()) + "\n").status(422);
  } catch (const durable::store_full& why) {
    return http::response::text(std::string(why.what()) + "\n")
        .status(503)
        .field("Retry-After", "1");
  } catch (const troupe::database::error& why) {
    std::cerr << "ledger: " << why.what() << std::endl;
    return http::response::text("the database is away; send the request again\n")
        .status(503)
        .field("Retry-After", "1");
  }
}

troupe::task<http::response> balance_after(std::string account,
                                           troupe::future<std::int64_t> asked) {
  std::exception_ptr failed;
  std::int64_t cents = 0;
  try {
    cents = co_await std::move(asked);
  } catch (const troupe::error&) {
    failed = std::current_exception();
  }
  if (failed != nullptr) co_return failure_of(failed);
  co_return http::json_response(Balance{std::move(account), cents});
}

http::router make_routes(const durable::store& ledger) {
  http::router routes;
  routes.post("/accounts/{name}/deposits",
              [ledger](http::request& asked, std::string name) -> troupe::task<http::response> {
                const std::string id = key_of(asked);
                const auto wanted = co_await http::read_json<Deposit>(asked);
                check_amount(wanted.cents);
                auto later = ledger.get<Account>(name)
                                 .with_id(durable::message_id::of(id))
                                 .ask<&Account::deposit>(id, wanted.cents);
                co_return co_await balance_after(name, std::move(later));
              });
  routes.post("/transfers", [ledger](http::request& asked) -> troupe::task<http::response> {
    const std::string id = key_of(asked);
    const auto wanted = co_await http::read_json<Transfer>(asked);
    check_amount(wanted.cents);
    if (wanted.from.empty() || wanted.to.empty() || wanted.from == wanted.to)
      throw http::status_error(400, "from, to: two accounts");
    auto later = ledger.get<Account>(wanted.from)
                     .with_id(durable::message_id::of(id))
                     .ask<&Account::pay>(wanted.to, id, wanted.cents);
    co_return co_await balance_after(wanted.from, std::move(later));
  });
  routes.get("/accounts/{name}", [ledger](std::string name) {
    auto later = ledger.get<Account>(name).ask<&Account::balance>();
    return balance_after(std::move(name), std::move(later));
  });
  routes.get("/accounts/{name}/entries",
             [ledger](std::string name) -> troupe::task<http::response> {
               const std::vector<Entry> all =
                   co_await ledger.get<Account>(name).ask<&Account::all_entries>();
               co_return http::json_response(all);
             });
  return routes;
}

// ---- the program ----

struct Options {
  std::string database = "ledger.db";
  int port = 0;
};

constexpr const char* usage =
    "usage: ledger [--database FILE | --database postgresql://USER@HOST/NAME] [--port N]\n";

struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Options parse(int argc, char** argv) {
  Options chosen;
  for (int at = 1; at < argc; at += 2) {
    const std::string_view word = argv[at];
    if (at + 1 == argc) throw WrongUse("'" + std::string(word) + "' needs a value");
    const std::string_view value = argv[at + 1];
    if (word == "--database") {
      chosen.database = value;
    } else if (word == "--port") {
      const auto [end, failed] =
          std::from_chars(value.data(), value.data() + value.size(), chosen.port);
      if (failed != std::errc() || end != value.data() + value.size() || chosen.port < 0 ||
          chosen.port > 65'535)
        throw WrongUse("a port is a number from 0 to 65535");
    } else {
      throw WrongUse("there is no option '" + std::string(word) + "'");
    }
  }
  return chosen;
}

std::unique_ptr<durable::storage> storage_of(troupe::runtime& rt, const std::string& database) {
  if (!database.starts_with("postgresql:")) return durable::sqlite_storage(rt, database);
#if LEDGER_HAS_POSTGRES
  return durable::postgres_storage(rt, database);
#else
  throw WrongUse("built without libpq (Debian: libpq-dev)");
#endif
}

troupe::task<> serve(troupe::runtime& rt, Options chosen) {
  auto file = storage_of(rt, chosen.database);
  const durable::store ledger =
      co_await durable::store::open(rt, std::move(file),
                                    durable::kind<Account, &Account::deposit, &Account::pay,
                                                  &Account::balance, &Account::all_entries>());
  http::server web(make_routes(ledger));
  auto listener = troupe::tcp_listener::listen(
      troupe::endpoint::loopback(static_cast<std::uint16_t>(chosen.port)));
  std::cout << "listening on " << listener.local().to_string() << std::endl;
  auto serves = rt.spawn(web.serve(std::move(listener)));
  auto signals = troupe::signal_listener::listen({SIGINT, SIGTERM});
  co_await signals.next();
  web.stop();
  co_await std::move(serves);
}

int main(int argc, char** argv) try {
  if (argc > 1 && std::string_view(argv[1]) == "--help") {
    std::cout << usage;
    return 0;
  }
  const Options chosen = parse(argc, argv);
  troupe::runtime rt;
  rt.spawn(serve(rt, chosen));
  rt.run();
  return 0;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "ledger: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "ledger: " << failure.what() << '\n';
  return 1;
}
