#include "tls/identity.hpp"

#include <openssl/pem.h>

#include <new>

#include "troupe/base/error.hpp"

namespace troupe::tls {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw option_error("troupe: tls_options: " + what);
}

bio_ptr reader_of(const std::string& text) {
  bio_ptr made(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (!made) throw std::bad_alloc();
  return made;
}

x509_ptr next_certificate(BIO& from) {
  return x509_ptr(PEM_read_bio_X509_AUX(&from, nullptr, nullptr, nullptr));
}

int no_passphrase(char*, int, int, void*) { return -1; }

}  // namespace

identity make_identity(const std::string& certificates, const std::string& key) {
  identity made;
  const bio_ptr from = reader_of(certificates);
  made.own = next_certificate(*from);
  if (!made.own) refuse("certificate: " + take_reasons("there is none"));
  made.between.reset(sk_X509_new_null());
  if (!made.between) throw std::bad_alloc();
  while (x509_ptr one = next_certificate(*from)) {
    if (sk_X509_push(made.between.get(), one.get()) == 0) throw std::bad_alloc();
    static_cast<void>(one.release());  // the chain owns it now
  }
  ERR_clear_error();  // the end of the text leaves an error in the queue
  const bio_ptr key_from = reader_of(key);
  made.key.reset(PEM_read_bio_PrivateKey(key_from.get(), nullptr, &no_passphrase, nullptr));
  if (!made.key) refuse("key: " + take_reasons("there is none"));
  if (X509_check_private_key(made.own.get(), made.key.get()) != 1)
    refuse("key: " + take_reasons("it is not the certificate's"));
  return made;
}

}  // namespace troupe::tls
