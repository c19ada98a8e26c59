// Positions of objects in a context, in the order in which the context was filled. A search walks
// through the blocks, so it is for checks and rare calls.
#include <functional>
#include <utility>

#include "context/keep.hpp"

namespace troupe::contexts {
namespace {

// Bytes up to the end of the object's block, and the object's address.
using position = std::pair<std::size_t, const std::byte*>;

bool is_before(const position& one, const position& other) noexcept {
  return one.first != other.first ? one.first < other.first
                                  : std::less<>()(one.second, other.second);
}

bool is_in(const block& one, const std::byte* address) noexcept {
  const auto* begin = reinterpret_cast<const std::byte*>(&one);
  return !std::less<>()(address, begin) && std::less<>()(address, begin + one.bytes);
}

// An object in none of the context's blocks counts as older than all others: its memory was left to
// a keep.
position find(const block* newest, const void* object) noexcept {
  const auto* address = static_cast<const std::byte*>(object);
  for (const block* one = newest; one != nullptr; one = one->older) {
    if (is_in(*one, address)) return {one->total, address};
  }
  return {0, address};
}

}  // namespace

bool access::is_since(const context& of, const void* object) noexcept {
  const snapshot* newest = of.newest_;
  return newest == nullptr ||
         !is_before(find(of.block_, object), {newest->block_->total, newest->at_});
}

const snapshot* access::between(const context& of, const void* older, const void* newer) noexcept {
  const position first = find(of.block_, older), last = find(of.block_, newer);
  for (const snapshot* one = of.newest_; one != nullptr; one = one->older_) {
    const position at{one->block_->total, one->at_};
    if (is_before(first, at) && !is_before(last, at)) return one;
  }
  return nullptr;
}

}  // namespace troupe::contexts
