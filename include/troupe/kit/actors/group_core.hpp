// group_core: the part of a group of actors that does not depend on their class.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "troupe/base/error.hpp"

namespace troupe {

// Which member of an actor_group gets the next message.
//
// Example:
//     struct Worker {
//       void work(int) {}
//     };
//     troupe::runtime rt;
//     troupe::actor_group<Worker> workers(troupe::group_choice::least_loaded);
//     for (int i = 0; i < 4; ++i) workers.add(rt.spawn<Worker>());
//     for (int i = 0; i < 100; ++i) workers.tell<&Worker::work>(i);
//     rt.run();
enum class group_choice : std::uint8_t {
  round_robin,  // one after the other
  random,       // any; under the simulated policy the random numbers come from the seed
  // the one that has the fewest messages of this group before it, with the one that it handles
  least_loaded,
};

// A message was sent to an actor_group that has no members.
class group_empty : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::none, verdict::again::later};
  }
};

namespace kit {

using load_count = std::atomic<std::size_t>;

// Counts a message among a member's messages, as long as the message lives. Rejected: to count the
// messages in the member's mailbox. A mailbox is a list whose length is not kept, and a count in it
// would cost each message of each actor an atomic operation.
class load_token {
 public:
  explicit load_token(std::shared_ptr<load_count> count) noexcept : count_(std::move(count)) {
    // order: relaxed  a hint
    count_->fetch_add(1, std::memory_order_relaxed);
  }
  load_token(load_token&& other) noexcept : count_(std::move(other.count_)) {}
  load_token& operator=(load_token&&) = delete;
  ~load_token() {
    // order: relaxed  a hint
    if (count_ != nullptr) count_->fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::shared_ptr<load_count> count_;
};

// A number between 0 and `below`, which is not 0.
std::size_t random_below(std::size_t below) noexcept;
// How well a member fits a key: the best one gets it.
std::uint64_t fitness(std::uint64_t key_hash, std::uint64_t member) noexcept;
// For the checks of the group (G1): it has as many members as places, and this member is in its
// place.
void check_group(std::size_t members, std::size_t places, bool is_in_place) noexcept;
[[noreturn]] void refuse_empty_group();

}  // namespace kit

}  // namespace troupe
