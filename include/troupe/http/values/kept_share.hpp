// kept_share: the memory and the files of a reader of a request's body. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace troupe::http {

class request;

namespace values {

// The sums of all readers of one body. Threads: any; a form and its request may be destroyed on
// different threads.
struct kept_of_body {
  std::atomic<std::size_t> bytes{0}, files{0};
};

// The part of one reader, on the account of the request's client as long as it lives, and as the
// request does.
class kept_share {
 public:
  kept_share() noexcept = default;
  kept_share(kept_share&& other) noexcept
      : all_(std::move(other.all_)),
        bytes_(std::exchange(other.bytes_, 0)),
        files_(std::exchange(other.files_, 0)),
        told_(other.told_) {}
  kept_share& operator=(kept_share&& other) noexcept {
    std::swap(all_, other.all_);
    std::swap(bytes_, other.bytes_);
    std::swap(files_, other.files_);
    std::swap(told_, other.told_);
    return *this;
  }
  ~kept_share() { count(0, 0); }

  // Keeps that much of the request's body from now on. If a limit of the client is reached, its
  // largest request ends: that may be this one, whose next read then fails. Throws std::bad_alloc.
  void keep(request& asked, std::size_t bytes, std::size_t files = 0);

 private:
  void count(std::size_t bytes, std::size_t files) noexcept;
  std::shared_ptr<kept_of_body> all_;
  static constexpr std::size_t untold_bytes = 4 * 1024;
  std::size_t bytes_ = 0, files_ = 0;
  std::size_t told_ = 0;  // the bytes that were last reported to the account
};

}  // namespace values

}  // namespace troupe::http
