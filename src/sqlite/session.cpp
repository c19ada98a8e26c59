#include "troupe/sqlite/session.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <mutex>
#include <new>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "database/statement_counts.hpp"
#include "sched/policies/choices.hpp"
#include "sqlite/call_waits.hpp"
#include "task/running/running.hpp"
#include "task/running/runtime_state.hpp"
#include "troupe/actor/self.hpp"
#include "troupe/database/error.hpp"
#include "troupe/kit/lru_map.hpp"
#include "troupe/runtime/tell_timers.hpp"
#include "troupe/task/call_context.hpp"

namespace troupe::sqlite {
namespace {

using database::error;
using database::failure;

// Which numbers the names of threads have.
struct thread_numbers {
  std::mutex mutex;
  std::set<unsigned> taken;
  static thread_numbers& all() {
    static thread_numbers instance;
    return instance;
  }
};
constexpr std::string_view thread_prefix = "sqlite ";

void give_thread_name_back(const std::string& name) {
  thread_numbers& all = thread_numbers::all();
  std::lock_guard lock(all.mutex);
  all.taken.erase(static_cast<unsigned>(std::stoul(name.substr(thread_prefix.size()))));
}

failure kind_of(int code) noexcept {
  switch (code & 0xff) {
    case SQLITE_CANTOPEN:
      return failure::unreachable;
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return failure::denied;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return failure::busy;
    case SQLITE_FULL:
    case SQLITE_TOOBIG:
      return failure::full;
    case SQLITE_READONLY:
      return failure::read_only;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return failure::corrupted;
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
      return failure::constraint;
    case SQLITE_ERROR:
    case SQLITE_RANGE:
    case SQLITE_SCHEMA:
      return failure::statement;
    default:
      return failure::broken;
  }
}

database::rule rule_of(int code) noexcept {
  switch (code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
      return database::rule::unique;
    case SQLITE_CONSTRAINT_NOTNULL:
      return database::rule::not_null;
    case SQLITE_CONSTRAINT_FOREIGNKEY:
      return database::rule::foreign_key;
    case SQLITE_CONSTRAINT_CHECK:
      return database::rule::check;
    default:
      return database::rule::other;
  }
}

const char* advice_of(failure kind) noexcept {
  switch (kind) {
    case failure::unreachable:
      return "; look whether the folder exists and may be written";
    case failure::busy:
      return "; another connection holds the file: try again, or raise busy_timeout";
    case failure::full:
      return "; make room on the disk, and try again";
    case failure::corrupted:
      return "; restore the file from a backup";
    default:
      return "";
  }
}

struct finalize {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using owned_statement = std::unique_ptr<sqlite3_stmt, finalize>;

// Where the parameters `$1`, `$2`, … are, for SQLite numbers them in the order in which it meets
// them. Empty if that is the same.
std::vector<int> places_of(sqlite3_stmt* statement) {
  const int count = sqlite3_bind_parameter_count(statement);
  std::vector<int> places(static_cast<std::size_t>(count), 0);
  bool same = true;
  for (int at = 1; at <= count; ++at) {
    const char* const name = sqlite3_bind_parameter_name(statement, at);
    if (name == nullptr || *name != '$') return {};
    const std::string_view digits(name + 1);
    int number = 0;
    const auto [end, failed] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failed != std::errc() || end != digits.data() + digits.size()) return {};
    if (number < 1 || number > count)
      throw error(failure::statement, 0,
                  "troupe: sqlite: the statement has the parameter " + std::string(name) +
                      ", and only " + std::to_string(count) + "; number them from $1 on");
    places[static_cast<std::size_t>(number) - 1] = at;
    same = same && number == at;
  }
  return same ? std::vector<int>() : places;
}

const char* name_of(durability stored) noexcept {
  switch (stored) {
    case durability::full:
      return "FULL";
    case durability::normal:
      return "NORMAL";
    default:
      return "OFF";
  }
}

}  // namespace

// The other statements with which a statement may run.
enum class company : std::uint8_t {
  none,  // it may mean something else within a transaction
  queries,
  changes,
};
company company_of(sqlite3_stmt* statement) {
  const std::string_view text = sqlite3_sql(statement);
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const auto begins = [&](std::string_view word) {
    return sqlite3_strnicmp(text.data() + begin, word.data(), static_cast<int>(word.size())) == 0;
  };
  if (sqlite3_stmt_readonly(statement) != 0)
    return begins("SELECT") || begins("WITH") || begins("VALUES") ? company::queries
                                                                  : company::none;
  const bool changes = begins("INSERT") || begins("UPDATE") || begins("DELETE") ||
                       begins("REPLACE") || begins("WITH");
  return changes ? company::changes : company::none;
}

// SQLite's account of a statement while it compiles it.
struct statement_acts {
  bool transaction = false;  // it begins or ends a transaction
  bool change = false;       // it changes rows of a table
  bool pragma = false;
};
int note_act(void* counted, int action, const char*, const char*, const char*,
             const char*) noexcept {
  auto& acts = *static_cast<statement_acts*>(counted);
  acts.transaction = acts.transaction || action == SQLITE_TRANSACTION;
  acts.change =
      acts.change || action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE;
  acts.pragma = acts.pragma || action == SQLITE_PRAGMA;
  return SQLITE_OK;
}

struct kept_statement {
  kept_statement(owned_statement compiled, statement_acts does)
      : handle(std::move(compiled)),
        places(places_of(handle.get())),
        runs_with(company_of(handle.get())),
        acts(does) {}
  owned_statement handle;
  std::vector<int> places;
  company runs_with;
  statement_acts acts;
};

struct session::state {
  state() = default;
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    statements.clear();
    sqlite3_close_v2(db);
  }
  sqlite3* db = nullptr;
  kit::lru_map<std::string, kept_statement> statements;
  statement_acts acts;  // of the statement that is compiled now
};

std::string take_thread_name() {
  thread_numbers& all = thread_numbers::all();
  std::lock_guard lock(all.mutex);
  unsigned number = 1;
  while (all.taken.contains(number)) ++number;
  all.taken.insert(number);
  return std::string(thread_prefix) + std::to_string(number);
}

session::session(std::string path, options chosen, std::string thread,
                 std::shared_ptr<call_waits> waits)
    : path_(std::move(path)),
      options_(chosen),
      thread_(std::move(thread)),
      waits_(std::move(waits)) {}
session::~session() {
  close();
  give_thread_name_back(thread_);
}

void session::close() noexcept { state_.reset(); }

// Whether the limits of the call that runs are over: then its statement is interrupted, and waits
// for no lock. A commit of several calls is not needed once all of them are over.
bool session::is_call_over() const noexcept {
  if (together_ != nullptr)
    return std::ranges::all_of(*together_, [](const waiting_call* call) {
      return call->is_abandoned() || tasks::inside_context(call->within.get()).is_over();
    });
  const tasks::call_context* const within = tasks::current_context();
  return within != nullptr && tasks::is_over(*within);
}
int session::is_call_over(void* self) noexcept {
  return static_cast<const session*>(self)->is_call_over() ? 1 : 0;
}
void session::end_call() const {
  const tasks::call_context* const within = tasks::current_context();
  if (within != nullptr && tasks::is_over(*within))
    std::rethrow_exception(tasks::context_error(*within));
  throw error(failure::broken, SQLITE_INTERRUPT, "troupe: sqlite: the statement was interrupted");
}

// The same pauses as in sqlite3_busy_timeout(), which would not look at the call.
int session::wait_for_lock(int tries) const noexcept {
  using std::chrono::milliseconds;
  constexpr std::array<int, 12> pauses_ms{1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100};
  milliseconds waited{0};
  for (int i = 0; i < tries; ++i)
    waited += milliseconds(pauses_ms[std::min<std::size_t>(static_cast<std::size_t>(i), 11)]);
  const std::chrono::nanoseconds left = options_.busy_timeout - waited;
  if (left.count() <= 0 || is_call_over()) return 0;
  const milliseconds pause(pauses_ms[std::min<std::size_t>(static_cast<std::size_t>(tries), 11)]);
  // sleeps: another process holds the lock of the file, and gives no notice when it lets go
  const std::int64_t began_ns = base::now_ns();
  std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, left));
  waits_->note_lock(std::chrono::nanoseconds(base::now_ns() - began_ns));
  return is_call_over() ? 0 : 1;
}
int session::wait_for_lock(void* self, int tries) noexcept {
  return static_cast<const session*>(self)->wait_for_lock(tries);
}

void session::fail(int code, const char* doing, database::effect done) const {
  // SQLite returns these codes for an interrupted statement, for a wait for a lock that was given
  // up, and for a commit that was refused at its last moment.
  const bool may_be_end = (code & 0xff) == SQLITE_INTERRUPT || (code & 0xff) == SQLITE_BUSY ||
                          code == SQLITE_CONSTRAINT_COMMITHOOK;
  if ((code & 0xff) == SQLITE_INTERRUPT || (may_be_end && is_call_over())) end_call();
  const failure kind = kind_of(code);
  const bool tells =
      state_ != nullptr && state_->db != nullptr && sqlite3_extended_errcode(state_->db) == code;
  const std::string reason = tells ? sqlite3_errmsg(state_->db) : sqlite3_errstr(code);
  throw error(
      kind, code,
      "troupe: sqlite: " + std::string(doing) + " (" + path_ + "): " + reason + advice_of(kind),
      rule_of(code), done);
}

void session::open() {
  if (state_ != nullptr) return;
  state_ = std::make_unique<state>();
  int flags = options_.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (options_.create && !options_.read_only) flags |= SQLITE_OPEN_CREATE;
  flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  try {
    const int code = sqlite3_open_v2(path_.c_str(), &state_->db, flags, nullptr);
    if (code != SQLITE_OK) fail(code, "the file cannot be opened");
    set_up();
  } catch (...) {
    close();
    throw;
  }
}

void session::set_up() {
  constexpr int steps_between_looks = 4096;
  sqlite3_progress_handler(state_->db, steps_between_looks, &is_call_over, this);
  sqlite3_busy_handler(state_->db, &wait_for_lock, this);
  // A caller whose call has ended with an error finds nothing stored later.
  sqlite3_commit_hook(state_->db, &is_call_over, this);
  sqlite3_set_authorizer(state_->db, &note_act, &state_->acts);
  std::string text = "PRAGMA foreign_keys=ON;PRAGMA synchronous=";
  text += name_of(options_.stored);
  if (options_.write_ahead_log && !options_.read_only) text += ";PRAGMA journal_mode=WAL";
  const int code = sqlite3_exec(state_->db, text.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code, "the file cannot be set up");
}

namespace {

void check_text(const std::string& text) {
  if (text.find('\0') != std::string::npos)
    throw error(failure::statement, 0,
                "troupe: sqlite: the text of the statement has a zero byte, at which it would be "
                "cut; give such values as parameters");
}

}  // namespace

const kept_statement& session::prepared(const std::string& text) {
  open();
  if (const kept_statement* const kept = state_->statements.use(text)) return *kept;
  check_text(text);
  state_->acts = {};
  sqlite3_stmt* prepared = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v3(state_->db, text.c_str(), static_cast<int>(text.size() + 1),
                                      SQLITE_PREPARE_PERSISTENT, &prepared, &rest);
  owned_statement statement(prepared);
  if (code != SQLITE_OK) fail(code, "the statement is refused");
  if (prepared == nullptr ||
      std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string::npos)
    throw error(failure::statement, 0,
                "troupe: sqlite: a call takes one statement; run_script takes several");
  if (state_->statements.size() == options_.statements_max) {
    const std::string oldest = *state_->statements.oldest();
    state_->statements.erase(oldest);
  }
  kept_statement kept(std::move(statement), state_->acts);
  return state_->statements.emplace(text, std::move(kept));
}

waiting_call::~waiting_call() = default;

namespace {

void run_counted(waiting_call& call, session& on) noexcept {
  const std::int64_t began_ns = database::statement_begins();
  call.run(on);
  database::statement_ends("sqlite", call.text, began_ns, call.failed != nullptr);
}

}  // namespace

// ---- the faults of a search ----

namespace {

sched::fault fault_at(sched::fault_point where) {
  const tasks::runtime_state* const simulated = tasks::simulation_here();
  if (simulated == nullptr) return sched::fault::none;
  return simulated->runtime.storage_fault(where, nullptr);
}

// A file has no connection: where one would end, the disk fails as well.
bool is_failure(sched::fault wrong) noexcept {
  return wrong == sched::fault::storage_fails || wrong == sched::fault::storage_cut;
}

// The virtual time for which a call waits before it begins.
std::chrono::nanoseconds delay_of(sched::fault wrong) noexcept {
  if (wrong == sched::fault::storage_slow) return std::chrono::nanoseconds(sched::fault_delay_ns);
  if (wrong == sched::fault::storage_stalls) return std::chrono::nanoseconds(sched::stall_ns);
  return {};
}

error disk_error(database::effect done) {
  return {failure::broken, SQLITE_IOERR, "troupe: sqlite: the disk failed, as the search says",
          database::rule::other, done};
}

}  // namespace

void session::enqueue(std::unique_ptr<waiting_call> call) {
  const sched::fault wrong = fault_at(sched::fault_point::storage);
  if (is_failure(wrong) || wrong == sched::fault::storage_stalls)
    call->failed = std::make_exception_ptr(disk_error(database::effect::none));
  waiting_.push_back(std::move(call));
  if (waiting_.size() != 1) return;
  if (const std::chrono::nanoseconds delay = delay_of(wrong); delay.count() != 0) {
    self(this).tell_after<&session::run_waiting>(delay);
  } else {
    self(this).tell([](session& self) { self.run_waiting(); });
  }
}

// Callers that wait at the same time cannot observe in which order they are served.
void session::run_waiting() {
  const auto all = std::exchange(waiting_, {});
  std::vector<waiting_call*> queries, changes;
  for (const auto& call : all) {
    if (call->is_abandoned()) continue;
    company runs_with = company::none;
    try {
      runs_with = prepared(call->text).runs_with;
    } catch (...) {
      call->failed = std::current_exception();
    }
    // Not in the handler: the exception is the caller's alone once it has the answer.
    if (call->failed != nullptr) {
      call->answer();
      continue;
    }
    if (runs_with != company::none) {
      (runs_with == company::queries ? queries : changes).push_back(call.get());
      continue;
    }
    run_alone(*call);
    call->answer();
  }
  run_queries(queries);
  run_changes(changes);
}

void session::run_alone(waiting_call& call) noexcept {
  run_counted(call, *this);
  try {
    check_no_transaction();
  } catch (...) {
    call.failed = std::current_exception();
  }
}

// In one transaction they take the lock of the file once. Answers are given several at a time: a
// single one would wake a worker that has nothing to do a moment later. Not all at the end, for
// each may be large.
void session::run_queries(std::vector<waiting_call*>& calls) {
  constexpr std::size_t answers_together = 16;
  const bool together =
      calls.size() > 1 && sqlite3_exec(state_->db, "BEGIN", nullptr, nullptr, nullptr) == SQLITE_OK;
  for (std::size_t at = 0, answered = 0; at < calls.size(); ++at) {
    run_counted(*calls[at], *this);
    if (at + 1 - answered < answers_together && at + 1 < calls.size()) continue;
    for (; answered <= at; ++answered) calls[answered]->answer();
  }
  if (together) roll_back();
}

void session::run_changes(std::vector<waiting_call*>& calls) {
  if (calls.size() > 1 && run_as_one(calls)) {
    for (waiting_call* const call : calls) call->answer();
    return;
  }
  for (waiting_call* const call : calls) {
    if (call->failed == nullptr) run_alone(*call);
    call->answer();
  }
}

// Returns false if nothing is stored. Then those that have failed are the ones that are not to be
// run again.
bool session::run_as_one(std::vector<waiting_call*>& calls) {
  together_ = &calls;
  try {
    begin();
    together_ = nullptr;
  } catch (...) {
    // Each call that is over reports this itself.
    const bool are_over = is_call_over();
    together_ = nullptr;
    for (waiting_call* const call : calls)
      call->failed = are_over ? nullptr : std::current_exception();
    return false;
  }
  for (waiting_call* const call : calls) {
    run_counted(*call, *this);
    if (scopes_.is_open() && scopes_.note(transaction())) continue;
    // This one has ended the transaction, as an interrupt and some failures do.
    roll_back();
    for (waiting_call* const other : calls) {
      if (other != call) other->failed = nullptr;
    }
    return false;
  }
  try {
    commit();
  } catch (const error& failed) {
    // Changes that may be stored are not tried again; else each call gets its own reason.
    const bool is_unknown = failed.effect() == database::effect::unknown;
    for (waiting_call* const call : calls)
      call->failed = is_unknown ? std::current_exception() : nullptr;
    return is_unknown;
  } catch (...) {
    // Each gets its own reason.
    for (waiting_call* const call : calls) call->failed = nullptr;
    return false;
  }
  return true;
}

// A script that fails may have stored the effects of the statements before the failed one.
void session::run_script(const std::string& text) {
  open();
  check_text(text);
  const char* rest = text.c_str();
  const char* const end = rest + text.size();
  database::effect done = database::effect::none;
  while (rest != end) {
    state_->acts = {};
    sqlite3_stmt* compiled = nullptr;
    const int refused =
        sqlite3_prepare_v2(state_->db, rest, static_cast<int>(end - rest), &compiled, &rest);
    const owned_statement part(compiled);
    if (refused != SQLITE_OK) fail(refused, "the script is refused", done);
    if (compiled == nullptr) continue;  // spaces and comments
    before_statement(state_->acts.transaction);
    const std::int64_t before = sqlite3_total_changes64(state_->db);
    int code = SQLITE_ROW;
    while (code == SQLITE_ROW) code = sqlite3_step(compiled);
    if (code != SQLITE_DONE) {
      scopes_.note(transaction());
      if (sqlite3_total_changes64(state_->db) != before) done = database::effect::unknown;
      fail(code, "the script is refused", done);
    }
    after_statement();
    if (sqlite3_stmt_readonly(compiled) == 0) done = database::effect::unknown;
  }
}

all_or_nothing::all_or_nothing(session& on) : session_(on), within_(on.has_scope()) {
  if (within_) session_.run_script("SAVEPOINT troupe_many");
  if (!within_) session_.begin();
}
all_or_nothing::~all_or_nothing() {
  if (kept_) return;
  within_ ? session_.undo_part() : session_.roll_back();
}
void all_or_nothing::keep() {
  within_ ? session_.run_script("RELEASE troupe_many") : session_.commit();
  kept_ = true;
}

void refuse_row(std::size_t row, std::size_t rows) {
  try {
    throw;
  } catch (const error& failed) {
    throw error(failed.kind(), failed.code(),
                std::string(failed.what()) + " (row " + std::to_string(row) + " of " +
                    std::to_string(rows) + ")",
                failed.broken_rule(), failed.effect());
  }
}

database::transaction_state session::transaction() const noexcept {
  using database::transaction_state;
  const bool is_open = state_ != nullptr && sqlite3_get_autocommit(state_->db) == 0;
  return is_open ? transaction_state::open : transaction_state::none;
}

std::uint64_t session::begin(transaction_access access) {
  open();
  roll_back();
  before_statement(false);
  const char* const text = access == transaction_access::write ? "BEGIN IMMEDIATE" : "BEGIN";
  const int code = sqlite3_exec(state_->db, text, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code, "the transaction cannot begin");
  return scopes_.open();
}

void session::commit() {
  open();
  try {
    scopes_.check_current(transaction());
    before_statement(false);
    const int code = sqlite3_exec(state_->db, "COMMIT", nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) fail(code, "the transaction cannot be stored");
    if (fault_at(sched::fault_point::commit) != sched::fault::none)
      throw disk_error(database::effect::unknown);
  } catch (...) {
    roll_back();
    throw;
  }
  scopes_.commit();
}

void session::roll_back() noexcept {
  scopes_.close();
  if (!is_in_transaction()) return;
  // A handle on which not even this works is opened anew.
  if (sqlite3_exec(state_->db, "ROLLBACK", nullptr, nullptr, nullptr) != SQLITE_OK) close();
}

// A failure may have ended the whole transaction.
void session::undo_part() noexcept {
  if (!is_in_transaction()) return;
  if (sqlite3_exec(state_->db, "ROLLBACK TO troupe_many; RELEASE troupe_many", nullptr, nullptr,
                   nullptr) != SQLITE_OK)
    roll_back();
}

bool session::has_scope() const noexcept { return scopes_.is_open() || is_in_transaction(); }

void session::check_scope(std::uint64_t scope) {
  if (scope == 0) return;
  scopes_.check(scope, transaction());
  if (is_failure(fault_at(sched::fault_point::storage))) throw disk_error(database::effect::none);
}

void session::check_no_transaction() {
  if (!is_in_transaction()) return;
  roll_back();
  throw error(failure::statement, 0,
              "troupe: sqlite: a statement began a transaction, which was rolled back; use "
              "in_transaction");
}

void session::before_statement(bool begins_or_ends_transaction) {
  scopes_.check_current(transaction());
  if (is_call_over()) end_call();
  if (begins_or_ends_transaction && scopes_.is_open())
    throw error(failure::statement, 0,
                "troupe: sqlite: within a transaction no statement may begin or end one; let the "
                "body of in_transaction end, or use savepoints");
}
void session::after_statement() {
  if (!scopes_.note(transaction())) database::transaction_scopes::refuse();
}

changes session::changes_of(const statement& done) const noexcept {
  // For a statement that changes nothing SQLite reports the number of the statement before.
  if (sqlite3_stmt_readonly(done.handle_) != 0) return {0, sqlite3_last_insert_rowid(state_->db)};
  return {sqlite3_changes64(state_->db), sqlite3_last_insert_rowid(state_->db)};
}

void session::refuse_second_row() {
  throw error(failure::too_many_rows, 0,
              "troupe: query_one: the statement gives several rows; add LIMIT 1, or use query");
}
void session::refuse_rows() const {
  throw error(failure::too_many_rows, 0,
              "troupe: sqlite: the answer has more than " + std::to_string(options_.rows_max) +
                  " rows; limit the statement, or raise rows_max");
}

statement::statement(session& on, const std::string& text) : statement(on, on.prepared(text)) {}
statement::statement(session& on, const kept_statement& kept)
    : session_(on), kept_(kept), handle_(kept.handle.get()) {}
statement::~statement() {
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
}

void statement::fail(int code) const { session_.fail(code, "the statement failed"); }
void statement::check(int code) const {
  if (code != SQLITE_OK) fail(code);
}

void statement::check_parameters(std::size_t given) const {
  const int needed = sqlite3_bind_parameter_count(handle_);
  if (std::cmp_equal(needed, given)) return;
  throw error(failure::statement, 0,
              "troupe: sqlite: the statement has " + std::to_string(needed) +
                  " parameters, and was given " + std::to_string(given));
}

int statement::place_of(int number) const noexcept {
  const std::vector<int>& places = kept_.places;
  return places.empty() ? number : places[static_cast<std::size_t>(number) - 1];
}
void statement::bind_null(int number) { check(sqlite3_bind_null(handle_, place_of(number))); }
void statement::bind_integer(int number, std::int64_t value) {
  check(sqlite3_bind_int64(handle_, place_of(number), value));
}
void statement::bind_real(int number, double value) {
  if (value != value)  // SQLite would store NULL
    throw error(failure::conversion, 0,
                "troupe: sqlite: parameter " + std::to_string(number) +
                    " is not a number, which SQLite cannot store; give it a std::optional");
  check(sqlite3_bind_double(handle_, place_of(number), value));
}
void statement::bind_text(int number, std::string_view text) {
  check(sqlite3_bind_text64(handle_, place_of(number), text.data(), text.size(), SQLITE_STATIC,
                            SQLITE_UTF8));
}
void statement::bind_bytes(int number, std::span<const std::byte> bytes) {
  // A null pointer would be NULL.
  const void* const data = bytes.empty() ? static_cast<const void*>("") : bytes.data();
  check(sqlite3_bind_blob64(handle_, place_of(number), data, bytes.size(), SQLITE_STATIC));
}

bool statement::returns_changes() const noexcept {
  return kept_.acts.change && !kept_.acts.pragma && columns() > 0 &&
         sqlite3_stmt_readonly(handle_) == 0;
}

bool statement::step() {
  sqlite3* const db = sqlite3_db_handle(handle_);
  if (!is_running_) {
    session_.before_statement(kept_.acts.transaction);
    changes_before_ = sqlite3_total_changes64(db);
  }
  is_running_ = true;
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  is_running_ = false;
  if (code == SQLITE_DONE) {
    session_.after_statement();
    return false;
  }
  session_.scopes_.note(session_.transaction());
  // Rows before the row of ON CONFLICT FAIL, or of RAISE(FAIL), are kept.
  const bool has_changed = sqlite3_total_changes64(db) != changes_before_;
  session_.fail(code, "the statement failed",
                has_changed ? database::effect::unknown : database::effect::none);
}

void statement::run() {
  while (step()) {
  }
  reset();
}
void statement::reset() noexcept {
  is_running_ = false;
  sqlite3_reset(handle_);
}

int statement::columns() const noexcept { return sqlite3_column_count(handle_); }
std::string_view statement::name(int column) const {
  const char* const name = sqlite3_column_name(handle_, column);
  if (name == nullptr) throw std::bad_alloc();
  return name;
}
bool statement::is_null(int column) const noexcept {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}

void statement::refuse_kind(int column, const char* needed) const {
  constexpr const char* kinds[] = {"", "an integer", "a number", "a text", "bytes", "NULL"};
  const int kind = sqlite3_column_type(handle_, column);
  throw error(failure::conversion, 0,
              "troupe: the column `" + std::string(name(column)) + "` is " + kinds[kind] + "; " +
                  needed + " is needed");
}
std::int64_t statement::integer(int column) const {
  if (sqlite3_column_type(handle_, column) != SQLITE_INTEGER) refuse_kind(column, "an integer");
  return sqlite3_column_int64(handle_, column);
}
double statement::real(int column) const {
  const int kind = sqlite3_column_type(handle_, column);
  if (kind != SQLITE_FLOAT && kind != SQLITE_INTEGER) refuse_kind(column, "a number");
  if (kind == SQLITE_FLOAT) return sqlite3_column_double(handle_, column);
  const auto number = database::parts::as_real<double>(integer(column));
  if (!number) database::parts::refuse_number(name(column));
  return *number;
}
std::string_view statement::text(int column) const {
  if (sqlite3_column_type(handle_, column) != SQLITE_TEXT) refuse_kind(column, "a text");
  const unsigned char* const text = sqlite3_column_text(handle_, column);
  if (text == nullptr) throw std::bad_alloc();
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column));
  return {reinterpret_cast<const char*>(text), size};
}
std::span<const std::byte> statement::bytes(int column) const {
  if (sqlite3_column_type(handle_, column) != SQLITE_BLOB) refuse_kind(column, "bytes");
  const void* const data = sqlite3_column_blob(handle_, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column));
  return {static_cast<const std::byte*>(data), size};
}

}  // namespace troupe::sqlite
