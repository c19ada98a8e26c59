// sampled_sends: which of the messages that a thread sends are samples: those that a sample of a
// handler, a resumption or a procedure sends. Sends that are no samples cost nothing: while no
// thread has a sample, no thread looks here (observe/trace.hpp, `one_sampler`).
//
// Rejected: a count of sends in each thread, down to the next sample. That cost each send about ten
// instructions (docs/decisions/observing.md).
#pragma once

#include <cstdint>
#include <optional>

#include "observe/sample_stride.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::observe {

// Above the bits of `watched`, `watches` counts the threads that have a sample: up to as many as
// there are bits. While more threads have a sample, those beyond look for theirs only as long as
// one of the counted ones has its own.
inline constexpr unsigned one_sampler = 16, samplers_max = 15;

// While this object exists, messages that the calling thread sends are samples, each of which
// represents `stands_for` messages. Of many that one handler sends most are none; the others
// represent them as well.
class sampled_sends {
 public:
  explicit sampled_sends(std::uint64_t stands_for) noexcept;
  sampled_sends(const sampled_sends&) = delete;
  sampled_sends& operator=(const sampled_sends&) = delete;
  ~sampled_sends();

  // The number of messages that the next message of the calling thread represents; 0: it is no
  // sample.
  static std::uint64_t take() noexcept;

 private:
  std::uint64_t stands_for_;
  std::uint64_t taken_ = 0;
  std::uint64_t left_ = 0;  // to send before the next sample
  std::uint64_t step_ = 1;
  sampled_sends* const before_;
  const bool is_counted_;
  static constinit thread_local sampled_sends* of_thread [[gnu::tls_model("initial-exec")]];
};

// The same for sends outside of all handlers, by procedures and by threads that are no
// workers: one in a stride, at random distances.
class send_sampler {
 public:
  // The number of actions that the calling thread's next action represents; 0: it is no sample.
  static std::uint64_t take() noexcept;

 private:
  std::uint64_t left_ = 0;
  sample_stride stride_;
  static constinit thread_local send_sampler of_thread [[gnu::tls_model("initial-exec")]];
};

// While it exists, the calling thread runs a procedure or jobs, no handler: some of these are
// samples. Does nothing while no runtime is observed.
class sampled_procedure {
 public:
  sampled_procedure() noexcept {
    if (is_watched(watched::counts)) [[unlikely]]
      begin();
  }

 private:
  void begin() noexcept;
  std::optional<sampled_sends> sends_;
};

// A random number below `bound`, which is not 0: by a generator of the thread's own.
std::uint32_t random_below(std::uint32_t bound) noexcept;
// A random distance to the next sample; its mean is the stride.
std::uint32_t random_gap(std::uint64_t stride) noexcept;

}  // namespace troupe::observe
