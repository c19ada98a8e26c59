// in_postgres: the storage of a store in PostgreSQL, and the code that it shares with a node's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "database/integers.hpp"
#include "troupe/database/error.hpp"
#include "troupe/durable/message_id.hpp"
#include "troupe/durable/storage.hpp"
#include "troupe/postgres/connection.hpp"

namespace troupe::durable {

using database::as_integer;
using database::as_number;

// A statement that reads has changed nothing, even if its answer was lost.
template <class T>
task<T> reading(task<T> call) {
  try {
    co_return co_await std::move(call);
  } catch (const database::error& failed) {
    if (failed.effect() == database::effect::none) throw;
    throw database::error(failed.kind(), failed.code(), failed.what(), failed.broken_rule());
  }
}

// Makes the tables when they are not there, as the tables of a store without a cluster. Until the
// transaction ends no other process makes, upgrades or opens them.
task<> make_tables(postgres::transaction& within);
task<std::int64_t> read_meta(postgres::transaction& within, const char* name);
task<std::vector<class_shape>> read_classes(postgres::transaction& within);
[[noreturn]] void refuse_missing_row();

// The columns of the tables of messages and of reminders, in their order; the last one is the
// shard.
using message_row = std::tuple<std::int64_t, bytes, int, int, std::string, std::string, bytes,
                               std::string, std::int64_t, bytes, std::uint32_t, std::uint32_t>;
using reminder_row = std::tuple<std::string, std::string, std::string, std::int64_t, std::string,
                                std::string, std::int64_t, bytes, std::uint32_t>;
stored_message message_of(message_row row);
stored_reminder reminder_of(reminder_row row);

// Statements of a transaction travel together: a commit takes three round trips. Reads have a
// connection of their own, for a transaction has its connection to itself. Each read is one
// statement, and sees no half of a batch.
class in_postgres : public storage {
 public:
  in_postgres(runtime& on, const std::string& target, const postgres::options& chosen)
      : writes_(on, target, chosen), reads_(on, target, chosen) {}

  std::string name() const override { return "the PostgreSQL database"; }
  void check_name(std::string_view kind, std::string_view key) const override;
  task<opened_storage> open() override;
  task<> keep_classes(std::vector<class_shape> added) override;
  task<std::optional<stored_state>> load(actor_name actor) override;
  task<std::vector<std::string>> keys(std::string kind, key_range range) override;
  task<std::vector<stored_message>> inbox(std::uint64_t after, std::size_t most) override;
  task<found_message> find(message_id id) override;
  task<std::vector<stored_reminder>> reminders(std::size_t most) override;
  task<> commit(std::shared_ptr<const batch> all) override;
  task<std::uint64_t> last_batch() override;

 private:
  task<std::vector<std::string>> stored_keys(std::string kind, std::string from, bool is_behind,
                                             std::size_t most);

 protected:
  static std::int64_t new_owner() { return as_integer(message_id::random().low >> 1); }

  const postgres::connection writes_, reads_;
  std::int64_t owner_ = 0;
};

}  // namespace troupe::durable
