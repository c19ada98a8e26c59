// listener: notifications (NOTIFY) from other sessions.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "troupe/actor/ref.hpp"
#include "troupe/sync/channel.hpp"
#include "troupe/task/task.hpp"

namespace troupe::postgres {

class session;
class connection;

// A notification of a channel, sent by NOTIFY.
struct notification {
  std::string channel;
  std::string text;  // may be empty
  // How many came before it that the listener was too slow for: it keeps 1,024 that wait.
  std::uint64_t missed = 0;
};

// The notifications of one channel that were sent since listen() returned. A stream, for `|`. While
// it exists, its connection keeps the program alive.
//
// Thread: one handler or task at a time. Errors: failure::lost when the connection has ended:
// notifications sent since then are lost; a program reads the data that it needs again, after it
// listens again. Lifetime: keeps the connection open; its destructor ends the subscription.
//
// Example (declarations):
//     #include <troupe/postgres/connection.hpp>
//     troupe::task<> watch(troupe::postgres::connection db) {
//       auto orders = co_await db.listen("orders");
//       while (const auto one = co_await orders.next()) std::cout << one->text << '\n';
//     }
class listener {
 public:
  using value_type = notification;
  listener(ref<session> on, channel<notification> from) noexcept
      : on_(std::move(on)), from_(std::move(from)) {}
  listener(listener&&) noexcept = default;
  listener& operator=(listener&&) = delete;
  ~listener();

  // Waits for the next one; it is always there.
  task<std::optional<notification>> next();

 private:
  friend connection;
  ref<session> on_;
  channel<notification> from_;
};

}  // namespace troupe::postgres
