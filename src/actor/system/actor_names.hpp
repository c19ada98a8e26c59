// actor_names: the names that the actors of one runtime were given at spawn, by their ids.
//
// They lie beside the actors, so that an actor without a name costs nothing, and so that a reader
// needs no access to memory that may go meanwhile. Threads: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace troupe::actor {

class actor_names {
 public:
  // Returns false when memory has run out: such an actor has no name.
  bool add(std::uint64_t id, std::string_view name) noexcept;
  void remove(std::uint64_t id) noexcept;
  // The name of the actor; empty if it has none. Throws std::bad_alloc.
  std::string find(std::uint64_t id) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::string> names_;
};

}  // namespace troupe::actor
