// stored: JetStream's acknowledgement of a message that it has stored.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::nats {

// A plain value.
//
// Example (declarations):
//     #include <troupe/nats/connection.hpp>
//     troupe::task<> keep(troupe::nats::connection bus) {
//       troupe::nats::store_options once;
//       once.id = "order-17";  // a second one with this id is not stored
//       const auto kept = co_await bus.store("orders.new", "12 pens", once);
//       std::cout << kept.stream << ' ' << kept.sequence << ' ' << kept.duplicate << '\n';
//     }
struct stored {
  stored() noexcept {}
  std::string stream, domain;
  std::uint64_t sequence = 0;
  // Whether the stream already had a message with this id; then this message was not stored.
  bool duplicate = false;
};

// The conditions under which a message is stored; otherwise it is refused (stream_error).
struct store_options {
  store_options() noexcept {}
  // An id of the message: within the stream's window for duplicates, messages with one id are
  // stored once. Default: none.
  std::string id;
  // The name of the stream.
  std::string expected_stream;
  // The sequence of the stream's last message, the sequence of the last message to this subject,
  // and the last id.
  std::optional<std::uint64_t> expected_last, expected_last_of_subject;
  std::string expected_last_id;
};

}  // namespace troupe::nats
