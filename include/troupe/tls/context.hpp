// tls_context: the trusted certificates and the own certificate, shared by many TLS connections.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace tls {
class context_state;
struct context_access;
}  // namespace tls

// Versions of TLS that a context may allow.
enum class tls_version : std::uint8_t { v1_2, v1_3 };

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
  // A peer that offers no protocol at all is served as well.
  static tls_options https() {
    tls_options made;
    made.alpn = {"http/1.1"};
    return made;
  }
  static tls_options https(std::string certificate_file, std::string key_file) {
    tls_options made = https();
    made.certificate_file = std::move(certificate_file);
    made.key_file = std::move(key_file);
    return made;
  }

  // For clients: verify the server's certificate, and that it is valid for the requested host.
  // Default true. False: the client cannot tell the server from an impostor.
  bool verify = true;
  // For servers: clients must present a certificate that is signed by one of the certificates
  // below. Default false.
  bool verify_clients = false;
  // The trusted certificates. Default, for clients: the system's store of certificates.
  std::string ca_file, ca_pem;
  // The own certificate, followed by the intermediate certificates up to the root, and its key
  // (without a passphrase). A server needs one.
  std::string certificate_file, certificate_pem;
  std::string key_file, key_pem;
  // For servers of several hosts: the server presents the first certificate that is valid for the
  // host that the client names (SNI), by the certificate's names, including wildcards. The
  // certificate above is the first of them; it is also presented to a client that names another
  // host or none. Default: none.
  std::vector<tls_identity> more;
  // Protocols for the agreement (ALPN), the preferred one first. Default: none. A server that has
  // some refuses clients that offer only others.
  std::vector<std::string> alpn;
  tls_version min_version = tls_version::v1_2, max_version = tls_version::v1_3;
  // True: connections to a known server begin faster. A client keeps one session for each host, at
  // most 256, as long as its context lives. Default true.
  bool tickets = true;
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

 private:
  friend tls::context_access;
  explicit tls_context(std::shared_ptr<tls::context_state> state) noexcept
      : state_(std::move(state)) {}
  std::shared_ptr<tls::context_state> state_;
};

}  // namespace troupe
