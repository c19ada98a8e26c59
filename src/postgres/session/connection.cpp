#include "troupe/postgres/connection.hpp"

#include <atomic>
#include <cstdint>

#include "troupe/base/error.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::postgres {
namespace {

options checked(const options& chosen) {
  if (chosen.connect_timeout.count() <= 0)
    throw option_error("troupe: postgres: connect_timeout must be more than 0");
  if (chosen.answer_timeout.count() < 0)
    throw option_error("troupe: postgres: answer_timeout must be 0 or more");
  if (chosen.cancel_timeout.count() <= 0)
    throw option_error("troupe: postgres: cancel_timeout must be more than 0");
  if (chosen.in_flight_max == 0)
    throw option_error("troupe: postgres: in_flight_max must be 1 or more");
  if (chosen.statements_max == 0)
    throw option_error("troupe: postgres: statements_max must be 1 or more");
  if (chosen.rows_max == 0) throw option_error("troupe: postgres: rows_max must be 1 or more");
  if (chosen.bytes_max == 0) throw option_error("troupe: postgres: bytes_max must be 1 or more");
  return chosen;
}

}  // namespace

connection::connection(runtime& on, std::string target, const options& chosen)
    : calls(std::make_shared<parts::shared>(on.spawn<session>(std::move(target), checked(chosen)),
                                            chosen),
            0) {}

task<connection> connect(std::string target, options chosen) {
  connection opened(
      std::make_shared<parts::shared>(spawn<session>(std::move(target), checked(chosen)), chosen));
  task<> opens = opened.run_script("");
  co_await std::move(opens);
  co_return opened;
}

task<listener> connection::listen(std::string_view name) const {
  return start_listening(state(), std::string(name));
}

task<listener> connection::start_listening(std::shared_ptr<parts::shared> on, std::string name) {
  // The server would cut a longer one, and even cut it in its notifications.
  constexpr std::size_t name_bytes_max = 63, kept_max = 1'024;
  if (name.empty() || name.size() > name_bytes_max || name.find('\0') != std::string::npos)
    throw database::error(database::failure::statement, 0,
                          "troupe: postgres: the name of a channel has from 1 to 63 bytes");
  std::string text = "LISTEN \"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  auto waits = on->calls.lock_shared();
  const auto held = co_await std::move(waits);
  auto query = std::make_unique<request>(request_kind::plain, text + '"');
  listener started(on->session_ref, channel<notification>::bounded(kept_max));
  parts::open_request open(on->session_ref);
  future<answer> later = query->asker.get_future();
  on->session_ref.tell([name, reader = started.from_, query = std::move(query)](
                           session& self) mutable { self.listen(name, reader, std::move(query)); });
  static_cast<void>(co_await std::move(later));
  open.end();
  co_return started;
}

namespace parts {

open_request::~open_request() {
  if (!session_) return;
  try {
    session_.tell([number = copy_number_](session& self) { self.drop_abandoned(number); });
  } catch (...) {
    // Without memory for a message the statement runs to its end, and its answer is dropped.
  }
}

open_transaction::~open_transaction() {
  if (!session_) return;
  try {
    session_.tell([](session& self) { self.roll_back(); });
  } catch (...) {
    // Without memory for a message the transaction stays open, until its connection is closed.
  }
}

future<answer> submit(const ref<session>& on, std::unique_ptr<request> query) {
  future<answer> later = query->asker.get_future();
  on.tell([query = std::move(query)](session& self) mutable { self.submit(std::move(query)); });
  return later;
}

std::unique_ptr<request> make_begin(isolation apart) {
  const char* text = "BEGIN";
  if (apart == isolation::repeatable_read) text = "BEGIN ISOLATION LEVEL REPEATABLE READ";
  if (apart == isolation::serializable) text = "BEGIN ISOLATION LEVEL SERIALIZABLE";
  return std::make_unique<request>(request_kind::begin, text);
}

void check_committed(const answer& result) {
  if (result.command() != "ROLLBACK") return;
  throw database::error(database::failure::transaction_ended, 0,
                        "troupe: postgres: the transaction was rolled back, for a statement of it "
                        "has failed before; let the exception leave the body");
}

void refuse_answer() {
  try {
    throw;
  } catch (const database::error& failed) {
    if (failed.kind() == database::failure::transaction_ended) throw;
    throw database::error(failed.kind(), failed.code(), failed.what(), failed.broken_rule(),
                          database::effect::unknown);
  }
}

task<changes> calls::nothing_to_do() { co_return changes{}; }

task<> calls::run_script(std::string_view text) const {
  return run(shared_, scope_, {},
             std::make_unique<request>(request_kind::script, std::string(text)), [](answer&) {});
}

task<copy_writer> calls::copy_in(std::string_view text) const {
  return open_copy<copy_writer>(shared_, scope_, request_kind::copy_in, std::string(text));
}
task<copy_reader> calls::copy_out(std::string_view text) const {
  return open_copy<copy_reader>(shared_, scope_, request_kind::copy_out, std::string(text));
}

namespace {

std::uint64_t next_copy_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  // order: relaxed  each is another number
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

template <class Copy>
task<Copy> calls::open_copy(std::shared_ptr<shared> on, std::uint64_t scope, request_kind does,
                            std::string text) {
  std::optional<shared_mutex::guard> held;
  if (scope == 0) {
    auto waits = on->calls.lock();
    held.emplace(co_await std::move(waits));
  }
  auto query = std::make_unique<request>(does, std::move(text));
  query->scope = scope;
  query->copy_number = next_copy_number();
  open_request open(on->session_ref, query->copy_number);
  future<answer> later = submit(on->session_ref, std::move(query));
  const answer begun = co_await std::move(later);
  if (!begun.begins_copy())
    throw database::error(database::failure::statement, 0,
                          "troupe: postgres: copy_in takes a COPY ... FROM STDIN, and copy_out a "
                          "COPY ... TO STDOUT");
  Copy opened(std::move(on), std::move(held));
  open.end();
  co_return opened;
}

}  // namespace parts
}  // namespace troupe::postgres
