#include "tls/identity.hpp"

#include <openssl/pem.h>

#include <algorithm>
#include <new>

#include "tls/certificate.hpp"
#include "troupe/base/error.hpp"

namespace troupe::tls {
namespace {

std::string in_lower_case(std::string_view host) {
  std::string lowered(host);
  std::ranges::transform(lowered, lowered.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  });
  return lowered;
}

int no_passphrase(char*, int, int, void*) { return -1; }

}  // namespace

void refuse_options(const std::string& reason) {
  throw option_error("troupe: tls_options: " + reason);
}

bio_ptr reader_of(const std::string& text) {
  bio_ptr reader(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (!reader) throw std::bad_alloc();
  return reader;
}

x509_ptr next_certificate(BIO& from) {
  return x509_ptr(PEM_read_bio_X509_AUX(&from, nullptr, nullptr, nullptr));
}

void host_index::add(const X509& certificate, std::size_t position) {
  for (const std::string& name : hosts_of(certificate)) {
    const std::string host = in_lower_case(name);
    const bool is_wildcard = host.starts_with("*.");
    (is_wildcard ? wildcards_ : exact_).try_emplace(is_wildcard ? host.substr(1) : host, position);
  }
}

std::optional<std::size_t> host_index::find(std::string_view host) const {
  if (host.ends_with('.')) host.remove_suffix(1);
  const std::string asked = in_lower_case(host);
  if (const auto found = exact_.find(asked); found != exact_.end()) return found->second;
  const std::size_t dot = asked.find('.');
  if (dot == 0 || dot == std::string::npos) return std::nullopt;
  const auto found = wildcards_.find(std::string_view(asked).substr(dot));
  return found == wildcards_.end() ? std::nullopt : std::optional(found->second);
}

identity make_identity(const std::string& certificates, const std::string& key) {
  identity loaded;
  const bio_ptr from = reader_of(certificates);
  loaded.own = next_certificate(*from);
  if (!loaded.own) refuse_options("certificate: " + take_reasons("there is none"));
  loaded.between.reset(sk_X509_new_null());
  if (!loaded.between) throw std::bad_alloc();
  while (x509_ptr certificate = next_certificate(*from)) {
    if (sk_X509_push(loaded.between.get(), certificate.get()) == 0) throw std::bad_alloc();
    static_cast<void>(certificate.release());  // the chain owns it now
  }
  ERR_clear_error();  // the end of the text leaves an error in the queue
  const bio_ptr key_from = reader_of(key);
  loaded.key.reset(PEM_read_bio_PrivateKey(key_from.get(), nullptr, &no_passphrase, nullptr));
  if (!loaded.key) refuse_options("key: " + take_reasons("there is none"));
  if (X509_check_private_key(loaded.own.get(), loaded.key.get()) != 1)
    refuse_options("key: " + take_reasons("it is not the certificate's"));
  return loaded;
}

}  // namespace troupe::tls
