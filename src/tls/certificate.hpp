// certificate: the contents of a certificate of OpenSSL, as a value.
#pragma once

#include <openssl/x509.h>

#include <string>
#include <vector>

#include "troupe/tls/certificate.hpp"

namespace troupe::tls {

// Throws std::bad_alloc. May leave errors in the thread's queue of OpenSSL.
tls_certificate describe(const X509& certificate);
// The hosts for which it is valid, as it has them; its common name when it has no list of names.
std::vector<std::string> hosts_of(const X509& certificate);

}  // namespace troupe::tls
