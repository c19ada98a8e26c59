// explored: the execution to which the simulated runtimes of this thread, or of this program,
// belong.
//
// explore() gives one to its thread while its body runs. TROUPE_REPLAY=FILE gives one to the
// program; `troupe explore` starts programs in this way, with TROUPE_EXPLORE=FILE for their
// observations (seen_file.hpp). Thread: any.
#pragma once

#include <memory>

#include "sched/exploring/schedule.hpp"
#include "sched/policies/choices.hpp"

namespace troupe::sched::exploring {

// Null if there is none. Throws option_error for a wrong variable or file.
std::shared_ptr<execution> execution_here();
// The execution of explore(), which reports failures itself; null if this thread has none.
execution* explored_in_process() noexcept;

// While it exists, the runtimes that the calling thread makes belong to that execution.
class explored_here {
 public:
  explicit explored_here(std::shared_ptr<execution> owner) noexcept;
  explored_here(const explored_here&) = delete;
  explored_here& operator=(const explored_here&) = delete;
  ~explored_here();

 private:
  friend std::shared_ptr<execution> execution_here();
  friend execution* explored_in_process() noexcept;
  const std::shared_ptr<execution> execution_;
  const explored_here* const outer_;
};

// The source of the choices of a simulated runtime that the calling thread makes.
std::unique_ptr<choice_source> make_source(std::uint64_t seed);

}  // namespace troupe::sched::exploring
