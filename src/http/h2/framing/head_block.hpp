// head_block: the fields of one head or trailer of HTTP/2, collected one by one. They lie in one
// text, as http::fields needs them.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/http/fault.hpp"
#include "troupe/http/fields.hpp"

namespace troupe::http::h2 {

struct block_limits {
  std::size_t bytes, fields, target_bytes;
};

class head_block {
 public:
  // Adds a field that nghttp2 has found well-formed. Beyond a limit it is not added, and wrong()
  // reports this.
  void add(std::string_view name, std::string_view value, const block_limits& within);
  // Call it behind the last field. Makes one Cookie of several (RFC 9113, 8.2.3), and a Host of the
  // authority, for handlers that know HTTP/1.1 only. Returns false if the two are there and differ.
  bool finish();

  http::fields fields() const noexcept { return {text_.data(), positions_}; }
  std::string_view method() const noexcept { return view(method_); }
  std::string_view path() const noexcept { return view(path_); }
  std::string_view authority() const noexcept { return view(authority_); }
  std::string_view scheme() const noexcept { return view(scheme_); }
  std::string_view protocol() const noexcept { return view(protocol_); }
  // The status of an answer; 0 in a trailer.
  int status() const noexcept { return status_; }
  fault wrong() const noexcept { return wrong_; }
  // Bytes of all fields so far, as RFC 9113 (6.5.2) counts them.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct piece {
    std::uint32_t at = 0, bytes = 0;
  };
  std::string_view view(piece part) const noexcept {
    return std::string_view(text_).substr(part.at, part.bytes);
  }
  void reserve_usual();
  piece put(std::string_view text);
  void put_field(std::string_view name, std::string_view value);

  std::string text_, cookies_;
  std::vector<http::fields::position> positions_;
  piece method_, path_, authority_, scheme_, protocol_;
  int status_ = 0;
  fault wrong_ = fault::none;
  std::size_t bytes_ = 0;
};

}  // namespace troupe::http::h2
