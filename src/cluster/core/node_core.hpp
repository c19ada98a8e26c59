// node_core: the things that all parts of a node use: its options and classes, its way to other
// nodes, its stage, and its view of the owners of shards. It includes none of the parts.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>

#include "cluster/core/ownership.hpp"
#include "cluster/core/stage.hpp"
#include "cluster/placement/placement.hpp"
#include "cluster/transport/transport.hpp"
#include "durable/memory/outside_calls.hpp"
#include "observe/numbers/sharded.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/durable/storage.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::cluster::parts {

// order: counters, on which no decision depends.
inline constexpr auto relaxed = std::memory_order_relaxed;

using durable::parts::outside_calls;

// Before a message looks again for the owner of its actor; it doubles.
inline constexpr std::chrono::milliseconds pause_first{2}, pause_last{100};

// How options::database begins when it names a SQLite file.
inline constexpr std::string_view sqlite_database = "sqlite:";

// The means of a node, apart from its runtime.
struct node_means {
  std::unique_ptr<transport> way;
  std::function<std::unique_ptr<lease_store>()> leases;
  bool is_alone = false;  // its leases never expire
  // Of its durable actors; null: it has none.
  std::unique_ptr<durable::storage> storage;
  // By which its leases run out; null: its machine's.
  std::function<std::chrono::nanoseconds()> clock{};
};

// Messages to other nodes.
struct traffic_counts {
  // By options::waiting_max, therefore exact. Each message changes it twice.
  alignas(base::line_bytes) std::atomic<std::size_t> waiting{0};
  alignas(base::line_bytes) observe::sharded_counter sent;
  std::atomic<std::uint64_t> sent_again{0}, failed{0};
};

// Thread: any, once the node has begun.
class node_core {
 public:
  // Errors: option_error.
  node_core(runtime& on, options chosen, setup with);
  node_core(const node_core&) = delete;
  node_core& operator=(const node_core&) = delete;
  ~node_core();

  void begin(node_means with, std::weak_ptr<node_state> node, placement::hooks hooks);

  runtime& on() const noexcept { return on_; }
  const options& chosen() const noexcept { return chosen_; }
  const setup& with() const noexcept { return with_; }
  const cluster::member& self() const noexcept { return self_; }
  bool is_alone() const noexcept { return is_alone_; }
  bool is_connected() const { return is_alone_ || way_->is_connected(); }
  transport& way() const noexcept { return *way_; }
  // Null: the node ends, without its last copy.
  state_ref node() const noexcept { return node_.lock(); }
  const std::weak_ptr<node_state>& weak_node() const noexcept { return node_; }
  node_stage& stage() noexcept { return stage_; }
  const node_stage& stage() const noexcept { return stage_; }
  ownership& owners() noexcept { return owners_; }
  const ownership& owners() const noexcept { return owners_; }
  traffic_counts& traffic() noexcept { return traffic_; }
  const traffic_counts& traffic() const noexcept { return traffic_; }

  // Of another attempt to join.
  std::unique_ptr<placement> make_placement() const;
  std::unique_ptr<lease_store> make_leases() const { return leases_(); }

  std::int64_t now_ns() const { return on_.now().count(); }
  std::int64_t ns_after(time_span span) const { return span.after(on_.now()).count(); }
  std::string subject_of(std::string_view member) const;
  std::string changes_subject() const;
  std::string topic_subject(std::string_view topic) const;
  bool owns(std::uint32_t shard, std::uint64_t fence) const noexcept {
    return shard == own_shard || owners_.owns(shard, fence);
  }
  // Null: the node was not given it.
  const class_table* find_kind(const void* tag) const noexcept;
  const class_table* find_kind(std::string_view name) const noexcept;
  const exception_entry* find_exception(const std::type_info& type) const noexcept;
  const exception_entry* find_exception(std::string_view name) const noexcept;

  // Errors: error(stopped) after the node has left.
  void check_not_left() const;
  // Counts one more message that waits. Errors: error(full).
  void add_waiting();

  // Sends an answer to another node. Without memory the ask times out.
  void answer(std::string reply, std::string frame) noexcept;
  bool has_sent_answers() const noexcept {
    // order: acquire  pairs with answer_count
    return answering_.load(std::memory_order_acquire) == 0;
  }

  // Starts a task that keeps the node. Errors of troupe in it are dropped, and without memory it
  // does not run.
  void start_quietly(std::function<task<>()> makes) noexcept;

 private:
  static task<> send_answer(state_ref keeps, node_core* self, std::string reply, std::string frame);

  runtime& on_;
  const options chosen_;
  const setup with_;
  const cluster::member self_;
  traffic_counts traffic_;
  // Answers that were not sent yet. Each one changes it twice; the others are only read.
  alignas(base::line_bytes) std::atomic<std::size_t> answering_{0};
  // Set by begin():
  alignas(base::line_bytes) std::weak_ptr<node_state> node_;
  std::unique_ptr<transport> way_;
  bool is_alone_ = false;
  std::function<std::unique_ptr<lease_store>()> leases_;
  std::function<std::chrono::nanoseconds()> clock_;
  placement::hooks hooks_;
  node_stage stage_;
  ownership owners_{stage_};
};

// Of a node of which a caller has only a ref.
node_core& core_of(node_state& node) noexcept;

}  // namespace troupe::cluster::parts
