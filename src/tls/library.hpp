// Owners for OpenSSL's objects, and access to its queue of errors. Each thread has its own queue. A
// caller therefore empties it before each call and reads it right after the call, without a
// suspension between.
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
  void operator()(T* object) const noexcept {
    Free(object);
  }
};
using ssl_ptr = std::unique_ptr<SSL, freed_by<&SSL_free>>;
using ssl_ctx_ptr = std::unique_ptr<SSL_CTX, freed_by<&SSL_CTX_free>>;
using session_ptr = std::unique_ptr<SSL_SESSION, freed_by<&SSL_SESSION_free>>;
using bio_ptr = std::unique_ptr<BIO, freed_by<&BIO_free>>;
using x509_ptr = std::unique_ptr<X509, freed_by<&X509_free>>;
using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<&EVP_PKEY_free>>;

// Returns the reasons in the queue, oldest first, or `fallback` when it has none. Empties the
// queue.
std::string take_reasons(const char* fallback);

}  // namespace troupe::tls
