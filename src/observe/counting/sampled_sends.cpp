#include "observe/counting/sampled_sends.hpp"

#include "observe/ticks.hpp"

namespace troupe::observe {
namespace {

// The first ones of a handler are all samples; then one in `few_step`, then one in `many_step`.
constexpr std::uint64_t all_until = 16, few_until = 64;
constexpr std::uint64_t few_step = 64, many_step = 4096;

constinit thread_local std::uint32_t random_state [[gnu::tls_model("initial-exec")]] = 2463534242;

// False: as many threads have a sample as can be counted.
bool begin_sampling() noexcept {
  // order: relaxed (all)  the thread itself sees its writes; others only look in vain
  std::uint8_t seen = watches.load(std::memory_order_relaxed);
  do {
    if (seen / one_sampler == samplers_max) return false;
  } while (!watches.compare_exchange_weak(seen, static_cast<std::uint8_t>(seen + one_sampler),
                                          std::memory_order_relaxed, std::memory_order_relaxed));
  return true;
}

}  // namespace

constinit thread_local sampled_sends* sampled_sends::of_thread = nullptr;
constinit thread_local send_sampler send_sampler::of_thread{};

std::uint32_t random_below(std::uint32_t bound) noexcept {
  std::uint32_t next = random_state;  // xorshift
  next ^= next << 13;
  next ^= next >> 17;
  next ^= next << 5;
  random_state = next;
  return next % bound;
}

std::uint32_t random_gap(std::uint64_t stride) noexcept {
  const auto mean = static_cast<std::uint32_t>(stride);
  return mean <= 1 ? 1 : mean / 2 + random_below(mean);
}

TROUPE_NOINLINE sampled_sends::sampled_sends(std::uint64_t stands_for) noexcept
    : stands_for_(stands_for), before_(of_thread), is_counted_(begin_sampling()) {
  of_thread = this;
}
TROUPE_NOINLINE sampled_sends::~sampled_sends() {
  // order: relaxed  other threads only look in vain
  if (is_counted_)
    watches.fetch_sub(static_cast<std::uint8_t>(one_sampler), std::memory_order_relaxed);
  of_thread = before_;
}

TROUPE_NOINLINE std::uint64_t sampled_sends::take() noexcept {
  sampled_sends* const own = of_thread;
  if (own == nullptr) return 0;
  if (own->left_ != 0) {
    --own->left_;
    return 0;
  }
  const std::uint64_t sample = own->stands_for_ * own->step_;
  ++own->taken_;
  own->left_ = own->step_ - 1;
  if (own->taken_ == all_until || own->taken_ == few_until) {
    own->step_ = own->taken_ == all_until ? few_step : many_step;
    // so that on average nothing is lost behind the last sample
    own->left_ = random_below(static_cast<std::uint32_t>(own->step_));
  }
  return sample;
}

TROUPE_NOINLINE std::uint64_t send_sampler::take() noexcept {
  send_sampler& own = of_thread;
  if (own.left_ != 0) {
    --own.left_;
    return 0;
  }
  const std::uint64_t stands_for = own.stride_.get();
  own.stride_.taken(now_ticks());
  own.left_ = random_gap(own.stride_.get()) - 1;
  return stands_for;
}

TROUPE_NOINLINE void sampled_procedure::begin() noexcept {
  if (const std::uint64_t stands_for = send_sampler::take()) sends_.emplace(stands_for);
}

}  // namespace troupe::observe
