// failure_log: the failures that no run() has thrown yet, in the order in which they happened.
//
// Threads: any. A failure is kept even when memory is out, since that may be why something failed:
// the log always has spare nodes for 16 more. When those are also used up, one entry reports that
// there were other failures.
//
// Bounded by number and by bytes: the first failures stay, up to half of each limit, and after them
// the newest. Failures between these are dropped, and their contexts released.
// Invariants
//   L1  everything in `first_` happened before everything in `newest_`, and each list is in order.
//   L2  the first failure of all is never dropped: run() throws it.
//   L3  an exception is destroyed outside of the mutex, since its destructor is the user's; and
//       before the memory that it may refer to, which its entry keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <mutex>
#include <vector>

#include "actor/system/actor_system.hpp"
#include "troupe/runtime/options.hpp"

namespace troupe {

class failure_log {
 public:
  failure_log(std::size_t kept_max, std::size_t bytes_max);

  // `heard`: the failure was reported to an observer or to standard error.
  void add(std::exception_ptr failure, const actor::failed_call& where, bool heard) noexcept;
  std::vector<failure> all() const;
  std::vector<failure> take_all();
  struct counts {
    std::uint64_t added = 0, dropped = 0;  // so far
    std::size_t kept = 0, bytes = 0;       // now
  };
  counts count() const;
  failure thrown() const;
  void clear() noexcept;
  void throw_first();  // does nothing when there is none
  // At the runtime's end, when no failure is added any longer: the kept failures that were neither
  // written as a line nor given to on_error.
  std::vector<failure> unheard() const;
  // Destroys everything, except for the memory to which an exception refers that is leaving the
  // runtime's scope now: that memory is freed at the next such exception of this thread, or when
  // the thread ends.
  void end() noexcept;

 private:
  struct entry {
    // keeps the objects to which `exception` refers: declared first, so that it is destroyed last
    // (L3)
    actor::failed_call where;
    std::exception_ptr exception;
    std::size_t bytes = 0;
    bool of_others = false;  // represents failures that could not be kept
    bool heard = false;
    std::uint32_t number = 0;  // of all that were added, the lower half (L1)
    void swap(entry& other) noexcept;
  };
  static constexpr std::size_t spare_max = 16;
  static std::size_t bytes_of(const std::exception_ptr& failure,
                              const actor::failed_call& where) noexcept;
  static failure as_failure(const entry& entry);
  void put(std::list<entry>& node, std::list<entry>& gone) noexcept;
  bool is_newest(const entry& entry) const noexcept;
  void drop_surplus(std::list<entry>& gone) noexcept;
  void take_out(std::list<entry>& all) noexcept;
  void put_back(std::list<entry>& all) noexcept;
  void forget(std::list<entry>& gone) noexcept;

  const std::size_t kept_max_, bytes_max_;
  mutable std::mutex mutex_;
  std::list<entry> first_;
  std::list<entry> newest_;
  std::list<entry> spare_;  // nodes for when memory is out
  // the entry for failures that could not be kept, unless it is in a list
  std::list<entry> others_;
  entry thrown_;
  std::size_t bytes_ = 0, first_bytes_ = 0;
  std::uint64_t added_ = 0, dropped_ = 0;
};

}  // namespace troupe
