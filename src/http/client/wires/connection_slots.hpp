// connection_slots: the number of connections to one origin in use, and the requests that wait for
// a connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "troupe/base/small_mutex.hpp"
#include "troupe/http/client.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/sync/semaphore.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

struct origin_slots {
  explicit origin_slots(std::size_t most) : free(most) {}
  semaphore free;
  std::size_t waiting = 0;  // under the mutex of connection_slots
};

// The right to use one connection to an origin. Kept connections that are not in use have none.
class connection_slot {
 public:
  connection_slot(std::shared_ptr<origin_slots> slots, semaphore::permit permit) noexcept
      : slots_(std::move(slots)), permit_(std::move(permit)) {}
  connection_slot(connection_slot&&) noexcept = default;
  connection_slot& operator=(connection_slot&&) = delete;

  // How many more may be used; only a hint.
  std::size_t others() const noexcept { return slots_->free.available(); }

 private:
  std::shared_ptr<origin_slots> slots_;
  semaphore::permit permit_;  // goes before the semaphore
};

// Thread: any. Origins without users and waiters take no memory for long.
class connection_slots {
 public:
  explicit connection_slots(const client_options& options);
  // Waits for a slot, in the order of the callers. Throws origin_full, timed_out, cancelled.
  task<connection_slot> take(std::string origin, tasks::limits within);
  // Nothing if there is no slot now.
  std::optional<connection_slot> try_take(const std::string& origin);

 private:
  class waiting_claim;
  std::shared_ptr<origin_slots> of(const std::string& origin);

  const std::size_t per_origin_, waiting_max_;
  const std::chrono::nanoseconds waiting_time_;
  base::small_mutex mutex_;
  std::map<std::string, std::weak_ptr<origin_slots>> all_;
  std::size_t prune_at_ = 64;
};

}  // namespace troupe::http
