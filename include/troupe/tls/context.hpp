// tls_context: the trusted certificates and the own certificate, shared by many TLS connections.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "troupe/base/time_span.hpp"

namespace troupe {

namespace tls {
class context_slot;
struct context_access;
}  // namespace tls

// Versions of TLS that a context may allow.
enum class tls_version : std::uint8_t { v1_2, v1_3 };

// Whether a server asks its clients for certificates. A certificate that a client presents must be
// signed by one of the trusted ones, or the handshake fails.
enum class client_proof : std::uint8_t {
  none,       // the server does not ask
  requested,  // a client without a certificate is served, too
  required,   // the handshake of a client without a certificate fails
};

// A certificate, followed by the intermediate certificates up to the root, and its key (without a
// passphrase): as files, or as text in PEM.
//
// Example:
//     troupe::tls_identity other;
//     other.certificate_file = "/etc/ssl/example.net.pem";
//     other.key_file = "/etc/ssl/private/example.net.pem";
struct tls_identity {
  // Not an aggregate, for the same reason as tls_options.
  tls_identity() {}
  std::string certificate_file, certificate_pem;
  std::string key_file, key_pem;
};

// Files are read when the context is created, and not kept open. Text is in PEM as well.
struct tls_options {
  // Not an aggregate: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression.
  tls_options() {}

  // Options for HTTPS, for a client, or for a server with these files. ALPN is "http/1.1", the
  // protocol of http::server and http::client, so that peers that also support HTTP/2 agree on it.
  // A server also speaks "http/1.0" to clients that offer nothing else. A peer that offers no
  // protocol at all is served as well.
  static tls_options https() {
    tls_options made;
    made.alpn = {"http/1.1"};
    return made;
  }
  static tls_options https(std::string certificate_file, std::string key_file) {
    tls_options made = https();
    made.alpn.emplace_back("http/1.0");
    made.certificate_file = std::move(certificate_file);
    made.key_file = std::move(key_file);
    return made;
  }

  // For clients: verify the server's certificate, and that it is valid for the requested host.
  // Default true. False: the client cannot tell the server from an impostor.
  bool verify = true;
  // For servers: whether clients present certificates that are signed by one of the certificates
  // below. Default none.
  client_proof client_certificates = client_proof::none;
  // The trusted certificates. Default, for clients: the system's store of certificates.
  std::string ca_file, ca_pem;
  // The own certificate, followed by the intermediate certificates up to the root, and its key
  // (without a passphrase). A server needs one.
  std::string certificate_file, certificate_pem;
  std::string key_file, key_pem;
  // For servers of several hosts: the server presents the certificate that has the host that the
  // client names (SNI) among its names; if none has, one with a wildcard for that host
  // ("*.example.org"). Of several, the first one counts, and the certificate above is the first of
  // all; it is also presented to a client that names another host or none. Default: none.
  std::vector<tls_identity> more;
  // Protocols for the agreement (ALPN), the preferred one first. Default: none. A server that has
  // some refuses clients that offer only others.
  std::vector<std::string> alpn;
  tls_version min_version = tls_version::v1_2, max_version = tls_version::v1_3;
  // Ciphers of TLS 1.2, in OpenSSL's syntax. Default, for servers: those with forward secrecy and
  // authenticated encryption (ECDHE with AES-GCM or ChaCha20-Poly1305), the server's preference
  // first; for clients: OpenSSL's. All ciphers of TLS 1.3 are of that kind.
  std::string ciphers;
  // Maximum bytes that a peer may send in its handshake. Default 64 KiB; more is a tls_error
  // (protocol).
  std::size_t handshake_bytes = 64 * 1024;

  // True: connections to a known server begin faster. A client keeps one session for each host, at
  // most 256, as long as its context lives. Default true.
  bool tickets = true;
  // For servers: how long new tickets are encrypted with the same key. Default 1 h. Tickets of the
  // two keys before are still accepted, so a ticket is of use for 2 to 3 times as long, and for 2 h
  // at the longest. Who has a key can read what connections with its tickets sent under TLS 1.2.
  time_span ticket_key_time = std::chrono::hours(1);
};

// Shared by many connections. Copies refer to the same context, and connections keep it alive.
// Thread: any. Cost: to read the system's store takes about 30 ms and blocks the calling thread, so
// in a handler for which others wait, call client() within blocking().
//
// Example (declarations):
//     troupe::tls_context for_clients() {
//       return troupe::tls_context::client(troupe::tls_options::https());
//     }
class tls_context {
 public:
  // Throw option_error, for instance for a file that cannot be read, or a key that belongs to
  // another certificate.
  static tls_context client(const tls_options& options = {});
  static tls_context server(const tls_options& options);

  // For servers: new connections use these options from now on; those that exist keep what they
  // have. Without an argument, the options are the same and their files are read again: call it
  // when a certificate was renewed. The keys of tickets stay, so that clients resume their sessions
  // afterwards, unless it changes who is trusted. Blocks for as long as it reads files. Throws as
  // server() does, and then changes nothing; usage_error for a client's context. Thread: any.
  //
  // Example (declarations):
  //     #include <csignal>
  //     #include <troupe/io/signals.hpp>
  //     troupe::task<> reload_by_signal(troupe::tls_context self) {
  //       auto signals = troupe::signal_listener::listen({SIGHUP});
  //       for (;;) {
  //         co_await signals.next();
  //         try {
  //           self.reload();
  //         } catch (const troupe::option_error& e) {
  //           std::cerr << e.what() << '\n';  // the old certificate is still used
  //         }
  //       }
  //     }
  void reload() const;
  void reload(const tls_options& options) const;
  // For servers: encrypts new tickets with a new key from now on, before its time, as after a key
  // may have leaked; call it three times to accept no ticket that exists. Thread: any.
  void rotate_ticket_keys() const;

 private:
  friend tls::context_access;
  explicit tls_context(std::shared_ptr<tls::context_slot> slot) noexcept : slot_(std::move(slot)) {}
  std::shared_ptr<tls::context_slot> slot_;
};

}  // namespace troupe
