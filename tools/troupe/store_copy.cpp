// Copies of stores of durable actors: all rows as lines of JSON, the same whatever the database.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store.hpp"
#include "store_place.hpp"
#include "troupe/durable/sqlite_storage.hpp"
#include "trust/visible.hpp"

#if TROUPE_TOOL_POSTGRES
#include "troupe/durable_postgres/postgres_storage.hpp"
#endif

namespace troupe_tool {
namespace {

using ordered = nlohmann::ordered_json;
using bytes = std::vector<std::byte>;
using troupe::task;

// The first line of a copy has its version, and the last one the number of rows: so a copy that was
// cut off is not taken for a whole one. Copies of version 1 have no last line.
constexpr const char* first_word = "troupe store";
constexpr const char* last_word = "end";
constexpr std::int64_t version = 2;

// The columns of a table: `b` are bytes, `i` whole numbers, `t` texts.
struct copied_table {
  const char* name;
  const char* columns;
  std::string_view types;
  const char* key;  // the rows come in this order
};
constexpr copied_table copied[] = {
    {"durable_classes", "kind,\"schema\",fingerprint,shape", "tiit", "kind,\"schema\""},
    {"durable_state", "kind,key,\"schema\",fingerprint,number,value", "ttiiib", "kind,key"},
    {"durable_events", "kind,key,number,value", "ttib", "kind,key,number"},
    {"durable_inbox", "number,id,named,origin,kind,key,asker,method,signature,arguments,failures",
     "ibiittbtibi", "number"},
    {"durable_answers", "id,asker,at,failed,error_type,value", "bbiitb", "id"},
    {"durable_dead",
     "number,id,named,origin,kind,key,asker,method,signature,arguments,failures,error_type,error,"
     "at",
     "ibiittbtibitti", "number"},
    {"durable_reminders", "kind,key,name,due,rule,method,signature,arguments", "tttittib",
     "kind,key,name"},
    // A store that was opened last by an earlier version does not have it, nor does its export.
    {"durable_calls", "id,method,arguments,at", "btii", "id"},
};

task<bool> has_table(troupe::sqlite::parts::calls& database, std::string name) {
  auto asks =
      database.query_one<std::int64_t>("SELECT count(*) FROM sqlite_master WHERE name = $1", name);
  co_return (co_await std::move(asks)).value_or(0) != 0;
}
#if TROUPE_TOOL_POSTGRES
task<bool> has_table(troupe::postgres::parts::calls& database, std::string name) {
  auto asks = database.query_one<bool>("SELECT to_regclass($1::text) IS NOT NULL", name);
  co_return (co_await std::move(asks)).value_or(false);
}
#endif

// How a database writes bytes and texts as hexadecimal digits.
struct digits {
  const char* before_bytes;
  const char* after_bytes;
  const char* before_text;
  const char* after_text;
};
constexpr digits of_sqlite{"hex(", ")", "hex(", ")"};

// Each row is one text: whole numbers, and digits of bytes and texts, with spaces in between. So
// the database changes nothing of what is in them.
std::string select_of(const copied_table& table, const digits& how) {
  std::string text = "SELECT ";
  std::string_view rest = table.columns;
  for (const char& type : table.types) {
    const std::string column(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), column.size() + 1));
    if (&type != table.types.data()) text += " || ' ' || ";
    if (type == 'b') text += how.before_bytes + column + how.after_bytes;
    if (type == 't') text += how.before_text + column + how.after_text;
    if (type == 'i') text += "CAST(" + column + " AS text)";
  }
  return text + " FROM " + table.name + " ORDER BY " + table.key;
}

std::string bytes_of(std::string_view hex) {
  if (hex.size() % 2 != 0) throw failure("an odd number of hexadecimal digits");
  std::string bytes;
  for (std::size_t at = 0; at < hex.size(); at += 2) {
    unsigned value = 0;
    const auto [end, bad] = std::from_chars(hex.data() + at, hex.data() + at + 2, value, 16);
    if (bad != std::errc() || end != hex.data() + at + 2)
      throw failure("these are no hexadecimal digits: " + std::string(hex.substr(at, 2)));
    bytes += static_cast<char>(value);
  }
  return bytes;
}

// `plain_text` gives the text that the database has kept.
template <class Plain>
std::string line_of(const copied_table& table, std::string_view row, Plain plain_text) {
  ordered fields = ordered::array({table.name});
  for (const char type : table.types) {
    const std::string_view word = row.substr(0, row.find(' '));
    row.remove_prefix(std::min(row.size(), word.size() + 1));
    if (type == 'b') fields.push_back(word);
    if (type == 't') fields.push_back(text_value(plain_text(bytes_of(word))));
    if (type == 'i') {
      std::int64_t number = 0;
      std::from_chars(word.data(), word.data() + word.size(), number);
      fields.push_back(number);
    }
  }
  return fields.dump(-1, ' ', true);  // pure ASCII: it may go to a terminal
}

// Lines to standard output.
class lines_out {
 public:
  lines_out() { write(ordered::array({first_word, version}).dump()); }
  void row(const std::string& line) {
    write(line);
    ++rows_;
  }
  void end() {
    write(ordered::array({last_word, rows_}).dump());
    end_output();
  }

 private:
  static void write(const std::string& line) {
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() ||
        std::fputc('\n', stdout) == EOF)
      end_output();
  }
  std::int64_t rows_ = 0;
};

// ---- import ----

struct copied_row {
  const copied_table* table;
  ordered values;  // without the table's name; bytes are digits, texts are plain
};

class copy_reader {
 public:
  explicit copy_reader(const std::string& path) : from_(path) {
    if (!from_) throw failure("the file " + path + " cannot be read");
  }
  std::size_t line() const noexcept { return line_; }

  // Throws failure, which names the line, if it is no row of a table, and at the end if rows are
  // missing.
  std::optional<copied_row> next() {
    std::string text;
    while (std::getline(from_, text)) {
      ++line_;
      try {
        if (ended_) throw failure("it stands behind the last line");
        ordered row = ordered::parse(text);
        if (line_ == 1) {
          read_first(row);
        } else if (version_ > 1 && row.at(0) == last_word) {
          read_last(row);
        } else {
          ++rows_;
          return read(std::move(row));
        }
      } catch (const std::exception& wrong) {
        throw failure(fmt::format("line {}: {}", line_, wrong.what()));
      }
    }
    if (line_ == 0) throw failure("the file is empty; an export has a first line");
    if (version_ > 1 && !ended_)
      throw failure(fmt::format("the export was cut off behind line {}; export again", line_));
    return std::nullopt;
  }

 private:
  void read_first(const ordered& row) {
    if (!row.is_array() || row.size() != 2 || row[0] != first_word)
      throw failure("it is no export of a store");
    version_ = row[1].get<std::int64_t>();
    if (version_ < 1 || version_ > version)
      throw failure(fmt::format("the export has version {}, and this troupe reads up to {}",
                                version_, version));
  }
  void read_last(const ordered& row) {
    ended_ = true;
    if (row.at(1) != rows_)
      throw failure(
          fmt::format("the export had {} rows, and here are {}", row.at(1).dump(), rows_));
  }
  static copied_row read(ordered row) {
    const auto name = row.at(0).get<std::string>();
    copied_row taken{nullptr, ordered::array()};
    for (const copied_table& table : copied) {
      if (name == table.name) taken.table = &table;
    }
    if (taken.table == nullptr) throw failure("there is no table " + name);
    const std::string_view types = taken.table->types;
    if (row.size() != types.size() + 1)
      throw failure(
          fmt::format("a row of {} has {} columns, not {}", name, row.size() - 1, types.size()));
    for (std::size_t i = 0; i < types.size(); ++i)
      taken.values.push_back(read(types[i], row[i + 1]));
    return taken;
  }
  static ordered read(char type, const ordered& value) {
    if (type == 'i') return value.get<std::int64_t>();
    if (type == 't' && value.is_object()) {
      // Not as a JSON text, which is UTF-8.
      return ordered::binary(binary_of(bytes_of(value.at("hex").get<std::string>())));
    }
    const auto text = value.get<std::string>();
    if (type == 'b') static_cast<void>(bytes_of(text));
    return text;
  }
  static std::vector<std::uint8_t> binary_of(const std::string& text) {
    return {text.begin(), text.end()};
  }

  std::ifstream from_;
  std::size_t line_ = 0;
  std::int64_t version_ = 0, rows_ = 0;
  bool ended_ = false;
};

std::string text_of(const ordered& value) {
  if (!value.is_binary()) return value.get<std::string>();
  return {value.get_binary().begin(), value.get_binary().end()};
}

// Throws failure for a row whose names the target would refuse when a program uses them.
void check_names(const copied_row& row, const troupe::durable::storage& target) {
  std::string kind, key;
  std::string_view rest = row.table->columns;
  bool has_key = false;
  const bool is_reminder = std::string_view(row.table->name) == "durable_reminders";
  for (const ordered& value : row.values) {
    const std::string_view column = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), column.size() + 1));
    if (column == "kind") kind = text_of(value);
    if (column == "key") key = text_of(value);
    has_key |= column == "key";
    if (is_reminder && column == "name") troupe::durable::check_reminder_name(text_of(value));
  }
  if (has_key) target.check_name(kind, key);
}

[[noreturn]] void refuse_rows() {
  throw failure("the store has rows already; import into a new one");
}

// Whether a store of that kind is there and has rows. It looks before the store is opened, for that
// takes it from the program that has it.
template <class Database>
task<> check_empty(Database& db, bool has_tables) {
  if (!has_tables) co_return;
  for (const copied_table& table : copied) {
    auto looks = has_table(db, table.name);
    const bool is_there = co_await std::move(looks);
    if (!is_there) continue;
    const std::string text =
        std::string("SELECT count(*) FROM (SELECT 1 FROM ") + table.name + " LIMIT 1) AS found";
    auto asks = db.template query_one<std::int64_t>(text);
    const std::optional<std::int64_t> found = co_await std::move(asks);
    if (found.value_or(0) != 0) refuse_rows();
  }
}

std::string last_number(const char* largest) {
  return std::string("UPDATE durable_meta SET value = ") + largest +
         "(value, coalesce((SELECT max(number) FROM durable_inbox), 0), "
         "coalesce((SELECT max(number) FROM durable_dead), 0)) WHERE name = 'last_number'";
}

// ---- SQLite ----

// The parameters of a row are bound by a statement of the session itself, for their number differs.
void insert_row(troupe::sqlite::session& session, const copied_row& row) {
  const std::string_view types = row.table->types;
  std::string text = std::string("INSERT INTO ") + row.table->name + " VALUES (?";
  for (std::size_t i = 1; i < types.size(); ++i) text += ",?";
  troupe::sqlite::statement adds(session, text + ")");
  std::vector<std::string> kept(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    const int number = static_cast<int>(i) + 1;
    const ordered& value = row.values[i];
    if (types[i] == 'i') {
      adds.bind_integer(number, value.get<std::int64_t>());
      continue;
    }
    kept[i] = types[i] == 't' ? text_of(value) : bytes_of(value.get<std::string>());
    if (types[i] == 't') {
      adds.bind_text(number, kept[i]);
    } else {
      adds.bind_bytes(number, std::as_bytes(std::span(kept[i])));
    }
  }
  while (adds.step()) {
  }
}

void import_rows(troupe::sqlite::session& session, copy_reader& from,
                 const troupe::durable::storage& target) {
  while (const std::optional<copied_row> row = from.next()) {
    try {
      check_names(*row, target);
      insert_row(session, *row);
    } catch (const std::exception& wrong) {
      throw failure(fmt::format("line {}: {}", from.line(), wrong.what()));
    }
  }
  session.run_script(last_number("max"));
}

task<> check_file(const sqlite_file db) {
  const auto body = [](troupe::sqlite::transaction& all) -> task<> {
    auto looks = all.query_one<std::int64_t>(
        "SELECT count(*) FROM sqlite_master WHERE name = 'durable_meta'");
    auto checks = check_empty(all, (co_await std::move(looks)).value_or(0) != 0);
    co_await std::move(checks);
  };
  auto reads = db.in_snapshot(body);
  co_await std::move(reads);
}

task<> import_to_file(troupe::runtime& rt, const std::string& target, copy_reader& from) {
  if (std::filesystem::exists(target)) {
    troupe::sqlite::options how;
    how.read_only = true;
    how.create = false;
    auto checks = check_file(sqlite_file(rt, target, how));
    co_await std::move(checks);
  }
  // It makes the tables.
  const auto storage = troupe::durable::sqlite_storage(rt, target);
  auto opens = storage->open();
  co_await std::move(opens);
  const sqlite_file db(rt, target);
  auto imports = db.call([&from, &storage](troupe::sqlite::session& session) {
    session.begin();
    try {
      import_rows(session, from, *storage);
      session.commit();
    } catch (...) {
      session.roll_back();
      throw;
    }
  });
  co_await std::move(imports);
}

void export_file(const std::string& target) {
  troupe::runtime rt({.workers = 1});
  troupe::sqlite::options how;
  how.read_only = true;
  how.create = false;
  const sqlite_file db(rt, target, how);
  const auto print_rows = [](troupe::sqlite::session& session) {
    session.run_script("BEGIN");  // all rows are of one moment
    lines_out lines;
    for (const copied_table& table : copied) {
      troupe::sqlite::statement looks(session, "SELECT 1 FROM sqlite_master WHERE name = ?");
      looks.bind_text(1, table.name);
      if (!looks.step()) continue;
      troupe::sqlite::statement reads(session, select_of(table, of_sqlite));
      while (reads.step())
        lines.row(line_of(table, reads.text(0), [](std::string text) { return text; }));
    }
    session.run_script("COMMIT");
    lines.end();
  };
  const auto work = [&]() -> task<> {
    const auto checks = [](troupe::sqlite::transaction& all) -> task<> { return check_store(all); };
    auto looks = db.in_snapshot(checks);
    co_await std::move(looks);
    auto prints = db.call(print_rows);
    co_await std::move(prints);
  };
  auto done = rt.spawn(work());
  rt.run();
  done.get();
}

// ---- PostgreSQL ----

#if TROUPE_TOOL_POSTGRES

constexpr digits in_postgres{"upper(encode(", ", 'hex'))", "upper(encode(convert_to(",
                             ", 'UTF8'), 'hex'))"};
constexpr std::size_t rows_at_once = 1'000, bytes_at_once = 4u << 20;

task<> print_rows(troupe::postgres::transaction& all) {
  auto checks = check_store(all);
  co_await std::move(checks);
  lines_out lines;
  for (const copied_table& table : copied) {
    auto looks = has_table(all, table.name);
    const bool is_there = co_await std::move(looks);
    if (!is_there) continue;
    auto declares = all.execute("DECLARE copied CURSOR FOR " + select_of(table, in_postgres));
    co_await std::move(declares);
    for (;;) {
      auto fetches =
          all.query<std::string>("FETCH " + std::to_string(rows_at_once) + " FROM copied");
      const std::vector<std::string> rows = co_await std::move(fetches);
      for (const std::string& row : rows)
        lines.row(line_of(table, row, [](const std::string& text) {
          return troupe::durable::text_of_stored(text);
        }));
      if (rows.size() < rows_at_once) break;
    }
    auto closes = all.execute("CLOSE copied");
    co_await std::move(closes);
  }
  lines.end();
}

// Rows of one table, which one statement adds: its parameter is an array of JSON arrays.
class row_group {
 public:
  bool is_empty() const noexcept { return text_.empty(); }
  bool takes(const copied_table& table) const noexcept {
    return is_empty() || (table_ == &table && rows_ < rows_at_once && text_.size() < bytes_at_once);
  }
  void add(const copied_row& row) {
    ordered texts = ordered::array();
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      const ordered& value = row.values[i];
      if (row.table->types[i] == 't') {
        texts.push_back(troupe::durable::stored_text(text_of(value)));
      } else {
        texts.push_back(value);
      }
    }
    text_ += is_empty() ? "[" : ",";
    text_ += texts.dump();
    table_ = row.table;
    ++rows_;
  }
  task<> store(troupe::postgres::transaction& all) {
    if (is_empty()) co_return;
    std::string statement =
        std::string("INSERT INTO ") + table_->name + " (" + table_->columns + ") SELECT ";
    for (std::size_t i = 0; i < table_->types.size(); ++i) {
      const std::string value = "row->>" + std::to_string(i);
      if (i > 0) statement += ", ";
      if (table_->types[i] == 't') statement += value;
      if (table_->types[i] == 'i') statement += "(" + value + ")::bigint";
      if (table_->types[i] == 'b') statement += "decode(" + value + ", 'hex')";
    }
    statement += " FROM json_array_elements($1::json) AS row";
    auto adds = all.execute(statement, std::exchange(text_, std::string()) + "]");
    co_await std::move(adds);
    rows_ = 0;
  }

 private:
  const copied_table* table_ = nullptr;
  std::string text_;
  std::size_t rows_ = 0;
};

task<> import_rows(troupe::postgres::transaction& all, copy_reader& from,
                   const troupe::durable::storage& target) {
  row_group group;
  for (;;) {
    const std::optional<copied_row> row = from.next();
    if (!row || !group.takes(*row->table)) {
      try {
        auto stores = group.store(all);
        co_await std::move(stores);
      } catch (const std::exception& wrong) {
        throw failure(fmt::format("before line {}: {}", from.line(), wrong.what()));
      }
    }
    if (!row) break;
    try {
      check_names(*row, target);
    } catch (const troupe::error& wrong) {
      throw failure(fmt::format("line {}: {}", from.line(), wrong.what()));
    }
    group.add(*row);
  }
  auto sets = all.execute(last_number("greatest"));
  co_await std::move(sets);
}

task<> check_tables(troupe::postgres::transaction& all) {
  auto looks = all.query_one<bool>("SELECT to_regclass('durable_meta') IS NOT NULL");
  auto checks = check_empty(all, (co_await std::move(looks)).value_or(false));
  co_await std::move(checks);
}

task<> import_to_server(troupe::runtime& rt, const std::string& target, copy_reader& from) {
  const troupe::postgres::connection db(rt, target);
  auto checks = db.in_transaction(check_tables);
  co_await std::move(checks);
  // It makes the tables.
  const auto storage = troupe::durable::postgres_storage(rt, target);
  auto opens = storage->open();
  co_await std::move(opens);
  const auto body = [&from, &storage](troupe::postgres::transaction& all) {
    return import_rows(all, from, *storage);
  };
  auto imports = db.in_transaction(body);
  co_await std::move(imports);
}

void export_server(const std::string& target) {
  troupe::runtime rt({.workers = 1});
  const troupe::postgres::connection db(rt, target);
  auto done = rt.spawn(db.in_transaction(print_rows, troupe::postgres::isolation::repeatable_read));
  rt.run();
  done.get();
}

#endif

}  // namespace

void export_store(const store_choices& chosen) {
#if TROUPE_TOOL_POSTGRES
  if (is_postgres(chosen.target)) return export_server(chosen.target);
#endif
  is_postgres(chosen.target);
  export_file(chosen.target);
}

void import_store(const store_choices& chosen) {
  copy_reader from(chosen.input);
  troupe::runtime rt({.workers = 1});
  const auto work = [&]() -> task<> {
#if TROUPE_TOOL_POSTGRES
    if (is_postgres(chosen.target)) return import_to_server(rt, chosen.target, from);
#endif
    is_postgres(chosen.target);
    return import_to_file(rt, chosen.target, from);
  };
  auto done = rt.spawn(work());
  rt.run();
  done.get();
}

}  // namespace troupe_tool
