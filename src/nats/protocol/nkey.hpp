// nkey: the NATS keys, which are Ed25519 behind base32 with a checksum; and files of
// credentials.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::nats {

// Whose key it is.
enum class key_kind : std::uint8_t {
  account = 0,
  server = 13 << 3,
  oper = 14 << 3,
  user = 20 << 3
};

class nkey {
 public:
  // The key of a seed ("SU…"); nothing if the text is no seed.
  static std::optional<nkey> from_seed(std::string_view text);
  // The private key is these 32 bytes.
  nkey(key_kind kind, const std::array<std::uint8_t, 32>& secret) noexcept
      : kind_(kind), secret_(secret) {}
  nkey(const nkey&) = default;
  nkey& operator=(const nkey&) = default;
  ~nkey();  // overwrites the secret

  key_kind kind() const noexcept { return kind_; }
  std::string seed() const;
  std::string public_key() const;  // "U…"
  // 64 bytes. Throws std::bad_alloc.
  std::string sign(std::string_view text) const;

 private:
  key_kind kind_;
  std::array<std::uint8_t, 32> secret_;
};

// Without padding: base32 of RFC 4648, base64url of RFC 4648.
std::string base32(std::string_view bytes);
std::optional<std::string> from_base32(std::string_view text);
std::string base64url(std::string_view bytes);
std::uint16_t crc16(std::string_view bytes) noexcept;  // XMODEM

// The contents of a credentials file; missing parts are empty.
struct credentials {
  std::string jwt, seed;
  static credentials parse(std::string_view text);
};
// The first line that is a seed; empty: none.
std::string seed_in(std::string_view text);

}  // namespace troupe::nats
