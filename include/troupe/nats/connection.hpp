// connection: publish, subscribe and request over NATS, for actors and tasks.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/nats/error.hpp"
#include "troupe/nats/message.hpp"
#include "troupe/nats/options.hpp"
#include "troupe/nats/stored.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/task/task.hpp"

namespace troupe::nats {

class client_handle;
class connection;
struct subscription_state;

// A connection of the running runtime that is already established. Errors: unreachable and denied,
// if no server has accepted the client in one round.
task<connection> connect(std::string servers, options chosen = {});

// The messages of one subscription, in the order in which they arrive. A stream, for `|`. It keeps
// unread messages, up to the limits of subscribe_options; messages beyond them are missed: the next
// message has their number. It continues over a new connection to a server; messages published
// meanwhile do not reach it. While it exists, it keeps the program alive.
//
// Thread: one handler or task at a time. Lifetime: keeps the connection; its destructor ends the
// subscription.
//
// Example (declarations):
//     #include <troupe/nats/connection.hpp>
//     troupe::task<> watch(troupe::nats::connection bus) {
//       auto orders = co_await bus.subscribe("orders.*");
//       while (const auto one = co_await orders.next())
//         std::cout << one->subject << ": " << one->payload << '\n';
//     }
class subscription {
 public:
  using value_type = message;
  subscription(subscription&&) noexcept;
  subscription& operator=(subscription&&) = delete;
  ~subscription();

  // Waits for the next message. Returns nullopt at the end: after unsubscribe(), drain(), the close
  // of the connection, or the last of ends_after messages. Errors: failure::denied if the server
  // refuses the subscription; the failure that has closed the connection for good; too_much_kept,
  // once, if the subscription has ended and lost its waiting messages because it had the most of
  // them (options::unread_bytes_max).
  task<std::optional<message>> next();
  // The number of messages that were dropped because there was no space for them.
  std::uint64_t missed() const noexcept;
  // Whether no new messages arrive any more; earlier messages may still wait to be read.
  bool has_ended() const;

  // Ends the subscription at once: no further messages arrive, and waiting messages are discarded.
  void unsubscribe() noexcept;
  // Ends the subscription in order: waits until the server sends no more messages. next() still
  // gives the messages that the server has sent before, and then the end.
  task<> drain();

 private:
  friend class connection;
  subscription(std::shared_ptr<const client_handle> by,
               std::shared_ptr<subscription_state> state) noexcept;
  std::shared_ptr<const client_handle> by_;
  std::shared_ptr<subscription_state> state_;
};

// A connection to one of several NATS servers. It connects at once, and connects again when the
// connection is lost; calls wait until it is connected. Handlers and tasks await the calls, and no
// worker is blocked.
//
// `servers`: "nats://ada:secret@one:4222,two,tls://three"; the scheme, the user and the port may be
// left out. In a user and a password, special characters are percent-encoded: %40 for @ (RFC 3986).
// The servers are tried in random order, together with the servers that a server announces.
//
// Delivery is at most once: a message that was in transit when a connection ended may be lost, and
// is not sent again. Messages that wait to be sent at that time are sent over the next connection.
//
// Thread: make it on any; await the calls in handlers and tasks. Copies are the same connection.
// Errors: error with its kind, which each waiting call throws when the connection is closed for
// good; timed_out and cancelled. Lifetime: when the last copy and the last subscription are
// destroyed, published messages are still sent, and the connection is closed. Until then it keeps
// the program alive.
//
// Example (declarations):
//     troupe::task<> shop(troupe::nats::connection bus) {
//       co_await bus.publish("orders.new", "12 pens");
//       const troupe::nats::message answer = co_await bus.request("prices", "pen");
//       std::cout << answer.payload << '\n';
//     }
class connection {
 public:
  // Throws option_error for addresses and options that make no sense.
  connection(runtime& on, std::string_view servers, const options& chosen = {});

  // Queues the message to be sent; waits while more than waiting_bytes_max bytes are queued. The
  // server does not acknowledge the message: see flush(). Errors: bad_subject and too_large, before
  // anything is sent; closed.
  task<> publish(std::string_view subject, std::string_view payload) const;
  task<> publish(message outgoing) const;
  // The same without a wait. Returns false if it would have to wait; nothing was sent.
  bool try_publish(std::string_view subject, std::string_view payload) const;
  // The same for receivers that read several payloads from one message, in their order. Payloads
  // that this call publishes to one subject before they can be sent become one message of at most
  // 16 KiB: `lead`, and then the pieces of each call. The server then has fewer messages to handle.
  // Returns false as well if the payload is too large for that.
  bool try_publish_joined(std::string_view subject, std::string_view lead,
                          std::initializer_list<std::string_view> pieces) const;

  // Sends a request and awaits the first answer. Answers arrive at one subscription of this
  // connection, by a token. Errors: no_responders, at once, when the subject has no subscribers;
  // timed_out after request_timeout or by with_deadline; lost, when the connection ended after it
  // was sent: a peer may have received it; closed, denied, bad_subject, too_large. Exactly one of
  // these or an answer ends it.
  task<message> request(std::string_view subject, std::string_view payload) const;
  task<message> request(message outgoing) const;

  // Publishes to a JetStream stream, and waits until the stream has stored the message. Errors: as
  // request(); no_responders when no stream takes the subject; stream_error when the stream refuses
  // it. After lost and timed_out the message may have been stored: send it again with the same id.
  task<stored> store(std::string_view subject, std::string_view payload,
                     const store_options& chosen = {}) const;
  task<stored> store(message outgoing, const store_options& chosen = {}) const;

  // Waits only until the subscription is queued to be sent: messages that others publish after this
  // connection's next flush() reach it. Wildcards: "orders.*", "orders.>". Errors: bad_subject,
  // closed, option_error.
  task<subscription> subscribe(std::string_view subject,
                               const subscribe_options& chosen = {}) const;

  // Waits until the server has received all earlier messages and subscriptions. Errors: lost, if
  // the connection ended first: some of them may not have arrived; closed, timed_out.
  task<> flush() const;

  // Closes the connection in order: subscriptions receive no new messages, their readers read the
  // messages that have arrived, messages that these readers publish meanwhile are sent, and the
  // connection is closed. Errors: timed_out and cancelled, by with_deadline; then it is not closed.
  task<> drain() const;
  // Closes the connection at once: messages that wait are not sent, and waiting calls fail.
  void close() const noexcept;

  // The present status, or the status a moment ago.
  struct status {
    bool connected = false;
    std::string server;                 // "host:4222"; of the last connection
    std::uint64_t connections = 0;      // that were made
    std::size_t waiting_bytes = 0;      // to be sent
    std::size_t subscriptions = 0;      // that are not at their end
    std::size_t requests = 0;           // that wait for an answer
    std::size_t payload_bytes_max = 0;  // the server's limit; 0 before the first connection
  };
  status now() const;

 private:
  friend task<connection> connect(std::string, options);
  explicit connection(std::shared_ptr<const client_handle> by) noexcept : by_(std::move(by)) {}
  std::shared_ptr<const client_handle> by_;
};

}  // namespace troupe::nats
