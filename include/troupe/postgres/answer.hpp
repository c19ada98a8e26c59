// answer: the rows that the server has sent for one statement, and the values of its parameters.
// Programs use connection.hpp.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/database/rows.hpp"

struct pg_result;  // of libpq-fe.h, which calls it PGresult

namespace troupe::postgres {

// The rows of an answer, one behind the other in pieces of memory. Move-only.
class row_store {
 public:
  // `result` has one row.
  void add(const void* result);
  std::size_t rows() const noexcept { return rows_.size(); }
  // All that it holds.
  std::size_t bytes() const noexcept { return bytes_; }
  // The bytes of one row: for each column its length and its value.
  const char* row(std::size_t number) const noexcept { return rows_[number]; }
  void clear() noexcept;

 private:
  char* reserve(std::size_t bytes);

  std::vector<std::unique_ptr<char[]>> pieces_;
  std::vector<const char*> rows_;
  std::size_t piece_bytes_ = 0, used_ = 0;  // of the last piece
  std::size_t bytes_ = 0;
};

// Owns the last result of a statement, and its rows, one of which is current. Move-only. Thread:
// one at a time.
class answer {
 public:
  answer() = default;
  explicit answer(pg_result* result, row_store rows = {}) noexcept
      : result_(result), rows_(std::move(rows)) {}
  answer(answer&& other) noexcept
      : scope(other.scope),
        changed_before(other.changed_before),
        result_(std::exchange(other.result_, nullptr)),
        rows_(std::move(other.rows_)) {}
  answer& operator=(answer&& other) noexcept {
    std::swap(scope, other.scope);
    std::swap(changed_before, other.changed_before);
    std::swap(result_, other.result_);
    std::swap(rows_, other.rows_);
    values_.clear();
    return *this;
  }
  ~answer();
  explicit operator bool() const noexcept { return result_ != nullptr; }
  pg_result* result() const noexcept { return result_; }

  std::size_t rows() const noexcept { return rows_.rows(); }
  void go_to(std::size_t row);
  std::int64_t changed_rows() const noexcept;
  std::string_view command() const noexcept;  // "UPDATE 3"
  bool begins_copy() const noexcept;

  // The columns of the row. Views live until the next call.
  int columns() const noexcept;
  std::string_view name(int column) const noexcept;
  bool is_null(int column) const noexcept;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;
  std::span<const std::byte> bytes(int column) const;
  database::parts::micro_time time(int column) const;

  // All rows. Throws error for values that do not fit.
  template <class T>
  std::vector<T> read() {
    const database::mapping<T> columns(*this);
    std::vector<T> all;
    all.reserve(rows());
    for (std::size_t i = 0; i < rows(); ++i) {
      go_to(i);
      all.push_back(columns.read(*this));
    }
    return all;
  }
  template <class T>
  std::optional<T> read_one() {
    const database::mapping<T> columns(*this);
    if (rows() == 0) return std::nullopt;
    go_to(0);
    return columns.read(*this);
  }

  // After a BEGIN: the transaction scope that it has opened.
  std::uint64_t scope = 0;
  // After a statement with several rows of parameters: the changes of all rows but the last.
  std::int64_t changed_before = 0;

 private:
  [[noreturn]] void refuse_kind(int column, const char* needed) const;
  double real_of_decimal(int column, std::string_view text) const;
  std::string_view raw(int column) const noexcept;

  pg_result* result_ = nullptr;
  row_store rows_;
  struct cell {
    const char* data;
    std::int32_t bytes;  // negative: NULL
  };
  std::vector<cell> values_;       // of the row
  mutable std::string converted_;  // the text of a value that arrived in another form
};

// The elements of an array that is a parameter, as the text of an array: {1,2,NULL}.
class array_elements {
 public:
  // `type`: of the array.
  explicit array_elements(std::uint32_t type) noexcept : type_(type) {}

  // As in arguments.
  void bind_null(int number);
  void bind_integer(int number, std::int64_t value);
  void bind_real(int number, double value);
  void bind_text(int number, std::string_view text);
  void bind_bytes(int number, std::span<const std::byte> bytes);
  void bind_time(int number, database::parts::micro_time at);

  std::string text() const { return text_ + '}'; }

 private:
  void add(std::string_view element);

  std::uint32_t type_;
  std::string text_ = "{";
};

// The values of one statement in the form in which libpq takes them: numbers, times and bytes in
// the server's binary form, other values as text, which the server reads by the parameter's type.
class arguments {
 public:
  // `types`: the parameter types of the server, by its numbers for types.
  void begin(std::span<const std::uint32_t> types);

  // Parameters are numbered from 1 on. Texts and bytes that they are given live until the statement
  // was sent. They throw error for a value that is not one of the parameter's type.
  void bind_null(int number) noexcept;
  void bind_integer(int number, std::int64_t value);
  void bind_real(int number, double value);
  void bind_text(int number, std::string_view text);
  void bind_bytes(int number, std::span<const std::byte> bytes);
  void bind_time(int number, database::parts::micro_time at);
  array_elements begin_array(int number) const { return array_elements(type_of(number)); }
  void bind_array(int number, const array_elements& elements);
  [[noreturn]] static void refuse(int number, const char* why);

  int count() const noexcept { return static_cast<int>(values_.size()); }
  const char* const* values() const noexcept { return values_.data(); }
  const int* sizes() const noexcept { return sizes_.data(); }
  const int* formats() const noexcept { return formats_.data(); }

 private:
  std::uint32_t type_of(int number) const noexcept {
    return types_[static_cast<std::size_t>(number) - 1];
  }
  void set(int number, const char* data, std::size_t bytes, bool binary) noexcept;
  template <class Bits>
  void set_bits(int number, Bits bits) noexcept;
  void set_made_text(int number, std::string text);

  std::span<const std::uint32_t> types_;
  std::vector<const char*> values_;
  std::vector<int> sizes_, formats_;
  std::vector<std::array<char, 8>> numbers_;
  std::deque<std::string> texts_;
};

}  // namespace troupe::postgres
