// array_text: many rows as the parameters of one statement. Each column is the text of an array,
// and the statement's unnest() makes rows of them.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::durable {

// A text of PostgreSQL in UTF8 has neither zero bytes nor bytes that are no UTF-8. Such a byte is
// written as \xHH, and a backslash as two; all other texts stay as they are.
std::string stored_text(std::string_view any);
std::string text_of_stored(std::string_view stored);
// Where the stored texts of all keys with this prefix begin, in the order of their bytes: one
// place, or two if the prefix ends within a character, which the rest of a key may complete or not.
std::vector<std::string> places_of_prefix(std::string_view prefix);

// The values of one column.
class array_text {
 public:
  void add(std::integral auto value) {
    begin_value();
    text_ += std::to_string(value);
  }
  // As stored_text().
  void add_text(std::string_view any);
  void add_bytes(std::span<const std::byte> bytes);

  // The whole text: "{1,2,3}". The column is empty afterwards.
  std::string take();

 private:
  void begin_value() {
    if (text_.size() > 1) text_ += ',';
  }
  std::string text_ = "{";
};

}  // namespace troupe::durable
