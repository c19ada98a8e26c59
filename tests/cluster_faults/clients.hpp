// clients: what the clients of one node do to durable registers while faults happen.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "cluster_faults/history.hpp"
#include "troupe/cluster/node.hpp"

namespace troupe::test {

struct Register {
  std::int64_t value = 0;

  std::int64_t read() const { return value; }
  void write(std::int64_t next) { value = next; }
  // Returns whether the value was the expected one.
  bool swap(std::int64_t expected, std::int64_t next) {
    if (value != expected) return false;
    value = next;
    return true;
  }
};

struct client_options {
  int clients = 16;
  // Registers that are in use at a time. After `period` others are used, so that no register has a
  // history that is too long to be searched.
  int keys = 32;
  std::chrono::seconds period{20};
  std::chrono::milliseconds pause{25};  // between operations, on average
  // How long one attempt may take. Every other client tries again under the same id until it knows
  // what has become of its operation.
  std::chrono::milliseconds attempt{3'000};
  std::int64_t begun_ns = 0;  // of the whole test, by monotonic_ns()
  // Of this process in the test: no two operations write the same value.
  std::int64_t number = 0;
};

// Thread: any.
class clients {
 public:
  clients(client_options chosen, const std::string& history);

  // Until stop() was called, and each client has ended its operation.
  task<> run(cluster::node on);
  void stop() noexcept { ends_ = true; }
  // Reads each register that was in use, and tries again until each has answered.
  task<> read_all(cluster::node on);

 private:
  struct operation {
    act what;
    std::int64_t first = 0, second = 0;
  };
  struct outcome {
    ending how = ending::unknown;
    std::int64_t value = 0;
    std::string words{};  // how the last attempt has ended; "wrong: ..." if it should not
  };

  static task<> run_one(clients& self, cluster::node on, int client);
  task<outcome> perform(durable::ref<Register> of, operation what, bool again);
  task<outcome> attempt(durable::ref<Register> of, operation what, bool has_id);
  std::string key_of(std::int64_t period, std::uint64_t number) const;
  std::int64_t period_now() const;

  const client_options chosen_;
  history_file history_;
  std::atomic<bool> ends_{false};
  std::atomic<std::int64_t> last_value_{0};
};

}  // namespace troupe::test
