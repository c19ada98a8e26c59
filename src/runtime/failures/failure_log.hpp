// failure_log: the failures that no run() has thrown yet, in the order in which they happened.
//
// Threads: any. A failure is kept also when memory is out, which may be why something failed: the
// log has nodes for 16 more at any time. When those are used up too, one entry says that there were
// others.
//
// Bounded by number and by bytes: the first failures stay, up to half of each limit, and behind
// them the newest. What lies between is dropped, and its context released. Invariants
//   L1  everything in `first_` happened before everything in `newest_`, and each list is in order.
//   L2  the first failure of all is never dropped: run() throws it.
//   L3  an exception is destroyed outside of the mutex, for its destructor is the user's, and
//   before the memory that it may
//       refer to, which its entry keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <mutex>
#include <vector>

#include "actor/actor_system.hpp"
#include "troupe/runtime/options.hpp"

namespace troupe {

class failure_log {
 public:
  failure_log(std::size_t kept_max, std::size_t bytes_max);

  // `heard`: an observer, or who reads standard error, knows of it.
  void add(std::exception_ptr what, const actor::failed_call& where, bool heard) noexcept;
  std::vector<failure> all() const;
  std::vector<failure> take_all();
  struct counts {
    std::uint64_t added = 0, dropped = 0;  // so far
    std::size_t kept = 0, bytes = 0;       // now
  };
  counts count() const;
  failure thrown() const;
  void clear() noexcept;
  void throw_first();  // nothing when there is none
  // At the runtime's end, when nothing is added any more: those that nobody has heard of.
  std::vector<failure> unheard() const;
  // All goes, but what an exception that is on its way out of the runtime's scope refers to: that
  // goes with the next such one of this thread, or with the thread.
  void end() noexcept;

 private:
  struct entry {
    // keeps what `what` refers to: declared first, so that it goes last (L3)
    actor::failed_call where;
    std::exception_ptr what;
    std::size_t bytes = 0;
    bool of_others = false;  // that could not be kept
    bool heard = false;
    void swap(entry& other) noexcept;
  };
  static constexpr std::size_t spare_max = 16;
  static std::size_t bytes_of(const std::exception_ptr& what,
                              const actor::failed_call& where) noexcept;
  static failure as_failure(const entry& of);
  void put(std::list<entry>& node, std::list<entry>& gone) noexcept;
  void drop_surplus(std::list<entry>& gone) noexcept;
  void take_out(std::list<entry>& all) noexcept;
  void put_back(std::list<entry>& all) noexcept;
  void forget(std::list<entry>& gone) noexcept;

  const std::size_t kept_max_, bytes_max_;
  mutable std::mutex mutex_;
  std::list<entry> first_;
  std::list<entry> newest_;
  std::list<entry> spare_;   // nodes for when there is no memory
  std::list<entry> others_;  // the one for others, unless it waits
  entry thrown_;
  std::size_t bytes_ = 0, first_bytes_ = 0;
  std::uint64_t added_ = 0, dropped_ = 0;
};

}  // namespace troupe
