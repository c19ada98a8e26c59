// encoder: makes texts smaller by the codings of Content-Encoding: gzip, brotli and zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::http {

enum class coding : std::uint8_t { gzip, brotli, zstd };

// "gzip", "br", "zstd", as the field Content-Encoding names them.
std::string_view name_of(coding format) noexcept;
// Whether the library was built with it. It always has gzip.
bool has_coding(coding format) noexcept;

// One text after another. Thread: one at a time.
class encoder {
 public:
  virtual ~encoder() = default;
  // The required state of the text behind these bytes.
  enum class until : std::uint8_t {
    more,   // nothing: bytes may wait in the encoder
    flush,  // all bytes so far can be decoded
    end,    // the text is complete
  };
  // Appends the encoded form of the next bytes. Throws std::bad_alloc.
  virtual void add(std::string_view bytes, std::string& to, until state) = 0;
  // Begins the next text.
  virtual void reset() = 0;
  // How far back a text may refer. Each stream has an encoder of its own, for as long as its client
  // likes: a small window leaves a client room for more streams.
  enum class window : std::uint8_t { large, small };

 protected:
  encoder() = default;
  encoder(const encoder&) = delete;
  encoder& operator=(const encoder&) = delete;
};

// For a coding of has_coding(). Throws std::bad_alloc. Cost: about 260 KiB for gzip, and 1 to 2 MiB
// for the other ones, 650 KiB with a small window, while it lives.
std::unique_ptr<encoder> make_encoder(coding format,
                                      encoder::window within = encoder::window::large);
// The memory of one with a small window, at most.
std::size_t small_encoder_bytes(coding format) noexcept;

}  // namespace troupe::http
