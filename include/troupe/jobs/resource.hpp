// resource: a large value that nobody changes, and whose bytes count against a limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"

namespace troupe {

namespace jobs {

class memory_account;

// What resources take of a runtime's limit: of the runtime whose jobs the calling thread runs, as
// for lazies. Null without one, which is counted nowhere. The account outlives its runtime.
memory_account* charge(std::size_t bytes) noexcept;
void discharge(memory_account& of, std::size_t bytes) noexcept;
// The same. Throws usage_error for more than any process can have: sums of such would wrap round.
std::size_t check_bytes(std::size_t bytes);

template <class Value>
constexpr std::size_t bytes_of(const Value& value) noexcept {
  if constexpr (std::ranges::contiguous_range<const Value> &&
                std::ranges::sized_range<const Value>) {
    return sizeof(Value) +
           std::ranges::size(value) * sizeof(std::ranges::range_value_t<const Value>);
  } else {
    return sizeof(Value);
  }
}

}  // namespace jobs

// A counted handle of a large value that is computed once, and read by many: the samples of a
// sound, an image. Its bytes count against runtime_options::resource_bytes from when it is made
// until the last handle goes, or gives it up by release().
//
// Past that limit what frees memory comes before what needs more: a lazy whose value is a resource
// is not begun by a worker, until enough was freed or somebody wants it. Whoever wants it runs it,
// limit or not: so nobody ever waits for memory, and nothing can deadlock; the limit is passed by
// what is wanted at the same time. A lazy that makes a resource out of others, which it frees, is
// no such one: say so, lazy(memory_use::frees, function). Any thread may hold handles; each handle
// is one thread's.
//
// Example:
//     troupe::runtime rt({.resource_bytes = 64 << 20});
//     auto noise = troupe::lazy([] { return troupe::resource(std::vector<float>(1'000'000, 0.5f));
//     }); auto sum = troupe::lazy([noise] {
//       float all = 0;
//       for (const float one : *noise.get()) all += one;
//       return all;
//     });
//     noise.release();  // the samples go when `sum` is done
//     std::cout << sum.get() << '\n';
template <class T>
class resource {
 public:
  using value_type = T;

  // An empty one.
  resource() noexcept = default;
  // `bytes`: what it takes. By default its own size, and that of its elements if they lie side by
  // side. Throws usage_error for more than 128 TiB.
  explicit resource(T value) : resource(std::move(value), 0) {}
  resource(T value, std::size_t bytes)
      : kept_(new kept{std::move(value), jobs::check_bytes(bytes)}) {
    if (bytes == 0) kept_->bytes = jobs::bytes_of(kept_->value);
    kept_->account = jobs::charge(kept_->bytes);
  }
  resource(const resource& other) noexcept : kept_(other.kept_) {
    // order: relaxed  the caller holds it already
    if (kept_ != nullptr) kept_->handles.fetch_add(1, std::memory_order_relaxed);
  }
  resource(resource&& other) noexcept : kept_(std::exchange(other.kept_, nullptr)) {}
  resource& operator=(resource other) noexcept {
    std::swap(kept_, other.kept_);
    return *this;
  }
  ~resource() { release(); }

  // Throw usage_error when it is empty.
  const T& operator*() const { return get(); }
  const T* operator->() const { return &get(); }
  const T& get() const {
    if (kept_ == nullptr)
      throw usage_error("troupe: resource: it is empty, was moved from, or released");
    return kept_->value;
  }
  explicit operator bool() const noexcept { return kept_ != nullptr; }
  // What it counts; 0 when it is empty.
  std::size_t bytes() const noexcept { return kept_ == nullptr ? 0 : kept_->bytes; }

  // Gives it up before the handle goes.
  void release() noexcept {
    kept* const held = std::exchange(kept_, nullptr);
    // order: acq_rel  what its holder did is seen by the one that frees it; pairs with itself
    if (held == nullptr || held->handles.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    jobs::memory_account* const account = held->account;
    const std::size_t bytes = held->bytes;
    delete held;
    if (account != nullptr) jobs::discharge(*account, bytes);
  }

 private:
  struct kept {
    const T value;
    std::size_t bytes = 0;
    jobs::memory_account* account = nullptr;
    std::atomic<std::uint32_t> handles{1};
  };
  kept* kept_ = nullptr;
};

// What a lazy does to memory, where its type does not say it.
enum class memory_use : std::uint8_t {
  needs,  // more of it: the default of one whose value is a resource
  frees,  // it holds resources that go with it: the default of all others
};

namespace jobs {

template <class T>
inline constexpr memory_use use_of = memory_use::frees;
template <class T>
inline constexpr memory_use use_of<resource<T>> = memory_use::needs;

}  // namespace jobs

}  // namespace troupe
