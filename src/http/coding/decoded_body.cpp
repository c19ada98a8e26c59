#include "http/coding/decoded_body.hpp"

namespace troupe::http {

decoded_body::decoded_body(coding by, std::uint64_t bytes_max)
    : by_(make_decoder(by)),
      piece_(std::make_unique_for_overwrite<char[]>(piece_bytes)),
      left_(bytes_max) {}

std::string_view decoded_body::next() {
  if (wrong_ != fault::none) return {};
  const std::size_t bytes = by_->add(encoded_, {piece_.get(), piece_bytes});
  if (by_->is_malformed()) {
    wrong_ = fault::bad_content;
  } else if (bytes > left_) {
    wrong_ = fault::body_too_large;
  }
  if (wrong_ != fault::none) return {};
  left_ -= bytes;
  return {piece_.get(), bytes};
}

}  // namespace troupe::http
