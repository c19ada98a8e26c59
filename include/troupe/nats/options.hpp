// options: the settings of a connection to NATS, and of a subscription.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/base/time_span.hpp"
#include "troupe/tls/context.hpp"

namespace troupe::nats {

// An event in the life of a connection.
enum class incident : std::uint8_t {
  connected,  // also again
  lost,       // the connection ended; the next is being made
  refused,    // the server refused a command: the text is the server's
  slow,    // a subscription had no space for a message; reported once until all its messages were
           // read
  closed,  // for good
};

struct unread_book;

// A limit of the bytes that wait to be read, for connections that share it (options::unread): in
// all of them together, and in one of them. Copies are the same limit. Thread: any.
//
// Example:
//     #include <troupe/nats/options.hpp>
//     troupe::nats::options chosen;
//     chosen.unread = troupe::nats::unread_limit(std::size_t{1} << 30);  // 1 GiB
class unread_limit {
 public:
  // `per_connection`: 0 is an eighth. Throws option_error for less than 64 KiB.
  explicit unread_limit(std::size_t bytes, std::size_t per_connection = 0);

 private:
  friend class client_state;
  std::shared_ptr<unread_book> book_;
};

// A value that makes no sense is an option_error.
struct options {
  // Not an aggregate, for the same reason as tls_options.
  options() {}

  // The beginning of the subjects to which answers to requests arrive: this, a random word of the
  // connection, and a number with a random token of the request, which cannot be guessed. With a
  // separate prefix for each program, a server can forbid other programs to read its answers. The
  // prefix consists of words between dots.
  std::string inbox = "_INBOX";
  // The name of the client that the server shows. Default: none.
  std::string name;
  // The client's identity: a user with a password, or a token, or a key, or the content of a
  // credentials file. The address may also contain a user and a password. Default: none.
  std::string user, password, token;
  // A seed ("SU…") of an nkey, as a text or in a file.
  std::string nkey_seed, nkey_file;
  // A file with a JWT and a seed (".creds"), or its text.
  std::string credentials_file, credentials;
  // TLS, with the trusted certificates, and the client's own certificate for servers that ask for
  // it. Default: as the server and the address require ("tls://…"), with the certificates of the
  // system.
  std::optional<tls_options> tls;

  // The time limit of the connection to one server, with the login; more than 0.
  time_span connect_timeout = std::chrono::seconds(5);
  // The number of rounds over all servers in which a lost connection is tried again before it is
  // closed for good; 0: none. Between two rounds the client waits for a random part of a delay that
  // doubles up to the second value. The first connection has one round.
  unsigned reconnect_rounds = 60;
  time_span reconnect_delay = std::chrono::milliseconds(100);
  time_span reconnect_delay_max = std::chrono::seconds(5);
  // Whether the servers that a server announces are also used.
  bool discover_servers = true;

  // Bytes that may wait to be sent, even while there is no connection; a publisher of more waits. 1
  // or more.
  std::size_t waiting_bytes_max = 1024 * 1024;
  // The time for which the server may accept no byte that is sent; then the connection is given up.
  // More than 0.
  time_span write_timeout = std::chrono::seconds(30);
  // The time limit of a request, beside the limit of with_deadline; more than 0.
  time_span request_timeout = std::chrono::seconds(10);
  // The interval at which a silent server gets a ping, and the number of unanswered pings after
  // which the connection is given up. More than 0 each.
  time_span ping_interval = std::chrono::seconds(20);
  unsigned pings_max = 2;

  // Maximum bytes of a message and of its headers from the server; more ends the connection.
  std::size_t message_bytes_max = 64 * 1024 * 1024;
  std::size_t header_bytes_max = 64 * 1024;
  // Bytes of messages that wait to be read, in all subscriptions of the connection together. Past
  // it the subscription with the most of them loses its waiting messages, which count as missed, or
  // ends: subscribe_options::ends_when_largest. Default 256 MiB; at least 64 KiB.
  std::size_t unread_bytes_max = 256 * 1024 * 1024;
  // A limit that the connection shares with other connections, instead of unread_bytes_max.
  // Default: none.
  std::optional<unread_limit> unread;
  // Whether publish and request send the trace of the caller, as the headers `traceparent` and
  // `tracestate`.
  bool send_trace = true;

  // Called for each event of the connection, in its tasks, one at a time; it must neither block nor
  // throw. Default: none.
  std::function<void(incident, std::string_view text)> on_incident;
};

// The options of one subscription.
struct subscribe_options {
  // Not an aggregate, for the same reason as tls_options.
  subscribe_options() {}

  // Of the subscriptions with the same queue group, one gets each message. Default: none.
  std::string queue;
  // Messages and bytes that wait to be read; a message that arrives while there is no room is
  // missed, and counted. 1 or more.
  std::size_t messages_max = 8'192;
  std::size_t bytes_max = 16 * 1024 * 1024;
  // True: if too many bytes wait in all subscriptions, and most of them in this one
  // (options::unread_bytes_max), the subscription ends with failure::too_much_kept. Default false:
  // it loses its waiting messages, which count as missed.
  bool ends_when_largest = false;
  // The subscription ends after this number of messages; 0: no limit.
  std::uint64_t ends_after = 0;
};

}  // namespace troupe::nats
