// store: what `troupe store` shows and copies of the databases in which durable actors lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace troupe_tool {

struct store_choices {
  std::string target;  // a file, or postgresql://…
  std::string kind, key;
  // A page of keys: those that begin with `prefix`, from the one behind `after` on.
  std::string prefix;
  std::optional<std::string> after;
  std::int64_t count = 100;
  std::uint64_t again = 0;  // the number of a dead letter that is to be handled once more; 0: none
  std::string input;        // the file that is imported
};

// Classes, and how many actors, messages, dead letters and reminders there are.
void list_store(const store_choices& chosen);
// The keys of the actors of a class, in the order of their bytes, one a line.
void list_keys(const store_choices& chosen);
// One actor: its state, its events since then, its messages and reminders.
void show_stored(const store_choices& chosen);
void show_dead_letters(const store_choices& chosen);
// All rows as lines of JSON, to standard output.
void export_store(const store_choices& chosen);
// Such lines into a store that has no rows. All or nothing.
void import_store(const store_choices& chosen);

// A text as JSON: a string, or an object with its hexadecimal digits if it is no UTF-8.
nlohmann::ordered_json text_value(const std::string& text);

// A stored value, read by the shape of its type (troupe/durable/codec.hpp). What the shape does not
// explain is given as hexadecimal digits.
nlohmann::ordered_json value_of(std::string_view shape, std::span<const std::byte> bytes);

}  // namespace troupe_tool
