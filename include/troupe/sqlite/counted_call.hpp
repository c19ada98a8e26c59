// counted_call: the numbers of a connection's calls while the program is observed: how long they
// wait, and how long the statements of transactions take.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace troupe::sqlite {

class call_waits;

namespace parts {

// A call that waits: for a transaction of other callers, and for the connection's thread. Its wait
// ends when the thread runs it, or when its caller gives up. Thread: any, one at a time.
class counted_wait {
 public:
  explicit counted_wait(std::shared_ptr<call_waits> waits) noexcept;
  counted_wait(counted_wait&& other) noexcept
      : waits_(std::move(other.waits_)), began_ns_(other.began_ns_) {}
  counted_wait& operator=(counted_wait&&) = delete;
  ~counted_wait() { end(); }
  void end() noexcept;

 private:
  std::shared_ptr<call_waits> waits_;  // null: it is not counted, or no longer
  std::int64_t began_ns_ = 0;
};

// A statement of a transaction, for as long as it runs. One that ends with an exception has failed.
class counted_statement {
 public:
  // `text` lives as long.
  explicit counted_statement(const std::string& text) noexcept;
  counted_statement(const counted_statement&) = delete;
  counted_statement& operator=(const counted_statement&) = delete;
  ~counted_statement();

 private:
  const std::string& text_;
  const std::int64_t began_ns_;
  const int exceptions_;
};

}  // namespace parts
}  // namespace troupe::sqlite
