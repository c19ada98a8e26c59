// shards: for which shards of the actors this node acts. A store without a cluster acts for all.
//
// Lock: the engine's mutex is held in each function.
//
// Invariants
//   H1  A shard that is drained is this node's.
//   H2  A shard comes in two steps: it is gained, and it is taken when numbers of messages were
//       reserved after that. Each number that a former owner has given is therefore smaller.
//   H3  One task takes shards over, as long as some are gained and not taken.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "durable/memory/filling.hpp"
#include "durable/memory/shard_scope.hpp"
#include "troupe/durable/storage.hpp"

namespace troupe::durable::parts {

class shards {
 public:
  // Null: there is no cluster.
  explicit shards(std::shared_ptr<shard_scope> scope)
      : scope_(std::move(scope)), fences_(scope_ == nullptr ? 0 : shard_count) {}
  shards(const shards&) = delete;
  shards& operator=(const shards&) = delete;

  bool is_divided() const noexcept { return scope_ != nullptr; }
  shard_scope& scope() const noexcept { return *scope_; }
  std::uint32_t of(const actor_name& actor) const noexcept {
    return is_divided() ? scope_->shard_of(actor.kind, actor.key) : 0;
  }
  bool is_here(std::uint32_t shard) const noexcept { return !is_divided() || fences_[shard] != 0; }
  // Whether messages may begin there.
  bool is_open(std::uint32_t shard) const noexcept { return is_here(shard) && !drains_[shard]; }
  // Of these the ones that this node has, with the same fence.
  shard_set held_of(const std::vector<held_shard>& named) const noexcept;
  std::vector<std::uint32_t> all_here() const;

  // Shards come (H2). Returns those that this node had already, with another fence.
  shard_set gain(const std::vector<held_shard>& named);
  // The task that takes them over (H3). Returns false if none has to begin.
  bool begin_taking() noexcept;
  // Returns false if nothing is gained: then the task ends.
  bool take_next();
  void take();

  // Shards leave. Returns those that were this node's.
  shard_set lose(const std::vector<std::uint32_t>& named);
  void drain(const shard_set& leaving);
  void drop(const shard_set& lost);
  // The shard that was gained with this fence is given away before it was taken.
  void give_away(held_shard gained);
  // Something of a lost shard is in memory or in the open batch: all is forgotten with the next
  // batch.
  void must_forget(bool now) noexcept { must_forget_ = now; }
  bool must_forget() const noexcept { return must_forget_; }

  // Writes into the batch which fences its transaction has to check.
  void name_in(filling& taken) const;
  // Of the shards of the batch those whose leases have ended.
  std::vector<std::uint32_t> ended_of(const filling& taken) const;

 private:
  using fences = std::map<std::uint32_t, std::uint64_t>;

  const std::shared_ptr<shard_scope> scope_;
  std::vector<std::uint64_t> fences_;  // by shard; 0: this node does not act for it
  shard_set drains_;
  fences gained_, taking_;
  bool takes_over_ = false;
  bool must_forget_ = false;
};

}  // namespace troupe::durable::parts
