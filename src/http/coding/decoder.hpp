// decoder: gives back the bodies that the codings of Content-Encoding have made smaller: gzip,
// brotli and zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "http/coding/encoder.hpp"

namespace troupe::http {

// One body, in pieces of any length. It gives no more at a time than its caller has room for: a
// few bytes that become many cost the time and the memory of the pieces that the caller takes.
// Thread: one at a time.
class decoder {
 public:
  virtual ~decoder() = default;
  // Decodes bytes from the front of `from`, which it takes off, to `to`. Returns how many it has
  // written. Fewer than there is room for: all of `from` was taken, or the body is malformed.
  // Throws std::bad_alloc.
  virtual std::size_t add(std::string_view& from, std::span<char> to) = 0;
  // Whether the body could end here: it has ended, or not begun.
  virtual bool may_end() const noexcept = 0;
  bool is_malformed() const noexcept { return malformed_; }
  // The memory that it uses now: of a window as much as was filled.
  virtual std::size_t memory() const noexcept = 0;

 protected:
  decoder() = default;
  decoder(const decoder&) = delete;
  decoder& operator=(const decoder&) = delete;

  bool malformed_ = false;
};

// Whether the library was built with it. It always has gzip.
bool can_decode(coding format) noexcept;
// The coding that a field Content-Encoding names; nothing if it names several, or one that the
// library cannot decode.
std::optional<coding> coding_named(std::string_view field) noexcept;
// "gzip, br, zstd": those that can be decoded.
std::string_view decodable_codings() noexcept;

// For a coding of can_decode(). Throws std::bad_alloc. Memory: 40 KiB for gzip; for the others the
// window that the sender has chosen, at most 16 MiB for brotli and 8 MiB for zstd.
std::unique_ptr<decoder> make_decoder(coding format);

}  // namespace troupe::http
