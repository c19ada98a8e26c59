// tls_options: the certificates that a TLS context trusts and presents, and the protocols that it
// allows.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "troupe/base/time_span.hpp"

namespace troupe {

// TLS versions that a context may allow.
enum class tls_version : std::uint8_t { v1_2, v1_3 };

// Whether a server asks its clients for certificates. A certificate that a client presents must be
// signed by one of the trusted ones, or the handshake fails.
enum class client_proof : std::uint8_t {
  none,       // the server does not ask
  requested,  // a client without a certificate is also served
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

// Files are read when the context is created, and not kept open. Text is PEM.
struct tls_options {
  // Not an aggregate: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression.
  tls_options() {}

  // Options for HTTPS, for a client, or for a server with these files. ALPN is "http/1.1", the
  // protocol of http::server and http::client, so that peers that also support HTTP/2 agree on it.
  // A server also speaks "http/1.0" to clients that offer nothing else. A peer that offers no
  // protocol at all is served as well.
  static tls_options https() {
    tls_options options;
    options.alpn = {"http/1.1"};
    return options;
  }
  static tls_options https(std::string certificate_file, std::string key_file) {
    tls_options options = https();
    options.alpn.emplace_back("http/1.0");
    options.certificate_file = std::move(certificate_file);
    options.key_file = std::move(key_file);
    return options;
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
  // (without a passphrase). A server needs a certificate.
  std::string certificate_file, certificate_pem;
  std::string key_file, key_pem;
  // Further certificates, for a server with several hosts. The server presents the first
  // certificate that is valid for exactly the host that the client requests (SNI); if there is
  // none, the first whose wildcard ("*.example.org") covers that host. The search begins with the
  // certificate above, which the server also presents if no certificate fits or if the client
  // requests no host. Default: none.
  std::vector<tls_identity> more;
  // Application protocols to negotiate (ALPN), the preferred one first. Default: none. A server
  // with a list refuses a client that offers only protocols outside the list.
  std::vector<std::string> alpn;
  tls_version min_version = tls_version::v1_2, max_version = tls_version::v1_3;
  // TLS 1.2 ciphers, in OpenSSL's syntax. Default, for servers: those with forward secrecy and
  // authenticated encryption (ECDHE with AES-GCM or ChaCha20-Poly1305), the server's preference
  // first; for clients: OpenSSL's. All TLS 1.3 ciphers have both properties.
  std::string ciphers;
  // Maximum bytes that a peer may send in its handshake. Default 64 KiB; more is a tls_error
  // (protocol).
  std::size_t handshake_bytes = 64 * 1024;

  // True: session tickets are used, so that a client's next connection to the same server begins
  // faster. A client keeps one session for each host, at most 256, as long as its context lives.
  // Default true.
  bool tickets = true;
  // For servers: the time for which one key encrypts new tickets. Default 1 h. The server still
  // accepts tickets of the two previous keys: a ticket is valid for 2 to 3 times this time, and for
  // 2 h at the longest. A stolen key reveals the data of the TLS 1.2 connections whose tickets it
  // encrypted.
  time_span ticket_key_time = std::chrono::hours(1);
};

}  // namespace troupe
