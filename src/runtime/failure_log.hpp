// failure_log: the failures that no run() has thrown yet, in the order in which they happened.
//
// Threads: any. A failure is kept also when memory is out, which may be why something failed: the log has room for
// 16 more at any time. When that is used up too, one entry says that there were others.
#pragma once

#include <cstddef>
#include <exception>
#include <list>
#include <mutex>
#include <vector>

#include "actor/system.hpp"
#include "troupe/runtime/options.hpp"

namespace troupe {

class failure_log {
 public:
  failure_log();

  void add(std::exception_ptr what, const actor::failed_call& where) noexcept;
  std::vector<failure> all() const;
  std::uint64_t count() const;  // so far
  failure thrown() const;
  void clear() noexcept;
  void throw_first();  // nothing when there is none

 private:
  struct entry {
    std::exception_ptr what;
    actor::failed_call where;
    bool of_others = false;  // that could not be kept
  };
  static constexpr std::size_t room = 16;
  void reuse(std::list<entry>& nodes) noexcept;

  mutable std::mutex mutex_;  // no exception is destroyed inside: its destructor is the user's
  std::list<entry> waiting_;
  std::list<entry> spare_;   // nodes for when there is no memory
  std::list<entry> others_;  // the one for others, unless it waits
  entry thrown_;
  std::uint64_t added_ = 0;
};

}  // namespace troupe
