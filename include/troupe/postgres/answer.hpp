// answer: what the server has answered to one statement, and the values that go with one. Programs
// use connection.hpp.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/database/rows.hpp"

namespace troupe::postgres {

// Owns a result of libpq, and stands at one of its rows. Move-only. Thread: one at a time.
class answer {
 public:
  answer() = default;
  explicit answer(void* result) noexcept : result_(result) {}
  answer(answer&& other) noexcept
      : epoch(other.epoch),
        changed_before(other.changed_before),
        result_(std::exchange(other.result_, nullptr)),
        row_(other.row_) {}
  answer& operator=(answer&& other) noexcept {
    std::swap(epoch, other.epoch);
    std::swap(changed_before, other.changed_before);
    std::swap(result_, other.result_);
    std::swap(row_, other.row_);
    return *this;
  }
  ~answer();
  explicit operator bool() const noexcept { return result_ != nullptr; }
  void* result() const noexcept { return result_; }

  std::size_t rows() const noexcept;
  void go_to(std::size_t row) noexcept { row_ = static_cast<int>(row); }
  std::int64_t changed_rows() const noexcept;
  std::string_view command() const noexcept;  // "UPDATE 3"
  bool begins_copy() const noexcept;

  // Of the row. Views live until the next call.
  int columns() const noexcept;
  std::string_view name(int column) const noexcept;
  bool is_null(int column) const noexcept;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;
  std::span<const std::byte> bytes(int column) const;
  database::parts::micro_time time(int column) const;

  // All rows. Throws error for more than `rows_max`, and for values that do not fit.
  template <class T>
  std::vector<T> read(std::size_t rows_max) {
    const database::mapping<T> columns(*this);
    check_rows(rows_max);
    std::vector<T> all;
    all.reserve(rows());
    for (std::size_t i = 0; i < rows(); ++i) {
      go_to(i);
      all.push_back(columns.read(*this));
    }
    return all;
  }
  // Throws error if there are several rows.
  template <class T>
  std::optional<T> read_one() {
    const database::mapping<T> columns(*this);
    if (rows() > 1) refuse_second_row();
    if (rows() == 0) return std::nullopt;
    go_to(0);
    return columns.read(*this);
  }

  // Of a BEGIN: the connection on which the transaction is open.
  std::uint64_t epoch = 0;
  // Of a statement with several rows of parameters: what all but the last one have changed.
  std::int64_t changed_before = 0;

 private:
  void check_rows(std::size_t most) const;
  [[noreturn]] static void refuse_second_row();
  [[noreturn]] void refuse_kind(int column, const char* needed) const;
  std::string_view raw(int column) const noexcept;

  void* result_ = nullptr;
  int row_ = 0;
  mutable std::string made_;  // the text of a value that arrived in another form
};

// The values of one statement in the form in which libpq takes them: numbers, times and bytes in
// the server's binary form, what else by its text, which the server reads by the parameter's type.
class arguments {
 public:
  // `types`: what the server takes, by its numbers for types.
  void begin(std::span<const std::uint32_t> types);

  // Parameters are numbered from 1 on. Texts and bytes that they are given live until the statement
  // was sent. They throw error for a value that is not one of the parameter's type.
  void bind_null(int number) noexcept;
  void bind_integer(int number, std::int64_t value);
  void bind_real(int number, double value);
  void bind_text(int number, std::string_view text);
  void bind_bytes(int number, std::span<const std::byte> bytes);
  void bind_time(int number, database::parts::micro_time at);

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
  [[noreturn]] static void refuse(int number, const char* why);

  std::span<const std::uint32_t> types_;
  std::vector<const char*> values_;
  std::vector<int> sizes_, formats_;
  std::vector<std::array<char, 8>> numbers_;
  std::deque<std::string> texts_;
};

}  // namespace troupe::postgres
