// protocol_state: the state that one client and its servers have agreed on: subscriptions,
// requests, pings, and the bytes that are to be sent. Uses no socket and no time; outlives
// connections.
//
// Invariants
//   N1  `out` begins with a command and has whole commands only, since it is taken as a whole.
//   N2  a request is in `requests` until it was answered, cancelled, or lost: it leaves it once.
//   N3  without a connection `out` has nothing but messages to publish; begin() writes the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kit/secrets.hpp"
#include "nats/protocol/info.hpp"
#include "nats/protocol/parser.hpp"
#include "troupe/nats/message.hpp"

namespace troupe::nats {

// The meaning of a part of the input for the client.
struct happened {
  enum class kind : std::uint8_t {
    nothing,
    message,      // `number` is the subscription; `last`: it has ended with it
    answer,       // `number` is the request
    pong,         // `number` was passed to ping()
    info,         // the server has sent its properties anew
    refused,      // the server's reason is `text`
    denied_read,  // it refuses these subscriptions (`numbers`), which are forgotten
    denied_send,  // it refuses the messages of these requests, which are forgotten
    broken,       // the server does not keep to the protocol: `text`
  };
  kind outcome = kind::nothing;
  std::uint64_t number = 0;
  bool last = false;
  nats::message message;
  std::string text;
  std::vector<std::uint64_t> numbers;
};

class protocol_state {
 public:
  // `inbox`: the part of our reply subjects that no one else has, behind `prefix`. Each subject has
  // a token of `secrets` of its own: a reader of one subject, or of the numbering, can answer
  // no other request. Without `secrets` they have numbers alone. Before the first request.
  // Lifetime: `secrets` lives as long as the protocol_state.
  void name_inbox(std::string_view inbox, std::string_view prefix = "_INBOX",
                  kit::secret_source* secrets = nullptr) {
    inbox_ = std::string(prefix) + "." + std::string(inbox) + ".";
    secrets_ = secrets;
  }

  // The number under which messages come. `ends_after`: 0 or the number of messages.
  std::uint64_t subscribe(std::string_view subject, std::string_view queue,
                          std::uint64_t ends_after);
  // Forgets it: messages that still come are dropped.
  void unsubscribe(std::uint64_t sid);
  // The server sends nothing new; messages that still come are taken, until unsubscribe().
  void stop_delivery(std::uint64_t sid);

  // Their words were checked before. `head` may be null.
  void publish(std::string_view subject, std::string_view reply, const headers* head,
               std::string_view payload);
  // The pieces that this call publishes to one subject, and that were not taken yet, become one
  // message of `lead` and all pieces, with at most `bytes_max` bytes. It keeps its place among
  // messages to the same subject. would_join(): whether the call would add to one that waits.
  void publish_joined(std::string_view subject, std::string_view lead,
                      std::initializer_list<std::string_view> pieces, std::size_t bytes_max);
  bool would_join(std::string_view subject, std::size_t bytes, std::size_t bytes_max) noexcept;
  // `number` is the caller's, and of no other request.
  void request(std::uint64_t number, std::string_view subject, const headers* head,
               std::string_view payload);
  void cancel(std::uint64_t request) noexcept;
  // Asks for a pong, which comes with `number`; without a connection it is sent with the next.
  // 0: it only keeps the connection alive, and unanswered() counts it.
  void ping(std::uint64_t number);
  std::size_t unanswered() const noexcept;

  // A connection is there: subscribes again, and then sends the waiting bytes.
  void begin(server_info about);
  // The calls that were lost with a connection.
  struct losses {
    std::vector<std::uint64_t> requests, pings;
  };
  losses end();
  bool is_connected() const noexcept { return connected_; }
  const server_info& about() const noexcept { return about_; }

  // Bytes that wait to be sent; take() replaces `batch` by all of them.
  std::size_t waiting() const noexcept { return out_.size() + open_bytes_; }
  void take(std::string& batch);

  // Handles an event of the parser, and returns its consequence.
  happened receive(parser::event event, parser& from) {
    happened result;
    receive(event, from, result);
    return result;
  }
  // The same; `event` is as new.
  void receive(parser::event parsed, parser& from, happened& event);

 private:
  struct subscription {
    std::string subject, queue;
    std::uint64_t ends_after = 0, delivered = 0;
    bool stopped = false;
  };
  struct waiting_request {
    std::string subject;
    std::string token;           // in its reply subject, behind the number
    std::uint64_t position = 0;  // of its message, in all bytes of the connection
  };
  // A message that may still grow; without a payload there is none.
  struct open_message {
    std::string subject, payload;
  };
  open_message* find_open(std::string_view subject) noexcept;
  void end_open(open_message& message);
  void end_all_open();
  void write_publish(std::string_view subject, std::string_view reply, const headers* head,
                     std::string_view payload);
  void write_subscription(std::uint64_t sid, const subscription& wanted);
  void take_message(parser::arrived& from, happened& event);
  void take_refusal(const std::string& text, happened& event);

  bool is_answered_by(std::string_view subject, std::uint64_t& number) const noexcept;

  std::string inbox_;  // "_INBOX.….", before the number of a request
  kit::secret_source* secrets_ = nullptr;
  std::map<std::uint64_t, subscription> subscriptions_;
  std::unordered_map<std::uint64_t, waiting_request> requests_;
  std::deque<std::uint64_t> pings_;         // sent, or in `out`
  std::vector<std::uint64_t> later_pings_;  // for the next connection
  std::vector<open_message> open_;          // of subjects that differ
  std::size_t open_bytes_ = 0;              // of all their payloads
  std::string out_;
  server_info about_;
  std::uint64_t last_sid_ = 1;
  std::uint64_t taken_ = 0;  // bytes of this connection that were taken to be sent
  unsigned pongs_ = 0;       // in `out`
  bool connected_ = false, has_inbox_ = false;
};

// The commands PUB and HPUB among whole commands.
std::string only_publishes(std::string_view commands);

}  // namespace troupe::nats
