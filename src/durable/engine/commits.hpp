// commits: stores the batches that turns fill, one after the other. Afterwards it answers and
// delivers, or recovers if a batch was not stored.
//
// Invariants
//   E2  Batches are committed one after the other: the data that a turn read was stored by its own
//       batch or by an earlier one.
//   E3  The answers and messages of a batch leave when it is stored, not before.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>

#include "durable/core/engine_core.hpp"
#include "durable/core/forgetting.hpp"
#include "durable/engine/cycle_search.hpp"
#include "durable/engine/shard_moves.hpp"
#include "durable/messages/inbox_reader.hpp"
#include "durable/messages/mailboxes.hpp"
#include "durable/messages/outgoing.hpp"

namespace troupe::durable::parts {

class commits {
 public:
  commits(engine_core& core, forgetting& forgets, mailboxes& mail, outgoing& outgoing,
          inbox_reader& reader, cycle_search& search, shard_moves& moves) noexcept
      : core_(core),
        forgetting_(forgets),
        mailboxes_(mail),
        outgoing_(outgoing),
        inbox_reader_(reader),
        cycle_search_(search),
        shard_moves_(moves) {}
  commits(const commits&) = delete;
  commits& operator=(const commits&) = delete;

  // The task of engine_core::need_commit().
  task<> store_all(engine_ref keeps);

 private:
  bool has_ready() const;
  std::shared_ptr<filling> take_batch();
  void stored(filling& taken);
  task<> recover(std::shared_ptr<filling> failed, std::exception_ptr why);
  void end_doubt(const filling& failed, bool is_stored);
  std::chrono::milliseconds spent_since(std::int64_t began_ns) const;

  engine_core& core_;
  forgetting& forgetting_;
  mailboxes& mailboxes_;
  outgoing& outgoing_;
  inbox_reader& inbox_reader_;
  cycle_search& cycle_search_;
  shard_moves& shard_moves_;
  availability& health_ = core_.health;
  inbox& inbox_ = core_.inbox;
  batches& batches_ = core_.batches;
  actors& actors_ = core_.actors;
  known_messages& known_ = core_.known;
  reminders& reminders_ = core_.reminders;
  shards& shards_ = core_.shards;
  numbers& numbers_ = core_.numbers;
  std::chrono::sys_seconds forgot_at_{};  // of the task: old answers were removed then
};

}  // namespace troupe::durable::parts
