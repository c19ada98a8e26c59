#include "troupe/sqlite/connection.hpp"

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

ref<session> spawn_session(runtime& on, std::string path, const options& chosen) {
  check(chosen);
  const std::string thread = take_thread_name();
  return on.spawn<session>(pinned(thread), std::move(path), chosen, thread);
}

}  // namespace

connection::connection(runtime& on, std::string path, options chosen)
    : calls(std::make_shared<parts::shared>(spawn_session(on, std::move(path), chosen)), false) {}

namespace parts {

void refuse_second_row() {
  throw database::error(database::failure::too_many_rows, 0,
                        "troupe: query_one: the statement gives several rows; limit it to one, or "
                        "use query");
}

// The calls of the transaction that are still under way come first.
open_transaction::~open_transaction() {
  if (!to_) return;
  try {
    to_.tell([](session& of) { of.roll_back(); });
  } catch (...) {
    // Without memory for a message the transaction stays open: the next one finds it, and rolls it
    // back.
  }
}

}  // namespace parts
}  // namespace troupe::sqlite
