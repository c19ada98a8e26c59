// actors: the durable actors in memory, by name and by use.
//
// Lock: the engine's mutex is held in each function. The vector that take_gone() returns is
// destroyed without it: the objects are the program's, and their ends may use the store.
//
// Invariants
//   A1  An actor that runs is in the hands of a task, or in the list of ready actors; every other
//       actor is in the list of unused actors, the least recently used first. Only actors of the
//       second list leave memory.
//   A2  An actor leaves memory only when all its changes are stored and no ask from it or to it
//       lacks its answer.
//   A3  An actor has the same address until it leaves memory.
//   A4  As long as an actor is ready, there is a runner: a task that handles the messages of ready
//       actors. A runner ends when it finds none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "durable/memory/actor_in_memory.hpp"
#include "durable/memory/shard_scope.hpp"
#include "troupe/base/intrusive_list.hpp"

namespace troupe::durable::parts {

// Not of the address: a seed repeats the order in which actors are met.
struct name_hash {
  std::size_t operator()(
      const std::pair<const kind_table*, std::string_view>& name) const noexcept {
    return std::hash<std::string_view>()(name.second) * 31 +
           std::hash<std::string_view>()(name.first->name);
  }
};

class actors {
  using table = std::unordered_map<std::pair<const kind_table*, std::string_view>,
                                   std::unique_ptr<activation>, name_hash>;

 public:
  explicit actors(std::size_t most) noexcept : most_(most) {}
  actors(const actors&) = delete;
  actors& operator=(const actors&) = delete;

  std::size_t size() const noexcept { return all_.size(); }
  table::const_iterator begin() const noexcept { return all_.begin(); }
  table::const_iterator end() const noexcept { return all_.end(); }

  // Null: it is not in memory.
  activation* find(const kind_table& kind, std::string_view key) const noexcept;
  activation& add(const kind_table& kind, const std::string& key, std::uint32_t shard,
                  std::int64_t now_ns);

  // It has messages, and waits for a runner; or nothing handles its messages any more.
  void begin_run(activation& actor) noexcept;
  void end_run(activation& actor, std::int64_t now_ns) noexcept;
  // It runs, and waits for a runner once more, behind all others.
  void queue_again(activation& actor) noexcept { ready_.push_back(actor); }
  bool has_ready() const noexcept { return !ready_.empty(); }
  // Null: no actor is ready.
  activation* take_ready() noexcept;
  unsigned runners() const noexcept { return runners_; }
  void begin_runner() noexcept { ++runners_; }
  void end_runner() noexcept;

  // Its object is destroyed when the mutex is free.
  void let_go(activation& actor);
  std::vector<object> take_gone() noexcept { return std::exchange(gone_, {}); }

  // Unloads at most so many actors that were not used since then. Changes of batches up to
  // `stored` are stored.
  void unload(std::size_t most, std::int64_t used_before_ns, std::uint64_t stored);
  // For so many more; beyond the limit the least recently used actors leave.
  void make_room(std::size_t added, std::uint64_t stored);
  std::uint64_t unloaded() const noexcept { return unloaded_; }
  // All actors of these shards but the running ones and those with asks that lack their answers.
  void drop(const shard_set& lost);

 private:
  void link(activation& actor, std::int64_t now_ns) noexcept;
  void unlink(activation& actor) noexcept;
  void leave(activation& actor);

  const std::size_t most_;
  table all_;
  base::intrusive_list<activation, &activation::listed> by_use_;
  base::intrusive_list<activation, &activation::listed> ready_;
  unsigned runners_ = 0;
  std::vector<object> gone_;
  std::uint64_t unloaded_ = 0;
};

}  // namespace troupe::durable::parts
