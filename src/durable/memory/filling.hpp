// filling: a transaction while it is filled and stored, and the calls that end with it.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "durable/memory/record.hpp"
#include "durable/memory/shard_scope.hpp"
#include "troupe/durable/storage.hpp"
#include "troupe/task/call_context.hpp"

namespace troupe::durable::parts {

// An answer that is sent when a batch is stored.
struct settlement {
  record_ref message;
  bytes value;
  std::exception_ptr error;  // instead of the value
};

struct filling {
  batch data;
  std::vector<settlement> settlements;
  std::vector<record_ref> posted;          // whose senders wait for this batch alone
  std::vector<record_ref> delivered;       // sent by handlers
  std::vector<record_ref> asks_elsewhere;  // nested asks to actors of other nodes
  std::uint64_t turns = 0;
  std::int64_t began_ns = 0;  // when its transaction did
  std::vector<tasks::context_ref> spans;

  void begin_span(const record& message);
  void end_spans(const std::exception_ptr& failure) noexcept;
  shard_set touched;  // the shards of its changes and of its answers

  // An ask that leaves the node has effects that no transaction of this node stores. It is sent
  // only after a transaction has seen that the asker's shard is still this node's.
  bool needs_transaction() const noexcept { return !data.empty() || !asks_elsewhere.empty(); }
  bool empty() const noexcept {
    return data.empty() && settlements.empty() && posted.empty() && asks_elsewhere.empty();
  }
};

}  // namespace troupe::durable::parts
