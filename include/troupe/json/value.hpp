// value: a part of a text that is read. For read.hpp alone.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::json {

// The type of a value.
enum class kind : std::uint8_t { null, boolean, number, string, array, object };

// How a text is read.
struct read_options {
  // Maximum bytes of the text. Default 16 MiB; more is an error.
  std::size_t bytes = 16 * 1024 * 1024;
  // Maximum depth of arrays and objects in each other. Default 64, at most 1,000; more is an error.
  // An empty one is not counted.
  std::size_t depth = 64;
  // Whether a member that the struct does not have is an error. Default false: it is ignored.
  bool refuse_unknown = false;
  // Whether a member that is missing keeps the value that it has in a struct that was made by `{}`:
  // its initializer's. Default false: that is an error, except for std::optional and
  // std::unique_ptr, which are then empty.
  bool keep_missing = false;
};

namespace parts {

// The JSON library's handle of one part: two words.
struct handle {
  alignas(8) std::array<std::byte, 16> words;
};

// A value of a document, which must live longer. The functions below expect its kind.
class value {
 public:
  explicit value(const handle& is) noexcept : is_(is) {}
  json::kind kind() const noexcept;
  bool boolean() const noexcept;
  // Nothing if the number is not whole, or does not fit. A number that is written with a fraction
  // or an exponent ("1.0", "1e2") is read as a double: nothing from 2^53 on, where not all whole
  // numbers are doubles.
  std::optional<std::int64_t> integer() const noexcept;
  std::optional<std::uint64_t> natural() const noexcept;
  double number() const noexcept;
  std::string_view text() const noexcept;
  // The number of elements, or of members.
  std::size_t size() const noexcept;
  // The value as JSON, without spaces.
  std::string as_json() const;

 private:
  friend class elements;
  friend class members;
  handle is_;
};

// The elements of an array, one after the other.
class elements {
 public:
  explicit elements(const value& array) noexcept;
  std::optional<value> next() noexcept;

 private:
  handle at_, end_;
};

// The members of an object, one after the other.
class members {
 public:
  explicit members(const value& object) noexcept;
  struct member {
    std::string_view name;
    value is;
  };
  std::optional<member> next() noexcept;

 private:
  handle at_, end_;
};

// A text that was read as a whole: all of it is JSON. Throws json_error.
class document {
 public:
  document(std::string_view text, const read_options& how);
  ~document();
  document(const document&) = delete;
  document& operator=(const document&) = delete;
  value root() const noexcept { return value(root_); }

 private:
  struct parser;
  std::unique_ptr<parser> parser_;
  handle root_;
};

// Where a value is in the text: the path is only written for an error.
struct place {
  const place* within = nullptr;
  std::string_view member;  // of an object; no data: an element
  std::size_t index = 0;
};
[[noreturn]] void fail(const place& at, std::string_view why);

}  // namespace parts

}  // namespace troupe::json
