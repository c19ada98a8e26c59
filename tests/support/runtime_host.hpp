// runtime_host: a runtime for unit tests of the layers below it: it counts what it is told.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "base/clock.hpp"
#include "sched/runtime_host.hpp"

#include "troupe/base/unique_function.hpp"

namespace troupe::test {

// Base: sched::runtime_host, or an interface that extends it.
template <class Base>
class host_of : public Base {
 public:
  void hold() noexcept override { ++holds; }
  void release() noexcept override { --holds; }
  void out_of_work() noexcept override { ++times_out_of_work; }
  std::int64_t now_ns() const noexcept override { return base::now_ns(); }
  void report(sched::message::handler, std::exception_ptr) noexcept override { ++failures; }
  void run_aside(unique_function<void()> procedure) override { procedure(); }
  unsigned choose_limit(unsigned most) noexcept override { return most; }
  std::uint64_t choose_number() noexcept override { return 0; }
  std::uint32_t choose_case(std::uint32_t) noexcept override { return 0; }

  std::atomic<int> holds{0};
  std::atomic<int> failures{0};
  int times_out_of_work = 0;

 protected:
  host_of() = default;
  ~host_of() = default;
};
class runtime_host final : public host_of<sched::runtime_host> {};

}  // namespace troupe::test
