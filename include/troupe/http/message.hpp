// What requests and answers of HTTP/1.1 are made of: methods, fields, status codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

namespace troupe::http {

// `other` is any that has no name here; its name stands in the head.
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
std::string_view name_of(method one) noexcept;
// Names of methods have a case: "get" is another one.
method method_named(std::string_view name) noexcept;

// "Not Found"; "" for one that has no phrase.
std::string_view reason_of(int status) noexcept;

// As names of fields and many values are compared: letters of ASCII without their case.
bool same_word(std::string_view a, std::string_view b) noexcept;
// Whether a comma-separated list, as of Connection, has that word.
bool lists_word(std::string_view list, std::string_view word) noexcept;

struct field {
  std::string_view name, value;  // without the white space around
};

// Of fields as they are sent, a line each: takes the first line off, and returns its name. The
// library's own.
std::string_view take_field_name(std::string_view& lines) noexcept;

// The fields of a head, in the order in which they came; views into its bytes.
//
// Example:
//     #include <troupe/http/parser.hpp>
//     troupe::http::parser reading(troupe::http::side::requests);
//     reading.next("GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n");
//     for (const troupe::http::field one : reading.head().fields) std::cout << one.name << " is "
//     << one.value << '\n';
class fields {
 public:
  // Where one lies, from the first byte of the message.
  struct position {
    std::uint32_t name, name_bytes, value, value_bytes;
  };

  fields() = default;
  fields(const char* first, std::span<const position> positions) noexcept
      : first_(first), positions_(positions) {}

  std::size_t size() const noexcept { return positions_.size(); }
  field operator[](std::size_t at) const noexcept {
    const position& one = positions_[at];
    return {{first_ + one.name, one.name_bytes}, {first_ + one.value, one.value_bytes}};
  }
  // The first of that name, in any case of letters; "" when there is none.
  std::string_view operator[](std::string_view name) const noexcept;
  bool has(std::string_view name) const noexcept;
  // How many of that name there are.
  std::size_t count(std::string_view name) const noexcept;

  class iterator {
   public:
    using value_type = field;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    iterator(const fields* of, std::size_t at) noexcept : of_(of), at_(at) {}
    field operator*() const noexcept { return (*of_)[at_]; }
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
    const fields* of_ = nullptr;
    std::size_t at_ = 0;
  };
  iterator begin() const noexcept { return {this, 0}; }
  iterator end() const noexcept { return {this, size()}; }

 private:
  const char* first_ = nullptr;
  std::span<const position> positions_;
};

}  // namespace troupe::http
