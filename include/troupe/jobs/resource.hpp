// resource: a large immutable value whose bytes count against a limit.
#pragma once

#include "troupe/base/language.hpp"

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

// Charge bytes of a resource to the limit of a runtime: the runtime whose jobs the calling thread
// runs, as for lazies. Returns null without a runtime; the bytes are then not counted. The account
// outlives its runtime.
memory_account* charge(std::size_t bytes) noexcept;
void discharge(memory_account& account, std::size_t bytes) noexcept;
// Returns `bytes`. Throws usage_error for more than any process can have, since sums of such
// numbers would overflow.
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

// A counted handle of a large value that is computed once and read by many threads, such as the
// samples of a sound, or an image. Its bytes count against runtime_options::resource_bytes from its
// creation until the last handle is destroyed or released.
//
// Above that limit, work that frees memory runs before work that needs more: a worker does not
// begin a lazy whose value is a resource until enough memory was freed, or until the lazy is
// needed. The thread that needs it runs it regardless of the limit. Therefore no thread ever waits
// for memory, and there can be no deadlock; values that are needed at the same time may exceed the
// limit. Declare a lazy that makes a resource from others, and frees those, by
// lazy(memory_use::frees, function). Thread: handles may be on any thread; each handle belongs to
// one thread at a time.
//
// Example:
//     troupe::runtime rt({.resource_bytes = 64 << 20});
//     auto noise =
//         troupe::lazy([] { return troupe::resource(std::vector<float>(1'000'000, 0.5f)); });
//     auto sum = troupe::lazy([noise] {
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

  // An empty handle.
  resource() noexcept = default;
  // Takes a value. `bytes` is its size; by default the size of T, plus the size of its elements if
  // these are contiguous. Throws usage_error for more than 128 TiB.
  explicit resource(T value) : resource(std::move(value), 0) {}
  resource(T value, std::size_t bytes)
      : kept_(new kept{std::move(value), jobs::check_bytes(bytes)}) {
    if (bytes == 0) kept_->bytes = jobs::bytes_of(kept_->value);
    kept_->account = jobs::charge(kept_->bytes);
  }
  resource(const resource& other) noexcept : kept_(other.kept_) {
    // order: relaxed  the caller already holds the value
    if (kept_ != nullptr) kept_->handles.fetch_add(1, std::memory_order_relaxed);
  }
  resource(resource&& other) noexcept : kept_(std::exchange(other.kept_, nullptr)) {}
  resource& operator=(resource other) noexcept {
    std::swap(kept_, other.kept_);
    return *this;
  }
  ~resource() { release(); }

  // Throw usage_error if the handle is empty.
  const T& operator*() const { return get(); }
  const T* operator->() const { return &get(); }
  const T& get() const {
    if (kept_ == nullptr)
      throw usage_error(
          "troupe: resource: it is empty, was moved from, or released: assign it a resource before "
          "you use its value");
    return kept_->value;
  }
  explicit operator bool() const noexcept { return kept_ != nullptr; }
  // The bytes that it counts; 0 if it is empty.
  std::size_t bytes() const noexcept { return kept_ == nullptr ? 0 : kept_->bytes; }

  // Drops this handle's share of the value now.
  void release() noexcept {
    kept* const held = std::exchange(kept_, nullptr);
    // order: acq_rel  the thread that frees the value sees each holder's writes; pairs with itself
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

// How a lazy uses memory, for a lazy whose type does not show it.
enum class memory_use : std::uint8_t {
  needs,  // it needs more memory: the default if its value is a resource
  frees,  // it frees resources that it holds: the default for all others
};

namespace jobs {

template <class T>
inline constexpr memory_use use_of = memory_use::frees;
template <class T>
inline constexpr memory_use use_of<resource<T>> = memory_use::needs;

}  // namespace jobs

}  // namespace troupe
