// cycle_search: finds cycles of asks over several nodes (cycles.hpp), with questions to other
// nodes. The ask that closes a cycle did not run: it is taken back, and fails with `deadlock`.
#pragma once

#include <vector>

#include "durable/core/engine_core.hpp"
#include "durable/state/cycles.hpp"

namespace troupe::durable::parts {

class cycle_search {
 public:
  explicit cycle_search(engine_core& core) noexcept : core_(core) {}
  cycle_search(const cycle_search&) = delete;
  cycle_search& operator=(const cycle_search&) = delete;

  // With the mutex held: an ask goes to another node.
  void need_looks();
  // As engine::waits_for.
  task<bool> waits_for(engine_ref keeps, cycle_question question);

 private:
  task<> look_for_cycles(engine_ref keeps);
  bool find_waiting_asks(std::vector<cycle_question>& waiting);
  void take_back(const message_id& ask);

  engine_core& core_;
  inbox& inbox_ = core_.inbox;
  known_messages& known_ = core_.known;
  shards& shards_ = core_.shards;
  cycles cycles_{core_.classes, core_.actors, core_.known};  // guarded by the mutex
};

}  // namespace troupe::durable::parts
