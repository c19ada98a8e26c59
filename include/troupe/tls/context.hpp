// tls_context: the trusted certificates and the own certificate, shared by many TLS connections.
#pragma once

#include "troupe/base/language.hpp"

#include <memory>
#include <utility>

#include "troupe/tls/options.hpp"

namespace troupe {

namespace tls {
class context_slot;
}  // namespace tls
class tls_stream;

// Shared by many connections. Copies refer to the same context, and connections keep it alive.
// Thread: any. Cost: to read the system's store takes about 30 ms and blocks the calling thread; in
// a handler for which others wait, call client() within blocking().
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

  // For servers: new connections use these options from now on; existing connections keep their
  // options. Without an argument, the options are the same and their files are read again: call it
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
  friend tls_stream;  // takes the state of the slot
  explicit tls_context(std::shared_ptr<tls::context_slot> slot) noexcept : slot_(std::move(slot)) {}
  std::shared_ptr<tls::context_slot> slot_;
};

}  // namespace troupe
