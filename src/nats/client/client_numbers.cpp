// The numbers of a connection to NATS: in the summary of its runtime, and in /metrics.
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nats/client/client_state.hpp"

namespace troupe::nats {
namespace {

using connection_status = connection::status;

constexpr std::array request_seconds{1e-4,   2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2,
                                     2.5e-2, 0.1,    0.25, 0.5,  1.0,    2.5,  10.0};

}  // namespace

struct client_state::numbers {
  connection::status status;
  std::size_t waiting_messages = 0;
  std::uint64_t published = 0, received = 0, missed = 0, failed_requests = 0;
  observe::distribution answered;

  template <auto Member>
  static auto of_status(const numbers& now) {
    return now.status.*Member;
  }
  static const observe::number_table<numbers> table;
};

using observe::counter_of;
using observe::gauge_of;
const observe::number_table<client_state::numbers> client_state::numbers::table{
    "troupe_nats",
    {"runtime", "connection"},
    {gauge_of<&of_status<&connection_status::connected>>("connected",
                                                         "1 while a server is connected."),
     counter_of<&of_status<&connection_status::connections>>("connections",
                                                             "Connections that were made."),
     gauge_of<&of_status<&connection_status::subscriptions>>(
         "subscriptions", "Subscriptions that are not at their end."),
     gauge_of<&of_status<&connection_status::requests>>(
         "requests_in_flight", "Requests and flushes that wait for an answer."),
     gauge_of<&of_status<&connection_status::waiting_bytes>>(
         "waiting_bytes", "Bytes that wait to be sent.", observe::number_unit::bytes),
     gauge_of<&numbers::waiting_messages>("waiting_messages",
                                          "Messages whose senders wait for room, or for a server."),
     counter_of<&numbers::published>("published_messages",
                                     "Messages and requests that were given to the connection."),
     counter_of<&numbers::received>("received_messages", "Messages and answers that arrived."),
     counter_of<&numbers::missed>("missed_messages",
                                  "Messages that found no room in their subscription."),
     counter_of<&numbers::failed_requests>("failed_requests",
                                           "Requests that ended without an answer."),
     observe::histogram_of<&numbers::answered>("request_seconds",
                                               "Time from a request to its answer.")}};

client_state::client_state(std::vector<server> servers, const options& given)
    : chosen(given),
      servers_(std::move(servers)),
      wires_(std::make_shared<wire_options>()),
      unread_(std::make_shared<unread_peer>(
          given.unread
              ? given.unread->book_
              : std::make_shared<unread_book>(given.unread_bytes_max, given.unread_bytes_max))),
      answered_(request_seconds) {
  wires_->chosen = given;
}

void client_state::note_answer(std::chrono::nanoseconds took) noexcept {
  answered_.add(std::chrono::duration<double>(took).count());
}

client_state::numbers client_state::read_numbers() {
  numbers read;
  read.status = now();
  {
    std::lock_guard held(mutex_);
    read.waiting_messages = waiting_.size();
    read.published = published_;
    read.received = received_;
  }
  read.missed = missed_.get();
  read.failed_requests = failed_requests_.get();
  read.answered = answered_.get();
  return read;
}

void client_state::show(observing::component_list& among) {
  const auto read = [self = weak_from_this()](observe::row_sink& sink,
                                              const std::vector<std::string>& labels) {
    if (const std::shared_ptr<client_state> connected = self.lock())
      sink.add(numbers::table, labels, connected->read_numbers());
  };
  shown_ = among.add({"nats", "connection", chosen.name.empty() ? "nats" : chosen.name, read});
}

}  // namespace troupe::nats
