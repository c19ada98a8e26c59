#include <openssl/pem.h>

#include <fstream>
#include <iterator>
#include <new>

#include "tls/connection.hpp"
#include "tls/context_state.hpp"
#include "troupe/base/error.hpp"

namespace troupe {

tls_context tls_context::client(const tls_options& options) {
  return tls::context_access::make(options, false);
}
tls_context tls_context::server(const tls_options& options) {
  return tls::context_access::make(options, true);
}

namespace tls {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw option_error("troupe: tls_options: " + what);
}

// Returns the text from whichever of the two is given; "" when neither is.
std::string text_of(const std::string& file, const std::string& pem, const char* name) {
  if (file.empty()) return pem;
  if (!pem.empty()) refuse(std::string(name) + ": give a file or its text, not both");
  std::ifstream in(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (!in) refuse(std::string(name) + "_file: " + file + " cannot be read");
  return text;
}

bio_ptr reader_of(const std::string& text) {
  bio_ptr made(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (!made) throw std::bad_alloc();
  return made;
}

x509_ptr next_certificate(BIO& from) {
  return x509_ptr(PEM_read_bio_X509_AUX(&from, nullptr, nullptr, nullptr));
}

int version_of(tls_version one) noexcept {
  return one == tls_version::v1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
}

int on_new_session(SSL* of, SSL_SESSION* one) {
  static_cast<connection*>(SSL_get_app_data(of))->keep_session(session_ptr(one));
  return 1;
}

}  // namespace

context_state::context_state(const tls_options& options, bool server)
    : context_(SSL_CTX_new(server ? TLS_server_method() : TLS_client_method())),
      server_(server),
      verifies_(server ? options.verify_clients : options.verify),
      tickets_(options.tickets) {
  ERR_clear_error();
  if (!context_) throw std::bad_alloc();
  if (options.max_version < options.min_version) refuse("max_version is below min_version");
  SSL_CTX_set_min_proto_version(get(), version_of(options.min_version));
  SSL_CTX_set_max_proto_version(get(), version_of(options.max_version));
  SSL_CTX_set_mode(get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  trust(options);
  identify(options);
  for (const std::string& one : options.alpn) {
    if (one.empty() || one.size() > 255) refuse("alpn: a protocol's name has from 1 to 255 bytes");
    protocols_ += static_cast<char>(one.size());
    protocols_ += one;
  }
  if (!protocols_.empty()) {
    if (server) {
      SSL_CTX_set_alpn_select_cb(get(), &choose_protocol, this);
    } else if (SSL_CTX_set_alpn_protos(get(),
                                       reinterpret_cast<const unsigned char*>(protocols_.data()),
                                       static_cast<unsigned int>(protocols_.size())) != 0) {
      throw std::bad_alloc();
    }
  }
  // A server sends its tickets with its first write (connection::write). So a peer that does not
  // read them cannot keep the handshake from ending.
  SSL_CTX_set_num_tickets(get(), 0);
  if (!tickets_) SSL_CTX_set_options(get(), SSL_OP_NO_TICKET);
  if (server) {
    static constexpr unsigned char name[] = "troupe";
    SSL_CTX_set_session_id_context(get(), name, sizeof name - 1);
    SSL_CTX_set_session_cache_mode(get(), SSL_SESS_CACHE_OFF);
  } else if (tickets_) {
    SSL_CTX_set_session_cache_mode(get(), SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(get(), &on_new_session);
  } else {
    SSL_CTX_set_session_cache_mode(get(), SSL_SESS_CACHE_OFF);
  }
  ERR_clear_error();
}

void context_state::trust(const tls_options& options) {
  if (!verifies_) return SSL_CTX_set_verify(get(), SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_verify(get(), SSL_VERIFY_PEER | (server_ ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  const std::string text = text_of(options.ca_file, options.ca_pem, "ca");
  if (text.empty()) {
    if (server_) refuse("verify_clients: whom to trust must be named (ca_file, ca_pem)");
    if (!options.ca_file.empty()) refuse("ca_file: " + options.ca_file + " is empty");
    if (SSL_CTX_set_default_verify_paths(get()) != 1)
      refuse("the system's store of certificates: " + take_reasons("it cannot be read"));
    return;
  }
  const bio_ptr from = reader_of(text);
  int count = 0;
  while (const x509_ptr one = next_certificate(*from)) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(get()), one.get()) != 1) throw std::bad_alloc();
    if (server_) SSL_CTX_add_client_CA(get(), one.get());
    ++count;
  }
  if (count == 0) refuse("ca: there is no certificate: " + take_reasons("it has none"));
  ERR_clear_error();  // the end of the text leaves an error in the queue
}

void context_state::identify(const tls_options& options) {
  const std::string certificates =
      text_of(options.certificate_file, options.certificate_pem, "certificate");
  const std::string key = text_of(options.key_file, options.key_pem, "key");
  if (certificates.empty() || key.empty()) {
    if (server_ || certificates.empty() != key.empty())
      refuse("a certificate and its key are needed");
    return;
  }
  identities_.push_back(make_identity(certificates, key));
  const identity& first = identities_.front();
  if (SSL_CTX_use_cert_and_key(get(), first.own.get(), first.key.get(), first.between.get(), 1) !=
      1) {
    refuse("certificate: " + take_reasons("it is not taken"));
  }
  if (options.more.empty()) return;
  if (!server_) refuse("more: a client has one certificate");
  for (const tls_identity& one : options.more) {
    const std::string its = text_of(one.certificate_file, one.certificate_pem, "certificate");
    const std::string its_key = text_of(one.key_file, one.key_pem, "key");
    if (its.empty() || its_key.empty()) refuse("more: a certificate and its key are needed");
    identities_.push_back(make_identity(its, its_key));
  }
  SSL_CTX_set_cert_cb(get(), &choose_identity, this);
}

// The first identity is set already. It also serves clients that ask for a host which no identity
// fits.
int context_state::choose_identity(SSL* of, void* self) noexcept {
  const char* host = SSL_get_servername(of, TLSEXT_NAMETYPE_host_name);
  if (host == nullptr) return 1;
  for (const identity& one : static_cast<const context_state*>(self)->identities_) {
    if (!one.is_for(host)) continue;
    return SSL_use_cert_and_key(of, one.own.get(), one.key.get(), one.between.get(), 1);
  }
  return 1;
}

int context_state::choose_protocol(SSL*, const unsigned char** chosen, unsigned char* length,
                                   const unsigned char* offered, unsigned int offered_length,
                                   void* self) noexcept {
  const std::string& ours = static_cast<const context_state*>(self)->protocols_;
  unsigned char* found = nullptr;
  const int how =
      SSL_select_next_proto(&found, length, reinterpret_cast<const unsigned char*>(ours.data()),
                            static_cast<unsigned int>(ours.size()), offered, offered_length);
  *chosen = found;
  return how == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

session_ptr context_state::take_session(const std::string& host) {
  std::lock_guard lock(mutex_);
  const auto found = sessions_.find(host);
  if (found == sessions_.end()) return nullptr;
  SSL_SESSION* kept = found->second.get();
  if (SSL_SESSION_get_protocol_version(kept) < TLS1_3_VERSION) {
    // The session stays usable: the server gives no other one for it.
    SSL_SESSION_up_ref(kept);
    return session_ptr(kept);
  }
  session_ptr one = std::move(found->second);
  sessions_.erase(found);
  return one;
}

void context_state::keep_session(const std::string& host, session_ptr one) noexcept {
  std::lock_guard lock(mutex_);
  try {
    if (sessions_.size() >= sessions_max && !sessions_.contains(host))
      sessions_.erase(sessions_.begin());
    sessions_[host] = std::move(one);
  } catch (const std::bad_alloc&) {  // without memory, the next connection makes a full handshake
  }
}

}  // namespace tls
}  // namespace troupe
