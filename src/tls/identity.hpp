// identity: a certificate with its chain and its key. A server may have several and chooses by
// host.
#pragma once

#include <openssl/x509v3.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tls/library.hpp"

namespace troupe::tls {

struct free_chain {
  void operator()(STACK_OF(X509) * all) const noexcept { sk_X509_pop_free(all, &X509_free); }
};
using chain_ptr = std::unique_ptr<STACK_OF(X509), free_chain>;

// Throws option_error, which names tls_options.
[[noreturn]] void refuse_options(const std::string& reason);

// Throws std::bad_alloc. `text` is read in place.
bio_ptr reader_of(const std::string& text);
// Returns null at the end, and when it is no certificate.
x509_ptr next_certificate(BIO& from);

struct identity {
  x509_ptr own;
  chain_ptr between;  // the certificates between `own` and the root
  key_ptr key;
};

// Finds the certificate of a host by the names in the certificates: an exact name before a
// wildcard, and the certificate that was added first before later ones. A wildcard is a whole label
// and the first one: "*.example.org".
// Rejected: X509_check_host for one certificate after the other, which reads each certificate again
// for each handshake.
class host_index {
 public:
  // Throws std::bad_alloc.
  void add(const X509& certificate, std::size_t position);
  std::optional<std::size_t> find(std::string_view host) const;

 private:
  using positions = std::map<std::string, std::size_t, std::less<>>;
  positions exact_;      // in lower case
  positions wildcards_;  // the same, the part behind the star: ".example.org"
};

// Reads PEM texts. Throws option_error, std::bad_alloc.
identity make_identity(const std::string& certificates, const std::string& key);

}  // namespace troupe::tls
