// membership: the members of the cluster as this node sees them, and the ends of asks to members
// that leave.
//
// Invariants
//   N8  members_ is in order and has each member once. An ask on its way to a member ends some
//       time after the member leaves, and never before.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "cluster/leases/lease_store.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/sync/channel.hpp"

namespace troupe::cluster::parts {

// Thread: any.
class membership {
 public:
  explicit membership(runtime& on) noexcept : on_(on) {}

  // All members of now. Thread: one at a time.
  void change(std::vector<member_row> now);
  std::vector<cluster::member> now() const;
  std::size_t size() const;
  // First the members of now, as members that have joined.
  channel<member_event> watch();
  // Stops when the answer of that member can no longer come.
  std::stop_token end_of(const std::string& member);
  // Ends the watchers.
  void close() noexcept;

 private:
  // Ends asks later, since their answers may be under way.
  void end_later(std::vector<std::stop_source> asks, std::chrono::milliseconds pause);

  runtime& on_;
  mutable std::mutex mutex_;                      // guards the members below
  std::vector<member_row> members_;               // N8
  std::map<std::string, std::stop_source> ends_;  // of members to which messages are on their way
  std::set<std::string> leaving_;                 // members that have announced it
  std::vector<channel<member_event>> watchers_;
};

}  // namespace troupe::cluster::parts
