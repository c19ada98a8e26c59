#include "tls/ciphertext.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

namespace troupe::tls {
namespace {

// The free blocks of the whole process.
struct spare_blocks {
  static constexpr std::size_t most = 256;  // 4 MiB; further ones are freed
  spare_blocks() { all.reserve(most); }
  std::mutex mutex;
  std::vector<std::unique_ptr<std::byte[]>> all;
};

spare_blocks& spare() {
  // The object is never destroyed: a connection may outlive the statics of the program.
  static spare_blocks& blocks = *new spare_blocks;
  return blocks;
}

}  // namespace

void ciphertext::take() {
  spare_blocks& from = spare();
  {
    std::lock_guard lock(from.mutex);
    if (!from.all.empty()) {
      data_ = std::move(from.all.back());
      from.all.pop_back();
    }
  }
  if (data_ == nullptr) data_ = std::make_unique_for_overwrite<std::byte[]>(block_bytes);
  capacity_ = block_bytes;
}

void ciphertext::release() noexcept {
  if (data_ != nullptr && capacity_ == block_bytes) {
    spare_blocks& blocks = spare();
    std::lock_guard lock(blocks.mutex);
    if (blocks.all.size() < spare_blocks::most) blocks.all.push_back(std::move(data_));
  }
  data_.reset();
  capacity_ = begin_ = end_ = 0;
}

void ciphertext::append(const void* bytes, std::size_t count) {
  if (data_ == nullptr) take();
  if (count > capacity_ - end_) {
    const std::size_t wanted = std::max(capacity_ * 2, end_ + count);
    auto larger = std::make_unique_for_overwrite<std::byte[]>(wanted);
    std::memcpy(larger.get(), data_.get(), end_);
    data_ = std::move(larger);
    capacity_ = wanted;
  }
  std::memcpy(data_.get() + end_, bytes, count);
  end_ += count;
}

std::span<std::byte> ciphertext::room() {
  if (data_ == nullptr) take();
  begin_ = end_ = 0;
  return {data_.get(), capacity_};
}

}  // namespace troupe::tls
