// context_state: an SSL_CTX, and the sessions that a client keeps for later connections.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tls/identity.hpp"
#include "tls/library.hpp"
#include "troupe/tls/context.hpp"

namespace troupe::tls {

class context_state {
 public:
  // Throws option_error, std::bad_alloc.
  context_state(const tls_options& options, bool server);

  SSL_CTX* get() const noexcept { return context_.get(); }
  bool server() const noexcept { return server_; }
  bool verifies() const noexcept { return verifies_; }
  bool tickets() const noexcept { return tickets_; }

  // Returns a session with that host, for one connection; null when there is none. Any thread.
  session_ptr take_session(const std::string& host);
  void keep_session(const std::string& host, session_ptr one) noexcept;

 private:
  // when it is reached, an arbitrary session is dropped
  static constexpr std::size_t sessions_max = 256;

  static int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* length,
                             const unsigned char* offered, unsigned int offered_length,
                             void* self) noexcept;
  static int choose_identity(SSL* of, void* self) noexcept;
  void trust(const tls_options& options);
  void identify(const tls_options& options);

  ssl_ctx_ptr context_;
  std::vector<identity> identities_;  // the first one is used when no other fits
  std::string protocols_;             // in the form of ALPN: each name behind its length
  const bool server_, verifies_, tickets_;
  std::mutex mutex_;
  std::map<std::string, session_ptr> sessions_;
};

struct context_access {
  static const std::shared_ptr<context_state>& state(const tls_context& of) noexcept {
    return of.state_;
  }
  static tls_context make(const tls_options& options, bool server) {
    return tls_context(std::make_shared<context_state>(options, server));
  }
};

}  // namespace troupe::tls
