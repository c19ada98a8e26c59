#include "nats/protocol/nkey.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <new>

namespace troupe::nats {
namespace {

constexpr std::string_view letters32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr std::string_view letters64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr unsigned seed_prefix = 18 << 3;
constexpr std::size_t key_bytes = 32, check_bytes = 2;

struct free_key {
  void operator()(EVP_PKEY* object) const noexcept { EVP_PKEY_free(object); }
};
struct free_digest {
  void operator()(EVP_MD_CTX* object) const noexcept { EVP_MD_CTX_free(object); }
};
using owned_key = std::unique_ptr<EVP_PKEY, free_key>;

owned_key key_of(const std::array<std::uint8_t, key_bytes>& secret) {
  owned_key made(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, secret.data(), secret.size()));
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

unsigned byte_of(char letter) noexcept { return static_cast<unsigned char>(letter); }

// Groups of `bits` bits, from the front.
std::string in_groups(std::string_view bytes, unsigned bits, std::string_view letters) {
  std::string result;
  unsigned kept = 0, have = 0;
  for (const char letter : bytes) {
    kept = kept << 8 | byte_of(letter);
    for (have += 8; have >= bits; have -= bits)
      result += letters[kept >> (have - bits) & (letters.size() - 1)];
    kept &= (1u << have) - 1;
  }
  if (have > 0) result += letters[kept << (bits - have) & (letters.size() - 1)];
  return result;
}

std::string with_check(std::string bytes) {
  const std::uint16_t check = crc16(bytes);
  bytes += static_cast<char>(check & 0xff);
  bytes += static_cast<char>(check >> 8);
  return base32(bytes);
}

std::string_view first_line(std::string_view text) noexcept {
  return text.substr(0, text.find_first_of("\r\n"));
}
// The text between "-----BEGIN name" and the next line of dashes.
std::string section(std::string_view text, std::string_view name) {
  const std::size_t begin = text.find("BEGIN " + std::string(name));
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  text.remove_prefix(std::min(text.find('\n'), text.size()));
  text = text.substr(0, text.find("---"));
  std::string result;
  for (const char letter : text) {
    if (byte_of(letter) > ' ') result += letter;
  }
  return result;
}

}  // namespace

std::string base32(std::string_view bytes) { return in_groups(bytes, 5, letters32); }
std::string base64url(std::string_view bytes) { return in_groups(bytes, 6, letters64); }

std::optional<std::string> from_base32(std::string_view text) {
  std::string result;
  unsigned kept = 0, have = 0;
  for (const char letter : text) {
    const std::size_t at = letters32.find(letter);
    if (at == std::string_view::npos) return std::nullopt;
    kept = kept << 5 | static_cast<unsigned>(at);
    have += 5;
    if (have < 8) continue;
    have -= 8;
    result += static_cast<char>(kept >> have & 0xff);
    kept &= (1u << have) - 1;
  }
  // The bits that belong to no byte are zero, and fewer than a letter has.
  if (have >= 5 || kept != 0) return std::nullopt;
  return result;
}

std::uint16_t crc16(std::string_view bytes) noexcept {
  unsigned check = 0;
  for (const char letter : bytes) {
    check ^= byte_of(letter) << 8;
    for (int bit = 0; bit < 8; ++bit)
      check = (check & 0x8000) != 0 ? check << 1 ^ 0x1021 : check << 1;
    check &= 0xffff;
  }
  return static_cast<std::uint16_t>(check);
}

std::optional<nkey> nkey::from_seed(std::string_view text) {
  std::optional<std::string> bytes = from_base32(text);
  if (!bytes || bytes->size() != 2 + key_bytes + check_bytes) return std::nullopt;
  const std::string_view all(*bytes);
  const std::string_view signed_part = all.substr(0, 2 + key_bytes);
  const unsigned check = byte_of(all[2 + key_bytes]) | byte_of(all[3 + key_bytes]) << 8;
  if (crc16(signed_part) != check) return std::nullopt;
  const unsigned first = byte_of(all[0]), second = byte_of(all[1]);
  const unsigned kind = (first & 7) << 5 | second >> 3;
  if ((first & 0xf8) != seed_prefix || (second & 7) != 0) return std::nullopt;
  for (const key_kind candidate :
       {key_kind::account, key_kind::server, key_kind::oper, key_kind::user}) {
    if (kind != static_cast<unsigned>(candidate)) continue;
    std::array<std::uint8_t, key_bytes> secret{};
    std::ranges::transform(all.substr(2, key_bytes), secret.begin(),
                           [](char byte) { return static_cast<std::uint8_t>(byte); });
    OPENSSL_cleanse(bytes->data(), bytes->size());
    return nkey(candidate, secret);
  }
  return std::nullopt;
}

nkey::~nkey() { OPENSSL_cleanse(secret_.data(), secret_.size()); }

std::string nkey::seed() const {
  const auto kind = static_cast<unsigned>(kind_);
  std::string bytes{static_cast<char>(seed_prefix | kind >> 5),
                    static_cast<char>((kind & 31) << 3)};
  for (const std::uint8_t byte : secret_) bytes += static_cast<char>(byte);
  return with_check(std::move(bytes));
}

std::string nkey::public_key() const {
  std::array<std::uint8_t, key_bytes> bytes{};
  std::size_t count = bytes.size();
  if (EVP_PKEY_get_raw_public_key(key_of(secret_).get(), bytes.data(), &count) != 1)
    throw std::bad_alloc();
  std::string made(1, static_cast<char>(kind_));
  for (const std::uint8_t byte : bytes) made += static_cast<char>(byte);
  return with_check(std::move(made));
}

std::string nkey::sign(std::string_view text) const {
  const owned_key key = key_of(secret_);
  const std::unique_ptr<EVP_MD_CTX, free_digest> by(EVP_MD_CTX_new());
  std::array<unsigned char, 64> signature{};
  std::size_t bytes = signature.size();
  if (by == nullptr || EVP_DigestSignInit(by.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      EVP_DigestSign(by.get(), signature.data(), &bytes,
                     reinterpret_cast<const unsigned char*>(text.data()), text.size()) != 1)
    throw std::bad_alloc();
  return {reinterpret_cast<const char*>(signature.data()), bytes};
}

credentials credentials::parse(std::string_view text) {
  credentials parsed;
  parsed.jwt = section(text, "NATS USER JWT");
  parsed.seed = section(text, "USER NKEY SEED");
  return parsed;
}

std::string seed_in(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = first_line(text);
    if (line.starts_with("SU")) return std::string(line);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return {};
}

}  // namespace troupe::nats
