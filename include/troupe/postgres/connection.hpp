// connection: a connection to a PostgreSQL server for actors and tasks.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/actor/ref.hpp"
#include "troupe/postgres/copy.hpp"
#include "troupe/postgres/error.hpp"
#include "troupe/postgres/listener.hpp"
#include "troupe/postgres/session.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/sync/mutex.hpp"
#include "troupe/task/task.hpp"

namespace troupe::postgres {

class transaction;
class connection;
class pool;

// A connection of the running runtime that is open already. Errors: as a call's.
task<connection> connect(std::string target, options chosen = {});

namespace parts {

// The state that the copies of a connection share.
struct shared {
  shared(ref<session> on, const options& given) : session_ref(std::move(on)), chosen(given) {}
  const ref<session> session_ref;
  const options chosen;
  // A transaction holds it for writing, other calls for reading.
  shared_mutex calls;
};

// Notifies the session that its caller has given up, unless the answer has arrived.
class open_request {
 public:
  explicit open_request(const ref<session>& on, std::uint64_t copy_number = 0) noexcept
      : session_(on), copy_number_(copy_number) {}
  open_request(const open_request&) = delete;
  open_request& operator=(const open_request&) = delete;
  ~open_request();
  void end() noexcept { session_ = {}; }

 private:
  ref<session> session_;
  std::uint64_t copy_number_;
};

// Rolls the transaction back unless it was ended.
class open_transaction {
 public:
  explicit open_transaction(const ref<session>& on) noexcept : session_(on) {}
  open_transaction(const open_transaction&) = delete;
  open_transaction& operator=(const open_transaction&) = delete;
  ~open_transaction();
  void end() noexcept { session_ = {}; }

 private:
  ref<session> session_;
};

future<answer> submit(const ref<session>& on, std::unique_ptr<request> query);
std::unique_ptr<request> make_begin(isolation level);
// Throws error if the transaction was rolled back instead, after a statement of it has failed.
void check_committed(const answer& result);

// Throws the present exception again: the server has run the statement, and only its answer cannot
// be read.
[[noreturn]] void refuse_answer();
template <class Read>
auto read_answer(Read& read, answer& got) -> std::invoke_result_t<Read&, answer&> {
  try {
    return read(got);
  } catch (const database::error&) {
    refuse_answer();
  }
}

// The calls, within and outside of transactions.
class calls {
 public:
  // `scope`: the number of the transaction's scope; 0 outside of all transactions.
  calls(std::shared_ptr<shared> state, std::uint64_t scope) noexcept
      : shared_(std::move(state)), scope_(scope) {}

  // Awaits the answer, and gives the result of `read(answer)`.
  template <class Read>
  static auto run(std::shared_ptr<shared> on, std::uint64_t scope, row_limits wants,
                  std::unique_ptr<request> query, Read read)
      -> task<std::invoke_result_t<Read&, answer&>> {
    std::optional<shared_mutex::shared_guard> held;
    if (scope == 0) {
      held = on->calls.try_lock_shared();
      if (!held) {
        auto waits = on->calls.lock_shared();
        held.emplace(co_await std::move(waits));
      }
    }
    query->scope = scope;
    query->wants = wants;
    open_request open(on->session_ref);
    future<answer> later = submit(on->session_ref, std::move(query));
    answer got = co_await std::move(later);
    open.end();
    co_return read_answer(read, got);
  }

  template <class T, class... P>
  task<std::vector<T>> query(std::string_view text, P&&... parameters) const {
    return run(shared_, scope_, all_rows(shared_->chosen),
               make_request(text, std::forward<P>(parameters)...),
               [](answer& got) { return got.read<T>(); });
  }
  template <class T, class... P>
  task<std::optional<T>> query_one(std::string_view text, P&&... parameters) const {
    return run(shared_, scope_, one_row(shared_->chosen),
               make_request(text, std::forward<P>(parameters)...),
               [](answer& got) { return got.read_one<T>(); });
  }
  template <class... P>
  task<changes> execute(std::string_view text, P&&... parameters) const {
    return run(shared_, scope_, {}, make_request(text, std::forward<P>(parameters)...),
               [](answer& got) { return changes{got.changed_rows()}; });
  }
  // The same statement once for each row of parameters, in their order. All rows are stored, or
  // none: if one fails, the error names it, and the others are undone. Rows that the statement
  // returns are dropped. Limit: 65,536 rows; use copy_in for more.
  template <class Row>
  task<changes> execute_many(std::string_view text, std::vector<Row> rows) const {
    if (rows.empty()) return nothing_to_do();
    return run(shared_, scope_, {}, make_request_of_many(text, std::move(rows)),
               [](answer& got) { return changes{got.changed_rows()}; });
  }
  task<> run_script(std::string_view text) const;
  task<copy_writer> copy_in(std::string_view text) const;
  task<copy_reader> copy_out(std::string_view text) const;

  static task<changes> nothing_to_do();
  static row_limits all_rows(const options& chosen) noexcept {
    return {chosen.rows_max, chosen.bytes_max, false};
  }
  static row_limits one_row(const options& chosen) noexcept { return {1, chosen.bytes_max, true}; }

 protected:
  const std::shared_ptr<shared>& state() const noexcept { return shared_; }

 private:
  template <class Copy>
  static task<Copy> open_copy(std::shared_ptr<shared> on, std::uint64_t scope, request_kind does,
                              std::string text);
  std::shared_ptr<shared> shared_;
  std::uint64_t scope_;
};

}  // namespace parts

// A connection to a PostgreSQL server. The first call connects; handlers and tasks await the calls,
// and no worker is blocked. Calls that are made at the same time travel together, and each succeeds
// or fails by itself. When the connection was lost, the next call connects again.
//
//     query<T>(text, parameters...)      all rows, each as a T (troupe/database/rows.hpp)
//     query_one<T>(text, parameters...)  the only row, or none
//     execute(text, parameters...)       its changes
//     execute_many(text, rows)           once for each row of parameters, all or nothing
//     run_script(text)                   several statements without parameters, for a schema
//     copy_in(text), copy_out(text)      the rows of a COPY, as a stream (copy.hpp)
//
// Parameters are written as `$1`, `$2`, … in the text; they are values, and never become part of
// it. Statements are kept prepared by their text, under names that no other connection has; behind
// a pooler see options::keep_prepared.
//
// `target` has psql's form: "host=db.example port=5432 dbname=shop user=ada sslmode=verify-full",
// or "postgresql://ada@db.example/shop?sslmode=verify-full"; missing settings come from the
// environment (PGHOST, …) and from the password file, as with libpq. Hosts are tried in order, and
// each of their addresses.
//
// Thread: make it on any; await the calls in handlers and tasks. Copies are the same connection.
// Errors: database::error with its kind, which is a postgres::error when the server has refused;
// timed_out and cancelled from with_deadline and with_stop, which cancel a statement that runs (see
// options::cancel_timeout). A change whose caller gave up may have been made. Lifetime: the
// connection is closed once the last copy is destroyed and the last call has ended.
//
// Example (declarations):
//     struct Item {
//       std::string name;
//       int pieces;
//     };
//     troupe::task<> shop(troupe::postgres::connection db) {
//       co_await db.run_script("CREATE TABLE items (name text PRIMARY KEY, pieces int)");
//       co_await db.execute("INSERT INTO items VALUES ($1, $2)", "pen", 12);
//       for (const Item& item : co_await db.query<Item>("SELECT name, pieces FROM items"))
//         std::cout << item.name << ": " << item.pieces << '\n';
//     }
class connection : public parts::calls {
 public:
  // Throws option_error for options that make no sense; does not look at `target` yet.
  connection(runtime& on, std::string target, const options& chosen = {});

  // Awaits body(transaction&), a task, with the connection to itself: when it ends, all its changes
  // are committed together; when it throws, is cancelled or is destroyed, none is. Gives the body's
  // value. Other calls of this connection wait meanwhile: do not await them in the body, but the
  // transaction's. After one of its statements has failed, the server refuses the others: let the
  // exception leave the body, or use savepoints. Its statements must not begin or end a
  // transaction. Errors: failure::conflict, when others changed the same data at the same time: run
  // it again; failure::transaction_ended, when a failed statement has aborted the transaction and
  // the body still returned.
  //
  // Example (declarations):
  //     troupe::task<> move_pieces(troupe::postgres::connection db) {
  //       const auto body = [](troupe::postgres::transaction& all) -> troupe::task<> {
  //         co_await all.execute("UPDATE items SET pieces = pieces - 1 WHERE name = $1", "pen");
  //         co_await all.execute("UPDATE items SET pieces = pieces + 1 WHERE name = $1", "ink");
  //       };
  //       co_await db.in_transaction(body, troupe::postgres::isolation::serializable);
  //     }
  template <class Body>
  auto in_transaction(Body body, isolation level = isolation::standard) const {
    return run_transaction(state(), std::move(body), level);
  }

  // Subscribes to the server's channel of this name (LISTEN, listener.hpp), and awaits the
  // subscription.
  task<listener> listen(std::string_view name) const;

 private:
  static task<listener> start_listening(std::shared_ptr<parts::shared> on, std::string name);
  friend pool;
  friend task<connection> connect(std::string, options);
  explicit connection(std::shared_ptr<parts::shared> state) noexcept : calls(std::move(state), 0) {}
  template <class Body>
  static auto run_transaction(std::shared_ptr<parts::shared> on, Body body, isolation level)
      -> std::invoke_result_t<Body&, transaction&>;
};

// The calls of a transaction. Lifetime: within the body of in_transaction.
class transaction : public parts::calls {
 public:
  using parts::calls::calls;
  transaction(const transaction&) = delete;
};

template <class Body>
auto connection::run_transaction(std::shared_ptr<parts::shared> on, Body body, isolation level)
    -> std::invoke_result_t<Body&, transaction&> {
  using awaited = std::invoke_result_t<Body&, transaction&>;
  using result = decltype(std::declval<awaited>().operator co_await().await_resume());
  auto waits = on->calls.lock();
  const auto held = co_await std::move(waits);
  parts::open_transaction open(on->session_ref);
  std::uint64_t scope = 0;
  {
    parts::open_request begins(on->session_ref);
    future<answer> later = parts::submit(on->session_ref, parts::make_begin(level));
    const answer begun = co_await std::move(later);
    begins.end();
    scope = begun.scope;
  }
  const auto commits = [](answer& got) { parts::check_committed(got); };
  transaction inside(on, scope);
  awaited runs = body(inside);
  if constexpr (std::is_void_v<result>) {
    co_await std::move(runs);
    auto commit = std::make_unique<request>(request_kind::commit, "COMMIT");
    auto ends = parts::calls::run(on, scope, {}, std::move(commit), commits);
    co_await std::move(ends);
    open.end();
  } else {
    auto given = co_await std::move(runs);
    auto commit = std::make_unique<request>(request_kind::commit, "COMMIT");
    auto ends = parts::calls::run(on, scope, {}, std::move(commit), commits);
    co_await std::move(ends);
    open.end();
    co_return given;
  }
}

}  // namespace troupe::postgres
