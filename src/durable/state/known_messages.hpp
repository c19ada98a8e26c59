// known_messages: the messages in memory whose ids may come again: nested asks, and messages whose
// senders chose the id.
//
// Lock: the engine's mutex is held in each function.
//
// Invariants
//   N1  An id belongs to at most one message in memory. A message of such an id that is not known
//       here was forgotten, or another message of the same call has replaced it.
#pragma once

#include <unordered_map>
#include <utility>

#include "base/invariant.hpp"
#include "durable/memory/record.hpp"
#include "troupe/durable/message_id.hpp"

namespace troupe::durable::parts {

class known_messages {
  using table = std::unordered_map<message_id, record_ref>;

 public:
  known_messages() = default;
  known_messages(const known_messages&) = delete;
  known_messages& operator=(const known_messages&) = delete;

  table::const_iterator begin() const noexcept { return all_.begin(); }
  table::const_iterator end() const noexcept { return all_.end(); }

  // Null: no message of that id is known.
  record_ref find(const message_id& id) const {
    const auto known = all_.find(id);
    TROUPE_INVARIANT(known == all_.end() || known->second->row.id == id, "N1");
    return known == all_.end() ? nullptr : known->second;
  }
  bool has(const record_ref& message) const noexcept {
    const auto known = all_.find(message->row.id);
    return known != all_.end() && known->second == message;
  }
  // Stays without effect if the id is known.
  void add(const message_id& id, const record_ref& message) { all_.emplace(id, message); }
  void put(const record_ref& message) { all_.insert_or_assign(message->row.id, message); }
  // If it is the known message of its id.
  void remove(const record_ref& message) noexcept {
    if (all_.empty()) return;
    const auto known = all_.find(message->row.id);
    if (known != all_.end() && known->second == message) all_.erase(known);
  }
  template <class Predicate>
  void remove_if(Predicate goes) {
    std::erase_if(all_, [&](const auto& each) { return goes(*each.second); });
  }
  void clear() noexcept { all_.clear(); }

 private:
  table all_;
};

}  // namespace troupe::durable::parts
