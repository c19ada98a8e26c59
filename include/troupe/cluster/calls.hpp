// calls: a message to an actor of a cluster on its way. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/base/small_mutex.hpp"
#include "troupe/cluster/error.hpp"
#include "troupe/durable/call.hpp"
#include "troupe/durable/codec.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/sync/semaphore.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/trace_context.hpp"

namespace troupe::cluster::parts {

class node_state;
using state_ref = std::shared_ptr<node_state>;
using bytes = std::vector<std::byte>;
using durable::parts::answer_to;
struct class_table;
struct method_entry;

// The shard number of actors that belong to one node each: no shard has this number.
inline constexpr std::uint32_t own_shard = 1'024;

// The maximum bytes of a key, and of the names of a class and of its methods, on every node. A key
// is checked where a program names it, so that the actor's node makes no difference.
inline constexpr std::size_t name_bytes_max = 65'535;
// For a durable actor: half of the default limit of a NATS server for a message.
inline constexpr std::size_t durable_key_bytes_max = std::size_t{512} * 1024;
// Throws usage_error for a key that is longer.
void check_key(std::string_view key);

// The address of an actor.
struct address {
  const class_table* kind = nullptr;
  std::string key;
  std::uint32_t shard = 0;
  std::string member;  // of an actor that is on one node each: that node's id
};

// An actor that is on this node. The sender of a message for it keeps it here.
struct activation {
  activation(state_ref its_node, parts::address its_address, std::uint64_t its_fence)
      : node(std::move(its_node)), address(std::move(its_address)), fence(its_fence) {}
  activation(const activation&) = delete;
  activation& operator=(const activation&) = delete;
  virtual ~activation() = default;
  // Under the lock of its shard: ends the actor at once, as a crash of the node does.
  virtual void end() const = 0;

  const state_ref node;
  const parts::address address;
  const std::uint64_t fence;
  std::atomic<std::int64_t> used_ns{0};
  bool is_made = false;  // under the lock of its shard
};

using shard_lock = std::unique_lock<base::small_mutex>;

// The actor, and the lock of its shard. No actor: it is not on this node.
struct found_actor {
  shard_lock held;
  std::shared_ptr<activation> it;
  bool is_new = false;
};
// `behind`: if true, the actor is not found while earlier messages of this node to its shard are
// under way.
found_actor find_here(const state_ref& on, const address& target, bool behind);
shard_lock lock_shard(activation& actor);
// Removes an actor whose constructor has thrown from its shard's table.
void remove(activation& actor) noexcept;

// The handler has run, but its node no longer owned the actor when the answer was ready.
class answer_too_late : public error {
 public:
  answer_too_late();
};
// Throws error (unreachable) if this node does not own the actor any more. Cost: two loads and the
// clock.
void check_owned(const activation& actor);
bool is_owned(const activation& actor) noexcept;
// Throws answer_too_late in that case.
void check_may_answer(const activation& actor);
// The current exception, in the form in which a caller on any node gets it.
std::exception_ptr travelling(const node_state& on) noexcept;

runtime& runtime_of(const node_state& on) noexcept;

// The sender of a message that is handled on this node. Without give() or fail() the sender finally
// gets the error `lost`.
class served {
 public:
  served(state_ref on, std::string reply, semaphore::permit permit) noexcept;
  served(state_ref on, std::unique_ptr<answer_to> answer) noexcept;
  served(const served&) = delete;
  served& operator=(const served&) = delete;
  ~served();
  static void* operator new(std::size_t size) { return memory::allocate(size); }
  static void operator delete(void* block, std::size_t size) noexcept {
    memory::deallocate(block, size);
  }

  const state_ref& node() const noexcept { return on_; }
  bool wants_answer() const noexcept { return answer_ != nullptr || !reply_.empty(); }
  // These two answer the sender, with a value or an exception; one of them is called, once.
  void give(const bytes& value) noexcept;
  // The exception, as travelling() returns it.
  void fail(const std::exception_ptr& why) noexcept;
  // For a message without an answer. The node must live longer than the permit.
  semaphore::permit take_permit() noexcept { return std::move(permit_); }
  // Passes the duty to answer to the caller.
  std::unique_ptr<answer_to> forget() noexcept {
    reply_.clear();
    return std::move(answer_);
  }

  std::int64_t deadline_ns = 0;  // in the time of the runtime; 0: none
  std::optional<trace_context> trace;

 private:
  state_ref on_;
  std::string reply_;
  std::unique_ptr<answer_to> answer_;
  semaphore::permit permit_;
};

// Runs it within the message's deadline, in the message's trace.
task<bytes> within_limits(const served& message, task<bytes> answer);

// Sends it to the node that owns the actor; `answer` is null for a tell. Never throws for an ask:
// a failure is the answer. Throws error for a tell for which there is no space.
void send_away(const state_ref& on, address to, const method_entry& method, bytes arguments,
               std::unique_ptr<answer_to> answer);

// Returns the beginning of a tell's frame; the arguments belong behind it.
bytes begin_tell(const address& target, const method_entry& method);
// Sends such a frame to the node that owns the actor. Throws error if there is no space.
void tell_away(const state_ref& on, const address& target, const bytes& frame);

// While it exists, refs that this thread reads are refs of that node.
class reading_on {
 public:
  explicit reading_on(const state_ref& on) noexcept;  // which must live as long
  explicit reading_on(state_ref&&) = delete;
  reading_on(const reading_on&) = delete;
  reading_on& operator=(const reading_on&) = delete;
  ~reading_on();

 private:
  const state_ref* before_;
};
// That node. Throws decode_error if there is none.
const state_ref& read_on();

// Throw usage_error, which names the class, if the node was not given it.
const class_table& table_of(const node_state& on, const void* tag, const char* name);
// Of the name of a class; throws decode_error if the node was not given it.
const class_table& table_of(const node_state& on, std::string_view name);
std::uint32_t shard_of(std::string_view kind, std::string_view key) noexcept;

}  // namespace troupe::cluster::parts
