// pool: several connections to a PostgreSQL server, lent one by one.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/base/time_span.hpp"
#include "troupe/kit/pool.hpp"
#include "troupe/postgres/connection.hpp"

namespace troupe::postgres {

// A value that makes no sense is an option_error.
struct pool_limits : pool_options {
  // How long a call waits for a connection, and for the server to accept a new one; more than 0.
  // When it is over, the call fails as failure::busy.
  time_span wait_max = std::chrono::seconds(30);
  // How long the server has to answer when an idle connection is checked; more than 0.
  time_span check_timeout = std::chrono::seconds(5);
  // By which an observed program shows the pool's counts and waits (troupe_pool in docs/guide/
  // metrics.md), and warns when callers wait for its connections. A second pool of the same name is
  // "postgres (2)". Not empty.
  std::string name = "postgres";
};

// Up to `max` connections to a server, each with the calls of one party at a time. It has the calls
// of a connection; each borrows one for as long as it takes, and waits in order while all are lent.
// Idle connections are checked before they are lent, and now and then (troupe/kit/pool.hpp). Copies
// are the same pool.
//
// One connection serves thousands of calls at the same time as well, one after the other in the
// server: a pool lets the server use several of its processors, and keeps the others going while a
// transaction has a connection to itself.
//
// Thread: any; await the calls in handlers and tasks. Errors: as a connection; database::error
// (failure::busy) when no connection became free in time; pool_closed. Lifetime: its connections
// are closed with the last copy.
//
// Example (declarations):
//     troupe::task<> sell(troupe::postgres::pool shop, std::string name) {
//       co_await shop.execute("UPDATE items SET pieces = pieces - 1 WHERE name = $1", name);
//     }
class pool {
 public:
  using lease = troupe::pool<connection>::lease;

  pool(runtime& on, std::string target) : pool(on, std::move(target), pool_limits()) {}
  pool(runtime& on, std::string target, const pool_limits& limits, const options& chosen = {});

  // A connection for several calls; it returns to the pool when the lease ends.
  task<lease> borrow() const { return borrow_from(state_); }
  pool_counts counts() const { return state_->lends.counts(); }
  // As troupe::pool::close().
  future<> close() const { return state_->lends.close(); }

  // As in connection.
  template <class T, class... P>
  task<std::vector<T>> query(std::string_view text, P&&... parameters) const {
    return run(state_, parts::calls::all_rows(state_->chosen),
               make_request(text, std::forward<P>(parameters)...),
               [](answer& got) { return got.read<T>(); });
  }
  template <class T, class... P>
  task<std::optional<T>> query_one(std::string_view text, P&&... parameters) const {
    return run(state_, parts::calls::one_row(state_->chosen),
               make_request(text, std::forward<P>(parameters)...),
               [](answer& got) { return got.read_one<T>(); });
  }
  template <class... P>
  task<changes> execute(std::string_view text, P&&... parameters) const {
    return run(state_, {}, make_request(text, std::forward<P>(parameters)...),
               [](answer& got) { return changes{got.changed_rows()}; });
  }
  template <class Row>
  task<changes> execute_many(std::string_view text, std::vector<Row> rows) const {
    if (rows.empty()) return parts::calls::nothing_to_do();
    return run(state_, {}, make_request_of_many(text, std::move(rows)),
               [](answer& got) { return changes{got.changed_rows()}; });
  }
  task<> run_script(std::string_view text) const;
  template <class Body>
  auto in_transaction(Body body, isolation level = isolation::standard) const {
    return run_transaction(state_, std::move(body), level);
  }

 private:
  struct shared {
    troupe::pool<connection> lends;
    time_span wait_max;
    options chosen;
    std::shared_ptr<const void> shown{};  // the first to be destroyed: it reads `lends`
  };
  static task<lease> borrow_from(std::shared_ptr<shared> from);

  template <class Read>
  static auto run(std::shared_ptr<shared> from, row_limits wants, std::unique_ptr<request> query,
                  Read read) -> task<std::invoke_result_t<Read&, answer&>> {
    task<lease> borrows = borrow_from(std::move(from));
    const lease borrowed = co_await std::move(borrows);
    auto runs = parts::calls::run(borrowed->state(), 0, wants, std::move(query), std::move(read));
    co_return co_await std::move(runs);
  }
  template <class Body>
  static auto run_transaction(std::shared_ptr<shared> from, Body body, isolation level)
      -> std::invoke_result_t<Body&, transaction&> {
    task<lease> borrows = borrow_from(std::move(from));
    const lease borrowed = co_await std::move(borrows);
    auto runs = borrowed->in_transaction(std::move(body), level);
    co_return co_await std::move(runs);
  }

  std::shared_ptr<shared> state_;
};

}  // namespace troupe::postgres
