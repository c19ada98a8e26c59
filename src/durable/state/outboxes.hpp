// outboxes: posts to actors of other nodes, by receiver, in the order in which they go there.
//
// Lock: the engine's mutex is held in each function.
//
// Invariants
//   O1  Each outbox has one task that sends its messages, the first one first. The outbox ends when
//       the task finds it empty, or with everything in memory.
//   O2  A message stays the first one of its outbox until the receiver's node has stored it, or its
//       sender's shard has moved.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "base/invariant.hpp"
#include "durable/memory/record.hpp"

namespace troupe::durable::parts {

struct outbox {
  std::deque<record_ref> waits;
};

class outboxes {
  using table = std::map<actor_name, std::shared_ptr<outbox>>;

 public:
  outboxes() = default;
  outboxes(const outboxes&) = delete;
  outboxes& operator=(const outboxes&) = delete;

  bool has(const actor_name& receiver) const { return all_.contains(receiver); }
  // Returns the outbox if it is new: then its task has to begin. Else null.
  std::shared_ptr<outbox> add(const record_ref& message) {
    TROUPE_INVARIANT(message->is(message_place::outbox), "O1");
    std::shared_ptr<outbox>& receiver = all_[message->row.to];
    const bool is_new = receiver == nullptr;
    if (is_new) receiver = std::make_shared<outbox>();
    receiver->waits.push_back(message);
    return is_new ? receiver : nullptr;
  }
  // The first message. Null, and the outbox has ended: it was empty.
  record_ref next(const outbox& from) {
    if (!from.waits.empty()) return from.waits.front();
    std::erase_if(all_, [&from](const auto& each) { return each.second.get() == &from; });
    return nullptr;
  }
  // The receiver's node has stored it. Returns false if the sender's shard has moved.
  bool sent(outbox& from, const record_ref& message) noexcept {
    if (from.waits.empty() || from.waits.front() != message) {
      TROUPE_INVARIANT(std::ranges::find(from.waits, message) == from.waits.end(), "O2");
      return false;
    }
    from.waits.pop_front();
    return true;
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [receiver, box] : all_) std::ranges::for_each(box->waits, visit);
  }
  template <class Predicate>
  void remove_if(Predicate goes) {
    for (const auto& [receiver, box] : all_) std::erase_if(box->waits, goes);
  }
  void clear() noexcept { all_.clear(); }

 private:
  table all_;
};

}  // namespace troupe::durable::parts
