#include "tls/ticket_keys.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <new>
#include <span>

namespace troupe::tls {

ticket_keys::ticket_keys(std::chrono::nanoseconds period) : period_(period) { add(make_key()); }

ticket_keys::~ticket_keys() { OPENSSL_cleanse(keys_.data(), sizeof keys_); }

ticket_keys::key ticket_keys::make_key() {
  key fresh;
  if (RAND_bytes(fresh.name.data(), static_cast<int>(fresh.name.size())) != 1 ||
      RAND_priv_bytes(fresh.cipher.data(), static_cast<int>(fresh.cipher.size())) != 1 ||
      RAND_priv_bytes(fresh.mac.data(), static_cast<int>(fresh.mac.size())) != 1)
    throw std::bad_alloc();
  return fresh;
}

void ticket_keys::add(const key& fresh) noexcept {
  std::shift_right(keys_.begin(), keys_.end(), 1);
  keys_.front() = fresh;
  count_ = std::min(count_ + 1, kept);
  made_at_ = clock::now();
}

void ticket_keys::set_period(std::chrono::nanoseconds period) noexcept {
  std::lock_guard lock(mutex_);
  period_ = period;
}

void ticket_keys::rotate() {
  const key fresh = make_key();
  std::lock_guard lock(mutex_);
  add(fresh);
}

// The caller holds the mutex. A server that was idle for several periods makes one new key for each
// of them, so that old tickets end in time.
void ticket_keys::rotate_if_due() {
  const auto due = (clock::now() - made_at_) / period_;
  for (auto i = std::min<decltype(due)>(due, kept); i > 0; --i) add(make_key());
}

bool ticket_keys::apply(key& with, const unsigned char* iv, EVP_CIPHER_CTX* cipher,
                        EVP_MAC_CTX* mac, bool encrypts) noexcept {
  char digest[] = "SHA256";
  const std::array<OSSL_PARAM, 3> chosen{
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, with.mac.data(), with.mac.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, &digest[0], 0),
      OSSL_PARAM_construct_end()};
  return EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), nullptr, with.cipher.data(), iv,
                           encrypts ? 1 : 0) == 1 &&
         EVP_MAC_CTX_set_params(mac, chosen.data()) == 1;
}

int ticket_keys::encrypt(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                         EVP_MAC_CTX* mac) {
  if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) return -1;
  std::lock_guard lock(mutex_);
  rotate_if_due();
  key& newest = keys_.front();
  std::ranges::copy(newest.name, name);
  return apply(newest, iv, cipher, mac, true) ? 1 : -1;
}

int ticket_keys::decrypt(const unsigned char* name, const unsigned char* iv, EVP_CIPHER_CTX* cipher,
                         EVP_MAC_CTX* mac) {
  std::lock_guard lock(mutex_);
  rotate_if_due();
  for (std::size_t i = 0; i < count_; ++i) {
    if (!std::ranges::equal(keys_[i].name, std::span(name, name_bytes))) continue;
    if (!apply(keys_[i], iv, cipher, mac, false)) return -1;
    return i == 0 ? 1 : 2;
  }
  return 0;
}

}  // namespace troupe::tls
