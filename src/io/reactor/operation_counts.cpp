#include "io/reactor/operation_counts.hpp"

#include <bit>
#include <cerrno>
#include <initializer_list>
#include <new>

#include "observe/ticks.hpp"

namespace troupe::io {
namespace {

// operation::began: the time of its start, with the logarithm of the sample's weight in the
// lowest bits. 0: it is no sample.
constexpr std::uint64_t stride_mask = 15;
static_assert(std::bit_width(observe::sample_stride::most) - 1 <= stride_mask);

std::uint64_t begin_sample(observe::sample_stride& stride) noexcept {
  const std::uint64_t now = observe::now_ticks();
  const auto width = static_cast<std::uint64_t>(std::bit_width(stride.get()) - 1);
  stride.taken(now);
  return (now & ~stride_mask) | width;
}

constexpr std::uint32_t set_of(std::initializer_list<action> kinds) noexcept {
  std::uint32_t bits = 0;
  for (const action kind : kinds) bits |= std::uint32_t{1} << static_cast<unsigned>(kind);
  return bits;
}
static_assert(actions <= 32);
constexpr std::uint32_t transfers =
    set_of({action::read, action::write, action::receive, action::send, action::send_file,
            action::read_at, action::write_at});

}  // namespace

const char* name_of(action opcode) noexcept {
  static constexpr const char* names[] = {
      "read",      "write", "accept", "connect", "readable", "writable", "receive", "send",
      "send_file", "ended", "open",   "read_at", "write_at", "sync",     "close",   "status"};
  static_assert(std::size(names) == actions);
  return names[static_cast<std::size_t>(opcode)];
}

thread_operations::~thread_operations() {
  // order: relaxed  no other thread uses them any longer
  for (auto& count : kinds_) delete count.load(std::memory_order_relaxed);
}

operation_count* thread_operations::make(std::atomic<operation_count*>& place) noexcept {
  auto* const counter = new (std::nothrow) operation_count;
  // order: release  pairs with for_each_kind/acquire
  place.store(counter, std::memory_order_release);
  return counter;
}

void operation_counts::begin(operation& operation) noexcept {
  operation.began = 0;
  thread_operations* const own = here();
  operation_count* const count = own == nullptr ? nullptr : own->of(operation.opcode);
  if (count != nullptr && count->stride.samples(count->begun.add(1)))
    operation.began = begin_sample(count->stride);
}

void operation_counts::end(const operation& operation) noexcept {
  thread_operations* const own = here();
  operation_count* const count = own == nullptr ? nullptr : own->of(operation.opcode);
  if (count == nullptr) return;
  count->done.add(1);
  if ((transfers >> static_cast<unsigned>(operation.opcode) & 1) != 0)
    count->bytes.add(operation.done);
  if (operation.result < 0)
    (operation.result == -ECANCELED ? count->cancelled : count->errors).add(1);
  if (operation.began == 0) return;
  const std::uint64_t now = observe::now_ticks(), began = operation.began & ~stride_mask;
  count->samples.add(1);
  count->took.add(now > began ? now - began : 0,
                  std::uint64_t{1} << (operation.began & stride_mask));
}

void operation_counts::add_write(std::ptrdiff_t result) noexcept {
  thread_operations* const own = here();
  operation_count* const count = own == nullptr ? nullptr : own->of(action::write);
  if (count == nullptr) return;
  count->done.add(1);
  if (result > 0) [[likely]] {
    count->bytes.add(static_cast<std::uint64_t>(result));
  } else if (result < 0) {
    count->errors.add(1);
  }
}

}  // namespace troupe::io
