// notes: many actors write into one SQLite database, whose handle never leaves a thread of its own.
// needs: sqlite3
//
//     ./run examples/notes.cpp notes.db --writers 20 --notes 1000
//
// The Database is pinned to a thread, so SQLite needs no locks, and a slow disk delays no other
// actor. When a transaction begins, all messages in the mailbox become part of it: the Database
// sends itself the message that commits, and that comes last. A Writer sends one page, and the next
// one when that is safe, so the mailbox never holds more than a page of each Writer.
#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/troupe.hpp"

constexpr int notes_per_page = 50;
// How long SQLite waits while another program writes to the same file.
constexpr int busy_wait_ms = 5'000;

// An operation that SQLite refused. run() throws it, and main() catches it.
struct SqlError : std::runtime_error {
  SqlError(const std::string& doing, int refusal, const char* why)
      : std::runtime_error(doing + ": " + why + " (SQLite's error " + std::to_string(refusal) +
                           ")"),
        code(refusal) {}
  int code;
};

// Notes on which threads SQLite was called. It has a lock, since otherwise it could not tell if
// there were several.
class Witness {
 public:
  void called() {
    std::lock_guard lock(mutex_);
    ++calls_;
    threads_.insert(std::this_thread::get_id());
  }
  void closed() { closed_ = true; }

  // Call it at the end. Throws if anything was wrong.
  void testify() const {
    if (!closed_) throw std::logic_error("the database was never closed");
    if (threads_.size() != 1)
      throw std::logic_error("SQLite was called on " + std::to_string(threads_.size()) +
                             " threads");
    std::cout << calls_ << " calls of SQLite, from open to close on one thread\n";
  }

 private:
  std::mutex mutex_;
  std::uint64_t calls_ = 0;
  std::set<std::thread::id> threads_;
  bool closed_ = false;
};

// Prints the result, on the main thread.
struct Report {
  std::string file;
  std::int64_t rows_due;

  void counted(std::int64_t rows, int transactions) {
    std::cout << rows << " notes written to " << file << " in " << transactions
              << " transactions\n";
    if (rows != rows_due) throw std::runtime_error(std::to_string(rows_due) + " notes were sent");
  }
};

// Owns the handle. Its constructor, messages and destructor all run on its thread.
class Database {
 public:
  Database(std::string file, std::shared_ptr<Witness> witness)
      : file_(std::move(file)), witness_(std::move(witness)) {
    sqlite3* opened = nullptr;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int code = call(sqlite3_open_v2, file_.c_str(), &opened, flags, nullptr);
    handle_.reset(opened);  // the handle must be closed even after a failure
    check("cannot open", code);
    call(sqlite3_busy_timeout, opened, busy_wait_ms);
    execute("CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY)");
    execute(
        "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, run INTEGER, writer INTEGER, "
        "number "
        "INTEGER, text TEXT)");
    execute("INSERT INTO runs DEFAULT VALUES");
    run_ = call(sqlite3_last_insert_rowid, opened);
    insert_ = prepare("INSERT INTO notes (run, writer, number, text) VALUES (?, ?, ?, ?)");
  }

  void add(int writer, int number, std::string text) {
    if (!in_transaction()) {
      execute("BEGIN IMMEDIATE");
      troupe::self(this).tell<&Database::commit>();
    }
    call(sqlite3_bind_int64, insert_.get(), 1, run_);
    call(sqlite3_bind_int, insert_.get(), 2, writer);
    call(sqlite3_bind_int, insert_.get(), 3, number);
    // The text lives until the step has ended.
    call(sqlite3_bind_text, insert_.get(), 4, text.c_str(), -1, nullptr);
    check("cannot insert into", call(sqlite3_step, insert_.get()));
    check("cannot insert into", call(sqlite3_reset, insert_.get()));
  }

  // Calls `safe` when everything before this message is committed.
  void sync(std::function<void()> safe) {
    if (!in_transaction()) return safe();
    waiting_.push_back(std::move(safe));
  }

  void count(troupe::ref<Report> report) {
    const Statement query = prepare("SELECT count(*) FROM notes WHERE run = ?");
    call(sqlite3_bind_int64, query.get(), 1, run_);
    check("cannot read", call(sqlite3_step, query.get()));
    report.tell<&Report::counted>(call(sqlite3_column_int64, query.get(), 0), transactions_);
  }

 private:
  struct Close {
    Database* owner;
    void operator()(sqlite3_stmt* statement) const { owner->call(sqlite3_finalize, statement); }
    void operator()(sqlite3* handle) const {
      owner->call(sqlite3_close, handle);
      owner->witness_->closed();
    }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  void commit() {
    execute("COMMIT");
    ++transactions_;
    for (const auto& safe : std::exchange(waiting_, {})) safe();
  }

  bool in_transaction() { return call(sqlite3_get_autocommit, handle_.get()) == 0; }

  Statement prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    check("cannot use", call(sqlite3_prepare_v2, handle_.get(), sql, -1, &statement, nullptr));
    return Statement(statement, Close{this});
  }

  void execute(const char* sql) { check("cannot use", call(sqlite3_step, prepare(sql).get())); }

  // Every call of SQLite goes through this function.
  template <class... Params, class Result>
  Result call(Result (*function)(Params...), std::type_identity_t<Params>... arguments) {
    witness_->called();
    return function(arguments...);
  }

  void check(const char* doing, int code) {
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return;
    throw SqlError(std::string(doing) + " " + file_, code, call(sqlite3_errmsg, handle_.get()));
  }

  std::string file_;
  std::shared_ptr<Witness> witness_;
  std::unique_ptr<sqlite3, Close> handle_{nullptr, Close{this}};
  Statement insert_{nullptr, Close{this}};  // destroyed before the handle
  std::int64_t run_ = 0;                    // tells these notes from those of other runs
  std::vector<std::function<void()>> waiting_;
  int transactions_ = 0;
};

// Writes its notes, a page at a time.
class Writer {
 public:
  Writer(int number, int notes, troupe::ref<Database> database)
      : number_(number), notes_(notes), database_(std::move(database)) {}

  void write_page() {
    for (int n = 0; n < notes_per_page && written_ < notes_; ++n) {
      ++written_;
      database_.tell<&Database::add>(number_, written_, "note " + std::to_string(written_));
    }
    if (written_ < notes_)
      database_.tell<&Database::sync>(troupe::self(this).bind<&Writer::write_page>());
  }

 private:
  int number_, notes_, written_ = 0;
  troupe::ref<Database> database_;
};

struct Options {
  std::string file = ":memory:";
  int writers = 10, notes = 1'000;
};

void write_notes(const Options& options) {
  const auto witness = std::make_shared<Witness>();
  troupe::runtime rt;
  // The Database stops after an error, since nothing is known then about the rest of its
  // transaction.
  const auto place = troupe::pinned("notes-db", {.on_error = troupe::error_policy::stop});
  auto database = rt.spawn<Database>(place, options.file, witness);
  const auto report = rt.spawn<Report>(troupe::on_main(), options.file,
                                       std::int64_t{options.writers} * options.notes);
  for (int number = 1; number <= options.writers; ++number) {
    rt.spawn<Writer>(number, options.notes, database).tell<&Writer::write_page>();
  }
  rt.run();  // returns when the last note is committed

  database.tell<&Database::count>(report);
  database = {};  // its last ref: it answers, closes the file and ends
  rt.run();
  witness->testify();
}

constexpr const char* usage =
    "usage: notes [FILE.db] [--writers N] [--notes M]\n"
    "  FILE.db      where the notes are added (default: in memory)\n"
    "  --writers N  actors that write at the same time, 1 to 10000 (default 10)\n"
    "  --notes M    notes of each, 1 to 1000000 (default 1000)\n"
    "Ends with 0; with 1 if SQLite refuses something or a note is missing.\n";

// The arguments are wrong.
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int read_number(std::string_view text, int most) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, number);
  if (bad == std::errc{} && rest == end && number >= 1 && number <= most) return number;
  throw WrongUse("'" + std::string(text) + "' is no number from 1 to " + std::to_string(most));
}

Options parse(int argc, char** argv) {
  Options chosen;
  std::set<std::string> given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_file = !word.starts_with('-');
    if (!given.insert(is_file ? "file" : word).second)
      throw WrongUse("'" + word + "' is one too many");
    if (is_file) {
      chosen.file = word;
    } else if (word != "--writers" && word != "--notes") {
      throw WrongUse("there is no option '" + word + "'");
    } else if (++i == argc) {
      throw WrongUse(word + " wants a number");
    } else if (word == "--writers") {
      chosen.writers = read_number(argv[i], 10'000);
    } else {
      chosen.notes = read_number(argv[i], 1'000'000);
    }
  }
  return chosen;
}

int main(int argc, char** argv) try {
  if (std::find(argv + 1, argv + argc, std::string_view("--help")) != argv + argc) {
    std::cout << usage;
    return 0;
  }
  write_notes(parse(argc, argv));
  return 0;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "notes: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "notes: " << failure.what() << '\n';
  return 1;
}
