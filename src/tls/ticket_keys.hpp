// ticket_keys: the keys with which a server encrypts its session tickets. They change as time goes
// by; the last ones still decrypt, so that tickets stay of use for a while.
//
// Threads: any; the mutex guards all members.
// Rejected: the key that OpenSSL makes for each SSL_CTX, which never changes, and which a reload
// would lose.
#pragma once

#include <openssl/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>

namespace troupe::tls {

class ticket_keys {
 public:
  static constexpr std::size_t name_bytes = 16;

  // Throws std::bad_alloc when OpenSSL has no random numbers.
  explicit ticket_keys(std::chrono::nanoseconds period);
  ~ticket_keys();
  ticket_keys(const ticket_keys&) = delete;
  ticket_keys& operator=(const ticket_keys&) = delete;

  void set_period(std::chrono::nanoseconds period) noexcept;
  void rotate();

  // The two answers to OpenSSL's callback, whose return value they return: -1 is an error.
  // encrypt: 1. decrypt: 0 for an unknown key, 1 for the newest key, 2 for an older one.
  int encrypt(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac);
  int decrypt(const unsigned char* name, const unsigned char* iv, EVP_CIPHER_CTX* cipher,
              EVP_MAC_CTX* mac);

 private:
  static constexpr std::size_t kept = 3;
  using clock = std::chrono::steady_clock;
  struct key {
    std::array<unsigned char, name_bytes> name;
    std::array<unsigned char, 32> cipher, mac;
  };
  static key make_key();
  static bool apply(key& with, const unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac,
                    bool encrypts) noexcept;
  void add(const key& fresh) noexcept;
  void rotate_if_due();

  std::mutex mutex_;
  std::array<key, kept> keys_{};  // the newest first
  std::size_t count_ = 0;
  std::chrono::nanoseconds period_;
  clock::time_point made_at_;
};

}  // namespace troupe::tls
