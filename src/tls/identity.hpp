// identity: a certificate with its chain and its key. A server may have several and chooses by
// host.
#pragma once

#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <vector>

#include "tls/library.hpp"

namespace troupe::tls {

struct free_chain {
  void operator()(STACK_OF(X509) * all) const noexcept { sk_X509_pop_free(all, &X509_free); }
};
using chain_ptr = std::unique_ptr<STACK_OF(X509), free_chain>;

struct identity {
  x509_ptr own;
  chain_ptr between;  // the certificates between `own` and the root
  key_ptr key;

  // True when one of the certificate's names fits that host; wildcards count.
  bool is_for(const char* host) const noexcept {
    return X509_check_host(own.get(), host, 0, 0, nullptr) == 1;
  }
};

// Reads PEM texts. Throws option_error, std::bad_alloc.
identity make_identity(const std::string& certificates, const std::string& key);

}  // namespace troupe::tls
