// context_state: an SSL_CTX, and the sessions that a client keeps for later connections.
// context_slot: the state that new connections get. A reload puts another one there; connections
// keep the one that they have.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tls/identity.hpp"
#include "tls/library.hpp"
#include "tls/ticket_keys.hpp"
#include "troupe/tls/options.hpp"

namespace troupe::tls {

class context_state {
 public:
  // `keys`: for the tickets of a server. Throws option_error, std::bad_alloc.
  context_state(const tls_options& options, bool server, std::shared_ptr<ticket_keys> keys);

  SSL_CTX* get() const noexcept { return context_.get(); }
  bool server() const noexcept { return server_; }
  bool verifies() const noexcept { return verifies_; }
  bool tickets() const noexcept { return tickets_; }
  std::size_t handshake_bytes_max() const noexcept { return handshake_bytes_; }

  // Returns a session with that host, for one connection; null when there is none. Any thread.
  session_ptr take_session(const std::string& host);
  void keep_session(const std::string& host, session_ptr session) noexcept;

 private:
  // when it is reached, an arbitrary session is dropped
  static constexpr std::size_t sessions_max = 256;

  static int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* length,
                             const unsigned char* offered, unsigned int offered_length,
                             void* self) noexcept;
  static int choose_identity(SSL* ssl, void* self) noexcept;
  static int use_ticket_key(SSL* ssl, unsigned char* name, unsigned char* iv,
                            EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int encrypts) noexcept;
  void set_protocols(const tls_options& options);
  void set_sessions(const tls_options& options);
  void trust(const tls_options& options);
  void identify(const tls_options& options);

  ssl_ctx_ptr context_;
  std::vector<identity> identities_;  // the first one is used when no other fits
  host_index hosts_;
  std::string protocols_;  // in the form of ALPN: each name behind its length
  std::string trusted_;    // the certificates that sign the peers' certificates, in PEM
  const std::shared_ptr<ticket_keys> keys_;
  const bool server_, verifies_, tickets_;
  const std::size_t handshake_bytes_;
  std::mutex mutex_;
  std::map<std::string, session_ptr> sessions_;
};

class context_slot {
 public:
  // Throws option_error, std::bad_alloc.
  context_slot(const tls_options& options, bool server);

  // Throw as the constructor does, and then change nothing.
  void reload();
  void reload(const tls_options& options);
  // Throws usage_error for a client's context, std::bad_alloc.
  void rotate_ticket_keys();
  std::shared_ptr<context_state> state() const;

 private:
  void check_server(const char* operation) const;

  const bool server_;
  const std::shared_ptr<ticket_keys> keys_;  // null for a client
  mutable std::mutex mutex_;                 // guards the other members
  tls_options options_;
  std::shared_ptr<context_state> state_;
};

}  // namespace troupe::tls
