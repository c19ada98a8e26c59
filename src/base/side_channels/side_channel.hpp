// side_channel: whether something works that a program does beside its work, for those who watch
// it: it notifies its service manager, answers questions about itself, writes a log, exports spans.
//
// A side channel may fail, and the program continues. This class is the one place that decides the
// consequences of a failure (docs/protocols/side_channels.md):
//   S1  Nothing is thrown into the program, and no thread of it waits.
//   S2  The first failure is reported, by one line on standard error, and its end by a second line.
//       Those that follow are counted. A channel writes at most two lines in `report_pause`, even
//       if it fails and works by turns.
//   S3  The channel is tried again, after `pause_min`, and then after twice the pause before, up to
//       `pause_max`.
// The owner of a channel asks may_try() before it tries, and reports the end: works() or failed().
//
// Thread: any; also a signal handler. Each channel is a constant-initialized object of the process.
// Rejected: an exception type for it (each caller would have to catch it, and the first one that
// did not would end the program); a line for each failure (a full disk would fill another disk); a
// thread that retries for all channels (all but one have a thread of their own already).
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace troupe::base {

class side_channel {
 public:
  static constexpr std::int64_t pause_min_ns = 100'000'000, pause_max_ns = 60'000'000'000,
                                report_pause_ns = 60'000'000'000;

  // A short noun for reports, such as "observation". It must be a constant.
  explicit constexpr side_channel(std::string_view name) noexcept : name_(name) {}
  side_channel(const side_channel&) = delete;
  side_channel& operator=(const side_channel&) = delete;

  std::string_view name() const noexcept { return name_; }
  // Whether it has failed since it worked last.
  bool is_failing() const noexcept;
  // Whether it works as far as is known, or is to be tried again now.
  bool may_try() const noexcept;
  // When it is to be tried again, on the clock of now_ns(); 0 if it works.
  std::int64_t next_try_ns() const noexcept;

  // A try has failed: the reason and the remedy. `error` is an error number, or 0. Control
  // characters of the texts are not written as such.
  void failed(std::string_view why, int error = 0, std::string_view remedy = {}) noexcept;
  // A try has succeeded. Costs a load if none has failed before.
  void works() noexcept;
  // How many tries have failed so far.
  std::uint64_t failures() const noexcept;

 private:
  void report(std::string_view why, int error, std::string_view remedy) noexcept;

  const std::string_view name_;
  std::atomic<std::uint64_t> failures_{0};
  std::atomic<std::uint32_t> in_a_row_{0};
  std::atomic<std::int64_t> next_try_ns_{0};
  std::atomic<std::int64_t> reported_ns_{0};  // the last report; 0: none
  std::atomic<bool> is_reported_{false};      // of the failure that lasts
};

}  // namespace troupe::base
