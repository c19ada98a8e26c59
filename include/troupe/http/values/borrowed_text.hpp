// borrowed_text: a text that its owner, not the receiver, keeps for as long as it is needed.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "troupe/base/platform.hpp"

namespace troupe::http {

// The parameter of a function that keeps a view beyond its call. It is made of a literal, of a view
// or of a string that has a name; a temporary string, which would be destroyed before the view is
// read, is a compile error. Lifetime: as the text of which it was made.
//
// Example:
//     const std::string kept = "a text";
//     std::cout << troupe::http::borrowed_text(kept).view() << '\n';
//     static_assert(!std::is_constructible_v<troupe::http::borrowed_text, std::string>);
class borrowed_text {
 public:
  borrowed_text() noexcept = default;
  borrowed_text(const char* first, std::size_t bytes) noexcept : text_(first, bytes) {}
  template <class Text>
  requires(std::convertible_to<Text, std::string_view> &&
           !std::same_as<std::remove_cvref_t<Text>, borrowed_text> &&
           (std::is_lvalue_reference_v<Text> || std::is_trivially_destructible_v<Text>))
      borrowed_text(Text&& text)
  noexcept : text_(text) {}
#define TROUPE_GONE                                                                     \
  "troupe: this text is kept, and would be destroyed before it is read: give a string " \
  "that has a name and lives long enough, or use the function that takes a std::string"
  template <class Text TROUPE_SAYS(TROUPE_GONE)>
  requires(std::convertible_to<Text, std::string_view> &&
           !std::same_as<std::remove_cvref_t<Text>, borrowed_text> &&
           !std::is_lvalue_reference_v<Text> && !std::is_trivially_destructible_v<Text>)
      borrowed_text(Text&& text)
  TROUPE_REFUSED(TROUPE_GONE);
#undef TROUPE_GONE

  std::string_view view() const noexcept { return text_; }

 private:
  std::string_view text_;
};

}  // namespace troupe::http
