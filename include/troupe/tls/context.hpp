// tls_context: whom to trust, and who we are: what many connections of TLS have in common.
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

enum class tls_version : std::uint8_t { v1_2, v1_3 };

// A certificate, with those between it and the root behind it, and its key (without a passphrase):
// files, or text in PEM.
//
// Example:
//     troupe::tls_identity other;
//     other.certificate_file = "/etc/ssl/example.net.pem";
//     other.key_file = "/etc/ssl/private/example.net.pem";
struct tls_identity {
  // Not an aggregate, as tls_options.
  tls_identity() {}
  std::string certificate_file, certificate_pem;
  std::string key_file, key_pem;
};

// Files are read, and not kept open, when the context is made. Text is in PEM as well.
struct tls_options {
  // Not an aggregate: GCC 12 destroys what a temporary one holds twice when it lies in a co_await
  // expression.
  tls_options() {}

  // For HTTPS: ALPN is "http/1.1", the protocol that http::server and http::client speak, so that
  // peers that could speak HTTP/2 as well agree on it. Of a client; of a server with these files. A
  // peer that offers no protocol at all is served as well.
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

  // Of clients: the server's certificate is checked, and that it is of the host asked for. Default
  // true. False: anybody can be in between.
  bool verify = true;
  // Of servers: clients must show a certificate, which one of those below has signed. Default
  // false.
  bool verify_clients = false;
  // Whom to trust. Default, for clients: the system's store of certificates.
  std::string ca_file, ca_pem;
  // Our certificate, with those between it and the root behind it, and its key (without a
  // passphrase). A server needs one.
  std::string certificate_file, certificate_pem;
  std::string key_file, key_pem;
  // Of servers of several hosts: the first certificate is shown that is for the host whom a client
  // asks for (SNI), by its names; wildcards count. The one above is the first, and is shown as well
  // to who asks for none of them, or for nobody. Default none.
  std::vector<tls_identity> more;
  // Protocols to agree on (ALPN), the best first. Default none. A server that has some refuses
  // clients that offer only others.
  std::vector<std::string> alpn;
  tls_version min_version = tls_version::v1_2, max_version = tls_version::v1_3;
  // Connections to a server that was spoken to before begin faster. Default true. A client keeps
  // one session for each host, 256 at most, as long as its context lives.
  bool tickets = true;
};

// Any thread; copies are the same context, and connections keep it. Make one for many connections:
// reading the system's store takes some 30 ms, here and now; in a handler that others wait for,
// within blocking().
//
// Example (declarations):
//     troupe::tls_context for_clients() {
//       return troupe::tls_context::client(troupe::tls_options::https());
//     }
class tls_context {
 public:
  // Throw option_error: a file that cannot be read, a key of another certificate, …
  static tls_context client(const tls_options& options = {});
  static tls_context server(const tls_options& options);

 private:
  friend tls::context_access;
  explicit tls_context(std::shared_ptr<tls::context_state> state) noexcept
      : state_(std::move(state)) {}
  std::shared_ptr<tls::context_state> state_;
};

}  // namespace troupe
