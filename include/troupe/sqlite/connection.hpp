// connection: a SQLite database for actors and tasks, on a thread of its own.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/actor/ref.hpp"
#include "troupe/database/error.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/sqlite/counted_call.hpp"
#include "troupe/sqlite/session.hpp"
#include "troupe/sync/mutex.hpp"
#include "troupe/task/task.hpp"

namespace troupe::sqlite {

class transaction;

namespace parts {

// The state that the copies of a connection share.
struct shared {
  shared(ref<session> on, std::shared_ptr<call_waits> of_calls)
      : session_ref(std::move(on)), waits(std::move(of_calls)) {}
  const ref<session> session_ref;
  const std::shared_ptr<call_waits> waits;
  // A transaction holds it for writing, other calls for reading.
  shared_mutex calls;
};

// Rolls the transaction back unless it was ended.
class open_transaction {
 public:
  explicit open_transaction(const ref<session>& on) : session_(on) {}
  open_transaction(const open_transaction&) = delete;
  open_transaction& operator=(const open_transaction&) = delete;
  ~open_transaction();
  void end() noexcept { session_ = {}; }

 private:
  ref<session> session_;
};

// The calls, within and outside of transactions.
class calls {
 public:
  // `scope`: the number of the transaction's scope; 0 outside of all transactions.
  explicit calls(std::shared_ptr<shared> state, std::uint64_t scope) noexcept
      : shared_(std::move(state)), scope_(scope) {}

  // Runs the callable on the session's thread, beside the transactions of other callers: for
  // parties that have the connection to themselves.
  template <class What>
  static auto run_on_thread(std::shared_ptr<shared> on, What action)
      -> task<std::invoke_result_t<What&, session&>> {
    auto answer = on->session_ref.ask(std::move(action));
    co_return co_await std::move(answer);
  }

  // Runs the callable on the session's thread.
  template <class What>
  static auto run(std::shared_ptr<shared> on, std::uint64_t scope, What action)
      -> task<std::invoke_result_t<What&, session&>> {
    using result = std::invoke_result_t<What&, session&>;
    counted_wait wait(on->waits);
    std::optional<shared_mutex::shared_guard> held;
    if (scope == 0) {
      held = on->calls.try_lock_shared();
      if (!held) {
        auto waits = on->calls.lock_shared();
        held.emplace(co_await std::move(waits));
      }
    }
    auto call = [action = std::move(action), scope,
                 wait = std::move(wait)](session& self) mutable -> result {
      wait.end();
      self.check_scope(scope);
      if constexpr (std::is_void_v<result>) {
        action(self);
        if (scope == 0) self.check_no_transaction();
      } else {
        result given = action(self);
        if (scope == 0) self.check_no_transaction();
        return given;
      }
    };
    auto answer = on->session_ref.ask(std::move(call));
    co_return co_await std::move(answer);
  }

  // The same with others that wait; within a transaction, at once.
  template <class What>
  static auto run_with_others(std::shared_ptr<shared> on, std::uint64_t scope, std::string text,
                              What action)
      -> task<std::invoke_result_t<What&, session&, const std::string&>> {
    counted_wait wait(on->waits);
    if (scope != 0) {
      auto call = [text = std::move(text), action = std::move(action), scope,
                   wait = std::move(wait)](session& self) mutable {
        wait.end();
        self.check_scope(scope);
        const counted_statement counted(text);
        return action(self, text);
      };
      auto answer = on->session_ref.ask(std::move(call));
      co_return co_await std::move(answer);
    }
    std::optional<shared_mutex::shared_guard> held = on->calls.try_lock_shared();
    if (!held) {
      auto waits = on->calls.lock_shared();
      held.emplace(co_await std::move(waits));
    }
    auto call = std::make_unique<waiting_call_of<What>>(std::move(text), std::move(action),
                                                        std::move(wait));
    auto later = call->asker.get_future();
    on->session_ref.tell(
        [call = std::move(call)](session& self) mutable { self.enqueue(std::move(call)); });
    co_return co_await std::move(later);
  }

  template <class T, class... P>
  task<std::vector<T>> query(std::string_view text, P&&... parameters) const {
    return run_with_others(
        shared_, scope_, std::string(text),
        [given = std::tuple(database::keep_parameter(std::forward<P>(parameters))...)](
            session& self, const std::string& words) { return self.query<T>(words, given); });
  }
  template <class T, class... P>
  task<std::optional<T>> query_one(std::string_view text, P&&... parameters) const {
    return run_with_others(
        shared_, scope_, std::string(text),
        [given = std::tuple(database::keep_parameter(std::forward<P>(parameters))...)](
            session& self, const std::string& words) { return self.query_one<T>(words, given); });
  }
  template <class... P>
  task<changes> execute(std::string_view text, P&&... parameters) const {
    return run_with_others(
        shared_, scope_, std::string(text),
        [given = std::tuple(database::keep_parameter(std::forward<P>(parameters))...)](
            session& self, const std::string& words) { return self.execute(words, given); });
  }
  // The same statement once for each row of parameters, in their order. All rows are stored, or
  // none: if one fails, the error names it, and the others are undone. Rows that the statement
  // returns are dropped.
  template <class Row>
  task<changes> execute_many(std::string_view text, std::vector<Row> rows) const {
    return run_with_others(
        shared_, scope_, std::string(text),
        [given = database::keep_rows(std::move(rows))](session& self, const std::string& words) {
          return self.execute_many(words, given);
        });
  }
  task<> run_script(std::string_view text) const {
    return run(shared_, scope_,
               [text = std::string(text)](session& self) { self.run_script(text); });
  }

 protected:
  const std::shared_ptr<shared>& state() const noexcept { return shared_; }

 private:
  std::shared_ptr<shared> shared_;
  std::uint64_t scope_;
};

}  // namespace parts

// A SQLite database. The file is opened by the first call, on a thread that this connection alone
// has; handlers and tasks await the calls, and no worker is blocked. A call that fails changes
// nothing. When the file could not be opened, the next call tries again.
//
//     query<T>(text, parameters...)      all rows, each as a T (troupe/database/rows.hpp)
//     query_one<T>(text, parameters...)  the only row, or none
//     execute(text, parameters...)       what was changed
//     execute_many(text, rows)           once for each row of parameters, all or nothing
//     run_script(text)                   several statements without parameters, for a schema
//
// Parameters are written as `?` in the text, or as `$1`, `$2`, …; they are values, and never become
// part of it. Statements are kept prepared by their text.
//
// Thread: make it on any; await the calls in handlers and tasks. Copies are the same connection.
// Cost: about 5 us a call that finds its page in memory; changes that wait at the same time wait
// for the disk once. Errors: database::error with its kind; timed_out and cancelled from
// with_deadline and with_stop, which interrupt a statement that runs. A change whose caller gave up
// may have been made. Lifetime: the file is closed once the last copy is destroyed and the last
// call has ended. Limits: 1,000 connections of a runtime at the same time.
//
// Example:
//     struct Item {
//       std::string name;
//       int pieces;
//     };
//     troupe::task<> shop(troupe::sqlite::connection db) {
//       co_await db.run_script("CREATE TABLE items (name TEXT PRIMARY KEY, pieces INTEGER)");
//       co_await db.execute("INSERT INTO items VALUES (?, ?)", "pen", 12);
//       for (const Item& item : co_await db.query<Item>("SELECT name, pieces FROM items"))
//         std::cout << item.name << ": " << item.pieces << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(shop(troupe::sqlite::connection(rt, ":memory:")));
//       rt.run();
//     }
class connection : public parts::calls {
 public:
  // `path`: a file, or ":memory:" for a database that ends with the connection. Throws option_error
  // for options that make no sense, for an empty path, and for one with a zero byte.
  connection(runtime& on, std::string path, options chosen = {});

  // Awaits body(transaction&), a task, with the database to itself: when it ends, all its changes
  // are committed together; when it throws, is cancelled or is destroyed, none is. Gives the body's
  // value. Other calls of this connection wait meanwhile: do not await them in the body, but the
  // transaction's. It begins as a writer (BEGIN IMMEDIATE), so that it never fails in the middle
  // because another writer was first. Within it no statement may begin or end a transaction. A
  // statement that fails may end the transaction (ON CONFLICT ROLLBACK, RAISE(ROLLBACK), a
  // deadline, a full disk): then each further call of the transaction, and in_transaction itself,
  // throws failure::transaction_ended.
  //
  // Example (declarations):
  //     troupe::task<> move_pieces(troupe::sqlite::connection db) {
  //       const auto body = [](troupe::sqlite::transaction& all) -> troupe::task<> {
  //         co_await all.execute("UPDATE items SET pieces = pieces - 1 WHERE name = ?", "pen");
  //         co_await all.execute("UPDATE items SET pieces = pieces + 1 WHERE name = ?", "ink");
  //       };
  //       co_await db.in_transaction(body);
  //     }
  template <class Body>
  auto in_transaction(Body body) const {
    return run_transaction(state(), std::move(body));
  }

 private:
  template <class Body>
  static auto run_transaction(std::shared_ptr<parts::shared> on, Body body)
      -> std::invoke_result_t<Body&, transaction&>;
};

// The calls of a transaction. Lifetime: within the body of in_transaction.
class transaction : public parts::calls {
 public:
  using parts::calls::calls;
  transaction(const transaction&) = delete;
};

template <class Body>
auto connection::run_transaction(std::shared_ptr<parts::shared> on, Body body)
    -> std::invoke_result_t<Body&, transaction&> {
  using awaited = std::invoke_result_t<Body&, transaction&>;
  using result = decltype(std::declval<awaited>().operator co_await().await_resume());
  parts::counted_wait wait(on->waits);
  auto waits = on->calls.lock();
  const auto held = co_await std::move(waits);
  auto begin = [wait = std::move(wait)](session& self) mutable {
    wait.end();
    return self.begin();
  };
  const auto commit = [](session& self) { self.commit(); };
  auto begins = parts::calls::run_on_thread(on, std::move(begin));
  parts::open_transaction open(on->session_ref);
  const std::uint64_t scope = co_await std::move(begins);
  transaction inside(on, scope);
  awaited runs = body(inside);
  if constexpr (std::is_void_v<result>) {
    co_await std::move(runs);
    auto commits = parts::calls::run(on, scope, commit);
    co_await std::move(commits);
    open.end();
  } else {
    auto given = co_await std::move(runs);
    auto commits = parts::calls::run(on, scope, commit);
    co_await std::move(commits);
    open.end();
    co_return given;
  }
}

}  // namespace troupe::sqlite
