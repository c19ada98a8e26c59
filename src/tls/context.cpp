#include "troupe/tls/context.hpp"

#include <openssl/pem.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <new>

#include "base/text/zero_byte.hpp"
#include "tls/context_state.hpp"
#include "tls/tls_connection.hpp"
#include "troupe/base/error.hpp"

namespace troupe {

tls_context tls_context::client(const tls_options& options) {
  return tls_context(std::make_shared<tls::context_slot>(options, false));
}
tls_context tls_context::server(const tls_options& options) {
  return tls_context(std::make_shared<tls::context_slot>(options, true));
}

void tls_context::reload() const { slot_->reload(); }
void tls_context::reload(const tls_options& options) const { slot_->reload(options); }
void tls_context::rotate_ticket_keys() const { slot_->rotate_ticket_keys(); }

namespace tls {
namespace {

// Returns the text from whichever of the two is given; "" when neither is.
std::string text_of(const std::string& file, const std::string& pem, const char* name) {
  if (file.empty()) return pem;
  base::refuse_zero_byte(file, "tls_options", (std::string(name) + "_file").c_str());
  if (!pem.empty()) refuse_options(std::string(name) + ": give a file or its text, not both");
  std::ifstream in(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (!in) refuse_options(std::string(name) + "_file: " + file + " cannot be read");
  return text;
}

// Forward secrecy and authenticated encryption.
constexpr const char* modern_ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr std::size_t handshake_bytes_least = 4096;

int version_of(tls_version version) noexcept {
  return version == tls_version::v1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
}

// Whether the list, each name of which follows its length, has this name.
bool has_protocol(std::string_view list, std::string_view name) noexcept {
  while (!list.empty()) {
    const auto bytes = static_cast<unsigned char>(list.front());
    if (list.substr(1, bytes) == name) return true;
    list.remove_prefix(std::min<std::size_t>(bytes + std::size_t{1}, list.size()));
  }
  return false;
}

int on_new_session(SSL* ssl, SSL_SESSION* session) {
  static_cast<connection*>(SSL_get_app_data(ssl))->keep_session(session_ptr(session));
  return 1;
}

}  // namespace

context_state::context_state(const tls_options& options, bool server,
                             std::shared_ptr<ticket_keys> keys)
    : context_(SSL_CTX_new(server ? TLS_server_method() : TLS_client_method())),
      keys_(std::move(keys)),
      server_(server),
      verifies_(server ? options.client_certificates != client_proof::none : options.verify),
      tickets_(options.tickets),
      handshake_bytes_(options.handshake_bytes) {
  ERR_clear_error();
  if (!context_) throw std::bad_alloc();
  SSL_CTX_set_app_data(get(), this);
  if (options.max_version < options.min_version) refuse_options("max_version is below min_version");
  if (options.handshake_bytes < handshake_bytes_least)
    refuse_options("handshake_bytes is less than 4096");
  if (options.ticket_key_time < std::chrono::seconds(1))
    refuse_options("ticket_key_time is less than 1 s");
  SSL_CTX_set_min_proto_version(get(), version_of(options.min_version));
  SSL_CTX_set_max_proto_version(get(), version_of(options.max_version));
  SSL_CTX_set_mode(get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  if (server)
    SSL_CTX_set_options(get(), SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  const std::string ciphers = !options.ciphers.empty() ? options.ciphers
                              : server                 ? modern_ciphers
                                                       : "";
  base::refuse_zero_byte(ciphers, "tls_options", "ciphers");
  if (!ciphers.empty() && SSL_CTX_set_cipher_list(get(), ciphers.c_str()) != 1)
    refuse_options("ciphers: " + take_reasons("none of them is known"));
  trust(options);
  identify(options);
  set_protocols(options);
  set_sessions(options);
  ERR_clear_error();
}

void context_state::set_protocols(const tls_options& options) {
  for (const std::string& protocol : options.alpn) {
    if (protocol.empty() || protocol.size() > 255)
      refuse_options("alpn: a protocol's name has from 1 to 255 bytes");
    protocols_ += static_cast<char>(protocol.size());
    protocols_ += protocol;
  }
  if (protocols_.empty()) return;
  if (server_) {
    SSL_CTX_set_alpn_select_cb(get(), &choose_protocol, this);
  } else if (SSL_CTX_set_alpn_protos(get(),
                                     reinterpret_cast<const unsigned char*>(protocols_.data()),
                                     static_cast<unsigned int>(protocols_.size())) != 0) {
    throw std::bad_alloc();
  }
}

void context_state::set_sessions(const tls_options& options) {
  // A server sends its tickets with its first write (connection::write). A peer that does not
  // read them therefore cannot keep the handshake from ending.
  SSL_CTX_set_num_tickets(get(), 0);
  if (!tickets_) SSL_CTX_set_options(get(), SSL_OP_NO_TICKET);
  if (server_) {
    // A session that was made under other rules for clients is not resumed after a reload.
    const std::string rules =
        "troupe " + std::to_string(static_cast<int>(options.client_certificates)) + trusted_;
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    SHA256(reinterpret_cast<const unsigned char*>(rules.data()), rules.size(), digest.data());
    SSL_CTX_set_session_id_context(get(), digest.data(), digest.size());
    SSL_CTX_set_session_cache_mode(get(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(get(), &use_ticket_key);
  } else if (tickets_) {
    SSL_CTX_set_session_cache_mode(get(), SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(get(), &on_new_session);
  } else {
    SSL_CTX_set_session_cache_mode(get(), SSL_SESS_CACHE_OFF);
  }
}

void context_state::trust(const tls_options& options) {
  if (!verifies_) return SSL_CTX_set_verify(get(), SSL_VERIFY_NONE, nullptr);
  const bool required = server_ && options.client_certificates == client_proof::required;
  SSL_CTX_set_verify(get(), SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  trusted_ = text_of(options.ca_file, options.ca_pem, "ca");
  if (trusted_.empty()) {
    if (server_)
      refuse_options("client_certificates: whom to trust must be named (ca_file, ca_pem)");
    if (!options.ca_file.empty()) refuse_options("ca_file: " + options.ca_file + " is empty");
    if (SSL_CTX_set_default_verify_paths(get()) != 1)
      refuse_options("the system's store of certificates: " + take_reasons("it cannot be read"));
    return;
  }
  const bio_ptr from = reader_of(trusted_);
  int count = 0;
  while (const x509_ptr certificate = next_certificate(*from)) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(get()), certificate.get()) != 1)
      throw std::bad_alloc();
    if (server_) SSL_CTX_add_client_CA(get(), certificate.get());
    ++count;
  }
  if (count == 0) refuse_options("ca: there is no certificate: " + take_reasons("it has none"));
  ERR_clear_error();  // the end of the text leaves an error in the queue
}

void context_state::identify(const tls_options& options) {
  const std::string certificates =
      text_of(options.certificate_file, options.certificate_pem, "certificate");
  const std::string key = text_of(options.key_file, options.key_pem, "key");
  if (certificates.empty() || key.empty()) {
    if (server_ || certificates.empty() != key.empty())
      refuse_options("a certificate and its key are needed");
    return;
  }
  identities_.push_back(make_identity(certificates, key));
  const identity& first = identities_.front();
  if (SSL_CTX_use_cert_and_key(get(), first.own.get(), first.key.get(), first.between.get(), 1) !=
      1) {
    refuse_options("certificate: " + take_reasons("it is not taken"));
  }
  if (options.more.empty()) return;
  if (!server_) refuse_options("more: a client has one certificate");
  for (const tls_identity& given : options.more) {
    const std::string certificate =
        text_of(given.certificate_file, given.certificate_pem, "certificate");
    const std::string key_text = text_of(given.key_file, given.key_pem, "key");
    if (certificate.empty() || key_text.empty())
      refuse_options("more: a certificate and its key are needed");
    identities_.push_back(make_identity(certificate, key_text));
  }
  for (std::size_t i = 0; i < identities_.size(); ++i) hosts_.add(*identities_[i].own, i);
  SSL_CTX_set_cert_cb(get(), &choose_identity, this);
}

// The first identity is set already. It also serves clients that ask for a host which no identity
// fits.
int context_state::choose_identity(SSL* ssl, void* self) noexcept {
  const char* host = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (host == nullptr) return 1;
  const auto& state = *static_cast<const context_state*>(self);
  try {
    const std::optional<std::size_t> found = state.hosts_.find(host);
    if (!found) return 1;
    const identity& chosen = state.identities_[*found];
    return SSL_use_cert_and_key(ssl, chosen.own.get(), chosen.key.get(), chosen.between.get(), 1);
  } catch (const std::bad_alloc&) {
    return 0;  // the handshake fails
  }
}

int context_state::use_ticket_key(SSL* ssl, unsigned char* name, unsigned char* iv,
                                  EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int encrypts) noexcept {
  const auto& state =
      *static_cast<const context_state*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  try {
    return encrypts != 0 ? state.keys_->encrypt(name, iv, cipher, mac)
                         : state.keys_->decrypt(name, iv, cipher, mac);
  } catch (const std::bad_alloc&) {
    return -1;
  }
}

int context_state::choose_protocol(SSL* ssl, const unsigned char** chosen, unsigned char* length,
                                   const unsigned char* offered, unsigned int offered_length,
                                   void* self) noexcept {
  const auto pick = [&](std::string_view ours) {
    unsigned char* found = nullptr;
    const int how =
        SSL_select_next_proto(&found, length, reinterpret_cast<const unsigned char*>(ours.data()),
                              static_cast<unsigned int>(ours.size()), offered, offered_length);
    *chosen = found;
    return how == OPENSSL_NPN_NEGOTIATED;
  };
  const std::string& ours = static_cast<const context_state*>(self)->protocols_;
  const auto& on = *static_cast<const connection*>(SSL_get_app_data(ssl));
  if (!on.also().empty() && has_protocol(ours, on.beside())) {
    // The peer's offer refers to the same bytes as `chosen` does, unlike this copy.
    std::array<char, 256> also;
    const std::size_t bytes = std::min(on.also().size(), also.size() - 1);
    also[0] = static_cast<char>(bytes);
    std::copy_n(on.also().begin(), bytes, also.begin() + 1);
    if (pick({also.data(), bytes + 1})) {
      *chosen = reinterpret_cast<const unsigned char*>(on.also().data());
      return SSL_TLSEXT_ERR_OK;
    }
  }
  return pick(ours) ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
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
  session_ptr session = std::move(found->second);
  sessions_.erase(found);
  return session;
}

void context_state::keep_session(const std::string& host, session_ptr session) noexcept {
  std::lock_guard lock(mutex_);
  try {
    if (sessions_.size() >= sessions_max && !sessions_.contains(host))
      sessions_.erase(sessions_.begin());
    sessions_[host] = std::move(session);
  } catch (const std::bad_alloc&) {  // without memory, the next connection makes a full handshake
  }
}

context_slot::context_slot(const tls_options& options, bool server)
    : server_(server),
      keys_(server ? std::make_shared<ticket_keys>(options.ticket_key_time) : nullptr),
      options_(options),
      state_(std::make_shared<context_state>(options, server, keys_)) {}

std::shared_ptr<context_state> context_slot::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

void context_slot::check_server(const char* operation) const {
  if (!server_)
    throw usage_error(std::string("troupe: tls_context::") + operation +
                      ": that is the context of a client");
}

void context_slot::reload() {
  std::unique_lock lock(mutex_);
  const tls_options same = options_;
  lock.unlock();
  reload(same);
}

// The mutex is not held while files are read: new connections do not wait for that.
void context_slot::reload(const tls_options& options) {
  check_server("reload");
  auto state = std::make_shared<context_state>(options, server_, keys_);
  tls_options kept = options;
  keys_->set_period(options.ticket_key_time);
  std::lock_guard lock(mutex_);
  std::swap(options_, kept);
  state_.swap(state);
}

void context_slot::rotate_ticket_keys() {
  check_server("rotate_ticket_keys");
  keys_->rotate();
}

}  // namespace tls
}  // namespace troupe
