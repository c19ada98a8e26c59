// content_type: the type of a body, as the field Content-Type has it.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace troupe::http {

// A text that is allowed in a head: it has no line end and no other control byte, which could add
// fields. Of a literal nothing is copied, and the compiler checks it; anything else is copied and
// checked when it is made, and throws usage_error. Movable. Thread: as any value.
//
// Example:
//     const troupe::http::content_type literal("text/csv");
//     std::cout << literal.view() << '\n';  // text/csv
//     const std::string name = "image/" + std::string("png");
//     std::cout << troupe::http::content_type(name).view() << '\n';  // image/png
class content_type {
 public:
  // None.
  constexpr content_type() noexcept = default;
  template <std::size_t N>
  consteval content_type(const char (&literal)[N]) : text_(literal, N - 1) {
    // The compiler refuses a literal that gets here.
    if (has_control(text_)) throw "troupe: http: a literal type has a control byte";
  }
  template <class Text>
  requires(std::convertible_to<const Text&, std::string_view> && !std::is_array_v<Text> &&
           !std::same_as<Text, content_type>) content_type(const Text& text)
      : content_type(std::string_view(text), nullptr) {}
  constexpr content_type(content_type&& other) noexcept
      : text_(std::exchange(other.text_, {})), copy_(std::exchange(other.copy_, nullptr)) {}
  constexpr content_type& operator=(content_type&& other) noexcept {
    std::swap(text_, other.text_);
    std::swap(copy_, other.copy_);
    return *this;
  }
  constexpr ~content_type() { delete[] copy_; }

  // The type in a text that lives as long as the program, such as an entry of a table. Nothing is
  // copied.
  // Throws usage_error for a control byte.
  static content_type of_table(std::string_view text);

  constexpr std::string_view view() const noexcept { return text_; }
  constexpr bool empty() const noexcept { return text_.empty(); }

 private:
  content_type(std::string_view text, std::nullptr_t);
  static constexpr bool has_control(std::string_view text) noexcept {
    for (const char letter : text) {
      if ((static_cast<unsigned char>(letter) < ' ' && letter != '\t') || letter == 127)
        return true;
    }
    return false;
  }

  std::string_view text_;
  const char* copy_ = nullptr;  // the text of the view, unless it is a literal
};

}  // namespace troupe::http
