// runtime_host: the calls of the layers below the runtime to the runtime that they serve.
//
// The runtime implements it once. Nothing here is called for each message, turn or job.
#pragma once

#include <cstdint>
#include <exception>

#include "troupe/base/unique_function.hpp"
#include "troupe/sched/message.hpp"

namespace troupe::sched {

enum class fault : std::uint8_t;
enum class fault_point : std::uint8_t;
struct lineage;

class runtime_host {
 public:
  runtime_host(const runtime_host&) = delete;
  runtime_host& operator=(const runtime_host&) = delete;

  // Keeps the program from being out of work until release(). Any thread.
  virtual void hold() noexcept = 0;
  virtual void release() noexcept = 0;
  // Called by the thread that brings the count of outstanding work to zero.
  virtual void out_of_work() noexcept = 0;

  // Nanoseconds that never go back; virtual time under the simulated policy. Any thread.
  virtual std::int64_t now_ns() const noexcept = 0;

  // Whether the runtime counts its work, for observers. Asked once by each part.
  virtual bool is_observed() const noexcept { return false; }

  // A piece of work that is no actor's has failed; `describes` names its kind. Any thread.
  virtual void report(message::handler describes, std::exception_ptr failure) noexcept = 0;
  // The calling thread, which runs work of the runtime, has dropped a result with this exception.
  virtual void report_dropped(const std::exception_ptr&) noexcept {}

  // Runs the procedure on a thread that may block (in a simulation: after some virtual time), or
  // drops it when the runtime ends. The caller keeps the program alive meanwhile. Any thread.
  // Throws std::bad_alloc, std::system_error.
  virtual void run_aside(unique_function<void()> procedure) = 0;

  // Under the simulated policy only, on the simulation's own thread: how much a turn or a visit may
  // do, from 1 to `most`. Short ones are as frequent as long ones.
  virtual unsigned choose_limit(unsigned most) noexcept = 0;
  // The same: a number of the seed, for random choices of other layers.
  virtual std::uint64_t choose_number() noexcept = 0;
  // The same: which of so many cases of a select happens.
  virtual std::uint32_t choose_case(std::uint32_t count) noexcept = 0;
  // The same: how a call of a storage fails (policies/choices.hpp). `storage` gets a name at its
  // first call; null: it has none.
  virtual fault storage_fault(fault_point where, lineage* storage) {
    static_cast<void>(where), static_cast<void>(storage);
    return fault{};
  }

 protected:
  runtime_host() = default;
  ~runtime_host() = default;
};

}  // namespace troupe::sched
