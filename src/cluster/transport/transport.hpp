// transport: how bytes travel between the nodes of a cluster. One seam, with NATS and the simulated
// network behind it. A node that runs alone has none.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "troupe/task/task.hpp"

namespace troupe::cluster {

// A message that has arrived for this node. Where `reply` is not empty, the sender waits for an
// answer.
struct incoming {
  incoming() noexcept {}
  std::string bytes;
  std::string reply;
};

// For a call that has been done without a wait.
inline task<> nothing() { co_return; }

// Each node has a transport. A message from one node to another arrives at most once, and in the
// order of sending while the connection of the sender lasts. A message that was on its way when a
// connection was lost may still come, after messages that are sent over the next one: the network,
// or the server, still has it. Thread: await the calls in tasks; several may run at once. After
// close() calls fail with unreachable.
class transport {
 public:
  // Awaited before the next message of the same subscription is taken: a slow receiver therefore
  // holds back, and messages without room are lost (windows.hpp holds the senders back). It must
  // not throw, and it keeps alive all that it uses: a call that runs may outlive the transport.
  class taker {
   public:
    using awaited = std::function<task<>(incoming)>;
    // Takes it without a wait. Returns false if that is not possible; then the message is
    // unchanged.
    using at_once = std::function<bool(incoming&)>;

    template <class F>
    requires(std::is_constructible_v<awaited, F> && !std::is_same_v<std::decay_t<F>, taker>)
        taker(F takes)
        : takes_(std::move(takes)) {}
    taker(awaited takes, at_once takes_at_once)
        : takes_(std::move(takes)), takes_at_once_(std::move(takes_at_once)) {}

    bool try_now(incoming& message) const { return takes_at_once_ && takes_at_once_(message); }
    task<> operator()(incoming message) const { return takes_(std::move(message)); }

   private:
    awaited takes_;
    at_once takes_at_once_;
  };

  transport() = default;
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;
  virtual ~transport() = default;

  // Takes messages to these subjects, until close(). With a queue group, one of the takers of the
  // group gets each message. Done when messages that others send from now on arrive. Errors: as
  // send; after an error, another attempt may succeed.
  virtual task<> take(std::string subject, std::string queue, taker to) = 0;
  // Stops taking that subject. Messages that were sent before are still taken, perhaps after this
  // has returned.
  virtual task<> leave(std::string subject, std::string queue) = 0;

  // Waits while too many bytes wait to be sent. Its end does not mean that the receiver has them.
  // Errors, of cluster::error: unreachable or denied: nothing was sent; too_large.
  virtual task<> send(std::string subject, std::string bytes) = 0;
  // The same without a wait. Returns false if it would have to, or cannot: nothing was sent.
  virtual bool try_send(const std::string& subject, std::string_view bytes) = 0;
  // Whether the taker of that subject is known to take bundles (bundle.hpp). Then try_send() may be
  // given a bundle, whose messages the taker gets one by one.
  virtual bool takes_bundles(const std::string&) const { return false; }
  // As try_send, for a part of a message that begins with `lead`: parts for one subject may arrive
  // in one message, in their order, and parts that are too large for it are refused.
  virtual bool try_send_joined(const std::string& subject, std::string_view lead,
                               std::string_view head, std::string_view body) {
    std::string message(lead);
    message += head;
    message += body;
    return try_send(subject, message);
  }
  // Waits for the first answer, as long as the call context allows. Errors, of cluster::error:
  // unreachable, when no endpoint takes that subject: it did not run; lost, when the connection
  // ended after it was sent; too_large. Besides, timed_out and cancelled.
  virtual task<std::string> request(std::string subject, std::string bytes) = 0;
  // Answers a message with `reply`. Never fails: without a connection the answer is lost.
  virtual task<> answer(std::string reply, std::string bytes) = 0;

  // Whether there is a connection to the others now.
  virtual bool is_connected() const noexcept = 0;
  // The largest message, in bytes.
  virtual std::size_t bytes_max() const noexcept = 0;
  // Takes nothing new, awaits the takers of the messages that have arrived, sends all messages that
  // were passed to send(), and ends: no taker may await it. `at_once`: as a crash does, when it is
  // called and not when it is awaited; takers that run end by themselves. The destructor does the
  // same.
  virtual task<> close(bool at_once) = 0;
};

}  // namespace troupe::cluster
