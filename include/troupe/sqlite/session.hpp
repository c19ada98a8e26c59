// session: one connection to a SQLite file, on the thread that owns it. Programs use
// connection.hpp.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/base/time_span.hpp"
#include "troupe/database/error.hpp"
#include "troupe/database/rows.hpp"
#include "troupe/database/transaction_state.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/sqlite/counted_call.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/future.hpp"

struct sqlite3_stmt;  // of sqlite3.h

namespace troupe::sqlite {

// When a change counts as stored.
enum class durability : std::uint8_t {
  full,    // when it is on the disk: it survives a loss of power
  normal,  // it survives a crash of the program; after a loss of power the last ones may be missing
  off,     // the system stores it when it likes; after a loss of power the file may be damaged
};

// How a file of SQLite is opened and used.
struct options {
  // Opens the file for reading alone, and does not create it.
  bool read_only = false;
  // Creates the file if there is none.
  bool create = true;
  // How long a statement waits for other connections that have the file locked; 0 or more.
  time_span busy_timeout = std::chrono::seconds(5);
  // Changes go to a log beside the file, so that readers and one writer do not wait for each other.
  bool write_ahead_log = true;
  durability stored = durability::full;
  // Statements that are kept prepared, by their text; 1 or more.
  std::size_t statements_max = 128;
  // Rows of one answer; more are an error. An answer lies in memory as a whole. 1 or more.
  std::size_t rows_max = 1'000'000;
};

// The changes of a statement.
struct changes {
  std::int64_t rows = 0;         // inserted, updated or deleted by it, without triggers
  std::int64_t last_row_id = 0;  // of the last insert of this connection
};

// How a transaction begins.
enum class transaction_access : std::uint8_t {
  write,  // it takes the lock for writing at once, so that it never fails later for lack of the
          // lock
  read,   // it sees the data stored at one moment, and hinders no writer
};

class session;
struct kept_statement;

// A prepared statement of a session while it runs; at most one at a time.
class statement {
 public:
  // Opens the file if it is not open. Throws error, for a text with no statement or several as
  // well.
  statement(session& on, const std::string& text);
  statement(const statement&) = delete;
  statement& operator=(const statement&) = delete;
  ~statement();

  // Parameters are numbered from 1 on. The objects to which they refer must live as long as the
  // statement runs.
  void bind_null(int number);
  void bind_integer(int number, std::int64_t value);
  void bind_real(int number, double value);
  void bind_text(int number, std::string_view text);
  void bind_bytes(int number, std::span<const std::byte> bytes);
  // Throws error if the statement has another number of parameters.
  void check_parameters(std::size_t given) const;

  // Whether it changes rows of tables and returns some.
  bool returns_changes() const noexcept;

  // True: the next row is there. Throws error; timed_out or cancelled when the call's limits are
  // over.
  bool step();
  // Begins anew, with the same parameters until they are bound to others.
  void reset() noexcept;
  // For a change: all its steps, then reset().
  void run();

  // The columns of the row. Views live until the next step.
  int columns() const noexcept;
  std::string_view name(int column) const;
  bool is_null(int column) const noexcept;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;
  std::span<const std::byte> bytes(int column) const;

 private:
  friend class session;
  statement(session& on, const kept_statement& kept);
  int place_of(int number) const noexcept;
  [[noreturn]] void fail(int code) const;
  void check(int code) const;
  void refuse_kind(int column, const char* needed) const;

  session& session_;
  const kept_statement& kept_;
  sqlite3_stmt* handle_;
  bool is_running_ = false;          // a step was made since it was reset
  std::int64_t changes_before_ = 0;  // of the session, when it began to run
};

// A call outside of a transaction, until it is answered. It may be run again as long as it is not.
struct waiting_call {
  waiting_call(std::string words, parts::counted_wait counted)
      : text(std::move(words)), within(tasks::context_ref::current()), wait(std::move(counted)) {}
  waiting_call(const waiting_call&) = delete;
  waiting_call& operator=(const waiting_call&) = delete;
  virtual ~waiting_call();
  static void* operator new(std::size_t size) { return memory::allocate(size); }
  static void operator delete(void* block, std::size_t size) noexcept {
    memory::deallocate(block, size);
  }
  virtual void run(session& on) noexcept = 0;  // keeps the result, or the failure
  virtual void answer() = 0;
  virtual bool is_abandoned() const noexcept = 0;

  const std::string text;
  const tasks::context_ref within;
  parts::counted_wait wait;  // until it runs for the first time
  std::exception_ptr failed;
};

// A call with its procedure, which waits for a thread of the database.
template <class What>
struct waiting_call_of final : waiting_call {
  using result = std::invoke_result_t<What&, session&, const std::string&>;
  waiting_call_of(std::string words, What does, parts::counted_wait counted)
      : waiting_call(std::move(words), std::move(counted)), action(std::move(does)) {}
  void run(session& on) noexcept override {
    wait.end();
    const tasks::inside_context inside(within.get());
    failed = nullptr;
    got.reset();
    try {
      inside.check();
      got.emplace(action(on, text));
    } catch (...) {
      failed = std::current_exception();
    }
  }
  void answer() override {
    failed != nullptr ? asker.set_exception(std::move(failed)) : asker.set_value(std::move(*got));
  }
  bool is_abandoned() const noexcept override { return asker.abandoned(); }

  What action;
  promise<result> asker;
  std::optional<result> got;
};

// Waiting statements run together: queries in one read of the file, changes in one transaction, so
// that they wait for the disk once. Each is answered as if it had run alone: none before it is
// stored, and when one of them spoils the transaction, the others are run again by themselves.
//
// Thread: the one on which its actor lives.
//
// Transactions: docs/protocols/database_sessions.md.
class session {
 public:
  static constexpr bool may_block = true;  // it has a thread of its own
  session(std::string path, options chosen, std::string thread, std::shared_ptr<call_waits> waits);
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session();

  // A change whose rows cannot be read is undone.
  template <class T, class... P>
  std::vector<T> query(const std::string& text, const std::tuple<P...>& parameters) {
    std::vector<T> rows;
    read<T>(text, parameters, [&](const auto& columns, const statement& row) {
      if (rows.size() == options_.rows_max) refuse_rows();
      rows.push_back(columns.read(row));
    });
    return rows;
  }
  template <class T, class... P>
  std::optional<T> query_one(const std::string& text, const std::tuple<P...>& parameters) {
    std::optional<T> only;
    read<T>(text, parameters, [&only](const auto& columns, const statement& row) {
      if (only) refuse_second_row();
      only.emplace(columns.read(row));
    });
    return only;
  }
  template <class... P>
  changes execute(const std::string& text, const std::tuple<P...>& parameters) {
    statement runs(*this, text);
    bind(runs, parameters);
    while (runs.step()) {
    }
    return changes_of(runs);
  }
  template <class Row>
  changes execute_many(const std::string& text, const std::vector<Row>& rows);
  // All statements of a text, one after the other, for a schema.
  void run_script(const std::string& text);

  // Runs it with those that wait in the mailbox behind it.
  void enqueue(std::unique_ptr<waiting_call> call);

  // Begins a transaction, and returns the number of its scope.
  std::uint64_t begin(transaction_access access = transaction_access::write);
  void commit();  // when it fails, all is rolled back
  void roll_back() noexcept;
  // Undoes the changes since all_or_nothing has begun within a transaction.
  void undo_part() noexcept;
  // Whether the current all_or_nothing is a part of a transaction.
  bool has_scope() const noexcept;
  // Before a call of this transaction scope; 0: a call outside of all transactions. Throws error if
  // the transaction has ended.
  void check_scope(std::uint64_t scope);
  // After a call outside of a transaction: one that a statement has left open is rolled back, and
  // is an error.
  void check_no_transaction();
  database::transaction_state transaction() const noexcept;
  bool is_in_transaction() const noexcept {
    return transaction() != database::transaction_state::none;
  }
  const options& chosen() const noexcept { return options_; }

 private:
  friend class statement;
  struct state;

  template <class... P>
  static void bind(statement& target, const std::tuple<P...>& parameters) {
    target.check_parameters(sizeof...(P));
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (database::bind_value(target, static_cast<int>(I + 1), std::get<I>(parameters)), ...);
    }
    (std::make_index_sequence<sizeof...(P)>());
  }
  // Calls `take(columns, row)` for each row.
  template <class T, class Take, class... P>
  void read(const std::string& text, const std::tuple<P...>& parameters, Take take);
  [[noreturn]] void refuse_rows() const;
  [[noreturn]] static void refuse_second_row();
  changes changes_of(const statement& done) const noexcept;
  void run_waiting();
  void run_alone(waiting_call& call) noexcept;
  void run_queries(std::vector<waiting_call*>& calls);
  void run_changes(std::vector<waiting_call*>& calls);
  bool run_as_one(std::vector<waiting_call*>& calls);
  void open();
  void set_up();
  void close() noexcept;
  const kept_statement& prepared(const std::string& text);
  void before_statement(bool begins_or_ends_transaction);
  void after_statement();
  bool is_call_over() const noexcept;
  int wait_for_lock(int tries) const noexcept;
  [[noreturn]] void end_call() const;
  [[noreturn]] void fail(int code, const char* doing,
                         database::effect done = database::effect::none) const;
  static int is_call_over(void* self) noexcept;
  static int wait_for_lock(void* self, int tries) noexcept;

  const std::string path_;
  const options options_;
  const std::string thread_;
  const std::shared_ptr<call_waits> waits_;
  std::unique_ptr<state> state_;
  database::transaction_scopes scopes_;
  std::vector<std::unique_ptr<waiting_call>> waiting_;
  // The changes that begin a transaction together.
  const std::vector<waiting_call*>* together_ = nullptr;
};

// A transaction, on the session's thread. Rolled back at the end of the scope unless committed.
class session_transaction {
 public:
  explicit session_transaction(session& on) : session_(on) { session_.begin(); }
  session_transaction(const session_transaction&) = delete;
  session_transaction& operator=(const session_transaction&) = delete;
  ~session_transaction() {
    if (!committed_) session_.roll_back();
  }
  void commit() {
    session_.commit();
    committed_ = true;
  }

 private:
  session& session_;
  bool committed_ = false;
};

// The changes until keep() are committed together, within a transaction or as a transaction of
// their own.
class all_or_nothing {
 public:
  explicit all_or_nothing(session& on);
  all_or_nothing(const all_or_nothing&) = delete;
  all_or_nothing& operator=(const all_or_nothing&) = delete;
  ~all_or_nothing();
  void keep();

 private:
  session& session_;
  const bool within_;
  bool kept_ = false;
};

template <class T, class Take, class... P>
void session::read(const std::string& text, const std::tuple<P...>& parameters, Take take) {
  std::optional<all_or_nothing> change;
  statement runs(*this, text);
  bind(runs, parameters);
  if (runs.returns_changes()) change.emplace(*this);
  std::optional<database::mapping<T>> columns;
  while (runs.step()) {
    if (!columns) columns.emplace(runs);
    take(*columns, runs);
  }
  if (change) change->keep();
}

// Throws the present exception again; a database::error then names the row of parameters that
// failed.
[[noreturn]] void refuse_row(std::size_t row, std::size_t rows);

template <class Row>
changes session::execute_many(const std::string& text, const std::vector<Row>& rows) {
  all_or_nothing all(*this);
  changes sum;
  {
    statement runs(*this, text);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      try {
        bind(runs, rows[i]);
        while (runs.step()) {
        }
      } catch (...) {
        refuse_row(i + 1, rows.size());
      }
      const changes changed = changes_of(runs);
      sum = {sum.rows + changed.rows, changed.last_row_id};
      runs.reset();
    }
  }
  all.keep();
  return sum;
}

// The name of a thread that no session has: names come back when their sessions end.
std::string take_thread_name();

}  // namespace troupe::sqlite
