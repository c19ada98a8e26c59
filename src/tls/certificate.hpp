// certificate: what OpenSSL says of a certificate, as a value.
#pragma once

#include <openssl/x509.h>

#include "troupe/tls/stream.hpp"

namespace troupe::tls {

// Throws std::bad_alloc. May leave errors in the thread's queue of OpenSSL.
tls_certificate describe(const X509& one);

}  // namespace troupe::tls
