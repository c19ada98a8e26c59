// What OpenSSL's objects and its queue of errors need. The queue is the thread's own: so it is
// emptied before each call and read right after it, with no suspension in between.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace troupe::tls {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* one) const noexcept {
    Free(one);
  }
};
using ssl_ptr = std::unique_ptr<SSL, freed_by<&SSL_free>>;
using ssl_ctx_ptr = std::unique_ptr<SSL_CTX, freed_by<&SSL_CTX_free>>;
using session_ptr = std::unique_ptr<SSL_SESSION, freed_by<&SSL_SESSION_free>>;
using bio_ptr = std::unique_ptr<BIO, freed_by<&BIO_free>>;
using x509_ptr = std::unique_ptr<X509, freed_by<&X509_free>>;
using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<&EVP_PKEY_free>>;

// The queue's reasons, oldest first, and `fallback` when it has none. Empties it.
std::string take_reasons(const char* fallback);

}  // namespace troupe::tls
