// fields: the parts of HTTP/1.1 requests and answers: methods, fields, status codes.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

namespace troupe::http {

// `other` is any method without a name here; the head has its name.
enum class method : std::uint8_t {
  get,
  head,
  post,
  put,
  patch,
  remove,
  options,
  connect,
  trace,
  other
};

// "GET"; "" for `other`.
std::string_view name_of(method verb) noexcept;
// Method names are case-sensitive: "get" is `other`.
method method_named(std::string_view name) noexcept;

// "Not Found"; "" for a status without a phrase.
std::string_view reason_of(int status) noexcept;

// Compares without the case of ASCII letters, as for field names and many values.
bool same_word(std::string_view a, std::string_view b) noexcept;
// Whether a comma-separated list, such as the value of Connection, contains that word.
bool lists_word(std::string_view list, std::string_view word) noexcept;

// One field of a head, as views.
struct field {
  std::string_view name, value;  // without surrounding white space
};

// Removes the first line of a text of fields, one in each line, and returns the line's field name.
// For the library's own use.
std::string_view take_field_name(std::string_view& lines) noexcept;

// The fields of a head, in the order of their arrival; views into the bytes of the head.
//
// Example:
//     #include <troupe/http/parser.hpp>
//     troupe::http::parser reading(troupe::http::side::requests);
//     reading.next("GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n");
//     for (const troupe::http::field one : reading.head().fields)
//       std::cout << one.name << " is " << one.value << '\n';
class fields {
 public:
  // The position of one field, counted from the first byte of the message.
  struct position {
    std::uint32_t name, name_bytes, value, value_bytes;
  };

  fields() = default;
  fields(const char* first, std::span<const position> positions) noexcept
      : first_(first), positions_(positions) {}

  std::size_t size() const noexcept { return positions_.size(); }
  field operator[](std::size_t at) const noexcept {
    const position& found = positions_[at];
    return {{first_ + found.name, found.name_bytes}, {first_ + found.value, found.value_bytes}};
  }
  // The value of the first field with that name, without regard to case; "" if there is none.
  std::string_view operator[](std::string_view name) const noexcept;
  // The values of all fields with that name as one list, "a, b": a sender may split such a list, as
  // in `Connection` or `Accept-Encoding`, among several fields.
  std::string list(std::string_view name) const;
  bool has(std::string_view name) const noexcept;
  // How many fields have that name.
  std::size_t count(std::string_view name) const noexcept;

  class iterator {
   public:
    using value_type = field;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    iterator(const fields* source, std::size_t at) noexcept : source_(source), at_(at) {}
    field operator*() const noexcept { return (*source_)[at_]; }
    iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    iterator operator++(int) noexcept {
      iterator before = *this;
      ++at_;
      return before;
    }
    friend bool operator==(const iterator&, const iterator&) = default;

   private:
    const fields* source_ = nullptr;
    std::size_t at_ = 0;
  };
  iterator begin() const noexcept { return {this, 0}; }
  iterator end() const noexcept { return {this, size()}; }

 private:
  const char* first_ = nullptr;
  std::span<const position> positions_;
};

}  // namespace troupe::http
