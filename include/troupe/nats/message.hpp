// message: a payload with its subject and headers, to publish or received.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::nats {

// The header of a message: names with values, in their order; a name may occur more than once.
// Names are case-sensitive. A plain value.
//
// Example:
//     troupe::nats::headers head;
//     head.add("Kind", "order");
//     std::cout << head.get("Kind").value_or("none") << '\n';
class headers {
 public:
  using field = std::pair<std::string, std::string>;

  headers() noexcept {}
  // Throw error (bad_subject) for a name that is empty or has a colon, a space or a control
  // character, and for a value with a line end or a zero byte.
  void add(std::string_view name, std::string_view value);
  void set(std::string_view name, std::string_view value);
  void remove(std::string_view name) noexcept;
  // The first value of that name; nullopt if there is none.
  std::optional<std::string_view> get(std::string_view name) const noexcept;

  bool empty() const noexcept { return fields_.empty() && status_ == 0; }
  std::size_t size() const noexcept { return fields_.size(); }
  auto begin() const noexcept { return fields_.begin(); }
  auto end() const noexcept { return fields_.end(); }

  // The code of a status line, which a message of the server has in place of a peer's answer. 503:
  // no subscriber answers; 0: there is no status line.
  int status() const noexcept { return status_; }
  const std::string& description() const noexcept { return description_; }
  // Whether a part of the received headers was malformed: that part is missing.
  bool is_damaged() const noexcept { return damaged_; }

  // For the library: the block as it is sent, "NATS/1.0\r\nName: value\r\n\r\n", and the content of
  // such a block.
  void append_to(std::string& out) const;
  std::size_t block_bytes() const noexcept;
  static headers parse(std::string_view block);

 private:
  std::vector<field> fields_;
  std::string description_;
  int status_ = 0;
  bool damaged_ = false;
};

// A plain value.
//
// Example:
//     troupe::nats::message order("orders.new", "12 pens");
//     order.head.add("Kind", "order");
struct message {
  // Not an aggregate: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression.
  message() noexcept {}
  message(std::string to, std::string bytes) : subject(std::move(to)), payload(std::move(bytes)) {}

  std::string subject;
  std::string reply;  // the subject for an answer; empty: no answer is expected
  std::string payload;
  headers head;
  // The number of messages that the subscription has dropped, for lack of space, since the message
  // before this one.
  std::uint64_t missed = 0;
};

}  // namespace troupe::nats
