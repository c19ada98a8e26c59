// literal: a text of the program itself, which lives as long as the program.
#pragma once

#include "troupe/base/language.hpp"

namespace troupe {

// The parameter of a function that keeps a text without a copy. It is made of a string literal; the
// compiler refuses a text that a variable holds. Thread: as any value.
//
// Example:
//     constexpr troupe::literal name = "load the index";
//     std::cout << name.text() << '\n';
class literal {
 public:
  consteval literal(const char* text) noexcept : text_(text) {}
  // The literal of an entry of a table that lives as long as the program, which is not checked.
  static constexpr literal of_table(const char* text) noexcept {
    literal table("");
    table.text_ = text;
    return table;
  }
  constexpr const char* text() const noexcept { return text_; }

 private:
  const char* text_;
};

}  // namespace troupe
