// decoded_body: a body that is decoded while it is read, up to a limit. For both sides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "http/coding/decoder.hpp"
#include "troupe/http/fault.hpp"

namespace troupe::http {

// Thread: one at a time.
class decoded_body {
 public:
  // More than `bytes_max` decoded bytes are a fault, however few encoded ones they were. Throws
  // std::bad_alloc.
  decoded_body(coding by, std::uint64_t bytes_max);

  // The next encoded bytes, which are to stay where they are until next() returns "".
  void came(std::string_view encoded) noexcept { encoded_ = encoded; }
  // The next piece of the decoded body, valid until the next call; "" when more has to come, or
  // when something is wrong.
  std::string_view next();
  // body_too_large, bad_content, or none.
  fault wrong() const noexcept { return wrong_; }
  // No more bytes come.
  void ended() noexcept {
    if (wrong_ == fault::none && !by_->may_end()) wrong_ = fault::bad_content;
  }
  std::size_t memory() const noexcept { return by_->memory() + piece_bytes; }

 private:
  static constexpr std::size_t piece_bytes = 16 * 1024;

  const std::unique_ptr<decoder> by_;
  const std::unique_ptr<char[]> piece_;
  std::uint64_t left_;
  std::string_view encoded_;
  fault wrong_ = fault::none;
};

}  // namespace troupe::http
