#include "troupe/sqlite/connection.hpp"

#include "base/text/zero_byte.hpp"
#include "sqlite/call_waits.hpp"
#include "troupe/database/error.hpp"

namespace troupe::sqlite {
namespace {

void check(const options& chosen) {
  if (chosen.busy_timeout.count() < 0)
    throw option_error("troupe: sqlite: busy_timeout must be 0 or more");
  if (chosen.statements_max == 0)
    throw option_error("troupe: sqlite: statements_max must be 1 or more");
  if (chosen.rows_max == 0) throw option_error("troupe: sqlite: rows_max must be 1 or more");
}
void check(const std::string& path) {
  if (path.empty())
    throw option_error(
        "troupe: sqlite: the path is empty, which SQLite takes for a temporary file; name a file, "
        "or \":memory:\"");
  base::refuse_zero_byte(path, "sqlite", "the path");
}

std::shared_ptr<parts::shared> open_session(runtime& on, std::string path, const options& chosen) {
  check(chosen);
  check(path);
  auto waits = std::make_shared<call_waits>(path);
  const std::string thread = take_thread_name();
  auto session_ref = on.spawn<session>(pinned(thread), std::move(path), chosen, thread, waits);
  return std::make_shared<parts::shared>(std::move(session_ref), std::move(waits));
}

}  // namespace

connection::connection(runtime& on, std::string path, options chosen)
    : calls(open_session(on, std::move(path), chosen), 0) {}

namespace parts {

// The calls of the transaction that are still under way come first.
open_transaction::~open_transaction() {
  if (!session_) return;
  try {
    session_.tell([](session& self) { self.roll_back(); });
  } catch (...) {
    // Without memory for a message the transaction stays open: the next one finds it, and rolls it
    // back.
  }
}

}  // namespace parts
}  // namespace troupe::sqlite
