#include "io/reactor/operation_counts.hpp"

#include <bit>
#include <cerrno>
#include <new>

#include "observe/ticks.hpp"

namespace troupe::io {
namespace {

// operation::began: the time of its start, with the logarithm of what the sample stands for in the
// lowest bits. 0: it is no sample.
constexpr std::uint64_t stride_mask = 15;
static_assert(std::bit_width(observe::sample_stride::most) - 1 <= stride_mask);

std::uint64_t begin_sample(observe::sample_stride& stride) noexcept {
  const std::uint64_t now = observe::now_ticks();
  const auto width = static_cast<std::uint64_t>(std::bit_width(stride.get()) - 1);
  stride.taken(now);
  return (now & ~stride_mask) | width;
}

std::uint64_t bytes_of(const operation& one) noexcept {
  switch (one.what) {
    case action::read:
    case action::write:
    case action::receive:
    case action::send:
    case action::send_file:
    case action::read_at:
    case action::write_at:
      return one.done;
    default:
      return 0;
  }
}

}  // namespace

const char* name_of(action what) noexcept {
  static constexpr const char* names[] = {
      "read",      "write", "accept", "connect", "readable", "writable", "receive", "send",
      "send_file", "ended", "open",   "read_at", "write_at", "sync",     "close",   "status"};
  static_assert(std::size(names) == actions);
  return names[static_cast<std::size_t>(what)];
}

thread_operations::~thread_operations() {
  // order: relaxed  no other thread uses them any longer
  for (auto& one : kinds_) delete one.load(std::memory_order_relaxed);
}

operation_count* thread_operations::of(action what) noexcept {
  auto& place = kinds_[static_cast<std::size_t>(what)];
  // order: relaxed  the thread's own
  if (operation_count* const known = place.load(std::memory_order_relaxed)) return known;
  auto* const made = new (std::nothrow) operation_count;
  // order: release  pairs with for_each_kind/acquire
  place.store(made, std::memory_order_release);
  return made;
}

void operation_counts::begin(operation& one) noexcept {
  one.began = 0;
  thread_operations* const own = here();
  operation_count* const its = own == nullptr ? nullptr : own->of(one.what);
  if (its != nullptr && its->stride.samples(its->begun.add(1)))
    one.began = begin_sample(its->stride);
}

void operation_counts::end(const operation& one) noexcept {
  thread_operations* const own = here();
  operation_count* const its = own == nullptr ? nullptr : own->of(one.what);
  if (its == nullptr) return;
  its->done.add(1);
  its->bytes.add(bytes_of(one));
  if (one.result < 0) (one.result == -ECANCELED ? its->cancelled : its->errors).add(1);
  if (one.began == 0) return;
  const std::uint64_t now = observe::now_ticks(), began = one.began & ~stride_mask;
  its->samples.add(1);
  its->took.add(now > began ? now - began : 0, std::uint64_t{1} << (one.began & stride_mask));
}

void operation_counts::add_write(std::ptrdiff_t result) noexcept {
  thread_operations* const own = here();
  operation_count* const its = own == nullptr ? nullptr : own->of(action::write);
  if (its == nullptr) return;
  its->begun.add(1);
  its->done.add(1);
  if (result < 0) its->errors.add(1);
  if (result > 0) its->bytes.add(static_cast<std::uint64_t>(result));
}

}  // namespace troupe::io
