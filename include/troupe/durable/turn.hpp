// turn: the effects of a durable actor's handler besides the change of its object.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/base/time_span.hpp"
#include "troupe/durable/call.hpp"
#include "troupe/durable/message_id.hpp"

namespace troupe::durable {

// A handler that sends to other durable actors, sets reminders or has effects outside of the store
// takes a `turn&` as its first parameter. The messages and reminders are stored in the same
// transaction as the state, or not at all.
//
// Thread: the handler's. Lifetime: until the handler has ended.
//
// Example (declarations):
//     struct Account {
//       std::int64_t cents = 0;
//       void deposit(std::int64_t amount) { cents += amount; }
//       void pay(troupe::durable::turn& turn, std::string to, std::int64_t amount) {
//         if (amount > cents) throw std::runtime_error("not enough money");
//         cents -= amount;
//         turn.post<&Account::deposit>(to, amount);
//       }
//     };
class turn {
 public:
  explicit turn(parts::turn_state& state) noexcept : state_(state) {}
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;

  // The key of this actor.
  const std::string& key() const noexcept;
  // The id of the message that is handled.
  const message_id& id() const noexcept;
  // An id for one effect on the outside world. A handler that runs again after a crash or a failure
  // gets the same ids in the same order. A receiver that remembers the ids it has seen can then
  // ignore the second call.
  message_id next_id() noexcept;

  // Sends a message to the actor with that key, of the class of the method, when this turn is
  // stored. Order: messages of one actor to another arrive in the order in which they were sent.
  // Errors: unknown_method.
  template <auto Method, class... Args>
  void post(std::string_view key, Args&&... args) {
    parts::send_from(state_, request_of<Method>(key, std::forward<Args>(args)...));
  }

  // Asks that actor, which handles the message and stores its effects before it answers. This
  // handler's own message is stored no later than the turn of the asked actor. If this handler runs
  // again, it gets the stored answer, and the actor is not asked again. The asked actor does not
  // see the changes and posts of this handler so far.
  //
  // Errors, at the co_await: handler_failed; deadlock if the asked actor waits for this one;
  // unknown_method; schema_error; database::error, after which this handler is given up: none of
  // its effects are stored.
  template <auto Method, class... Args>
  [[nodiscard]] auto ask(std::string_view key, Args&&... args) {
    using facts = parts::method_of<decltype(Method)>;
    using given = typename parts::awaited_of<typename facts::returned>::type;
    using result = typename parts::answer_type<given>::type;
    auto answer = std::make_unique<parts::answer_of<result>>();
    future<result> later = answer->get_future();
    parts::request asked = request_of<Method>(key, std::forward<Args>(args)...);
    asked.answer = std::move(answer);
    parts::ask_from(state_, std::move(asked));
    return later;
  }

  // Sends a message to this actor at that time, or repeatedly (remind_every, remind_by), after a
  // restart as well. It replaces the reminder of this actor with the same name, of at most 150
  // bytes. A time that passed while no program had the store open counts once. Accuracy: some ms,
  // by the system's clock. Under policy::simulated the time of day is virtual: it begins on
  // 2023-11-14 at 22:13:20 UTC and advances as troupe::now() does. A time that a handler takes from
  // std::chrono::system_clock is years ahead of it.
  template <auto Method, class... Args>
  void remind_at(std::string_view name, wall_time due, Args&&... args) {
    set_reminder(name, due, "", request_of<Method>(key(), std::forward<Args>(args)...));
  }
  template <auto Method, class... Args>
  void remind_every(std::string_view name, time_span period, Args&&... args) {
    set_period(name, period, request_of<Method>(key(), std::forward<Args>(args)...));
  }
  // By a cron expression, in the system's time zone (troupe/cron/schedule.hpp). Throws option_error
  // if it makes no sense.
  template <auto Method, class... Args>
  void remind_by(std::string_view name, std::string_view cron, Args&&... args) {
    set_schedule(name, cron, request_of<Method>(key(), std::forward<Args>(args)...));
  }
  // Removes the reminder of that name, if any. A message that it has sent still arrives.
  void forget_reminder(std::string_view name);

 private:
  template <auto Method, class... Args>
  static parts::request request_of(std::string_view key, Args&&... args) {
    using facts = parts::method_of<decltype(Method)>;
    parts::request request;
    request.kind = &parts::class_tag<typename facts::owner>;
    request.method = &parts::method_tag<Method>;
    request.key = std::string(key);
    request.arguments = parts::encode_arguments<facts>(std::forward<Args>(args)...);
    return request;
  }
  void set_reminder(std::string_view name, wall_time due, std::string rule, parts::request request);
  void set_period(std::string_view name, time_span period, parts::request request);
  void set_schedule(std::string_view name, std::string_view cron, parts::request request);

  parts::turn_state& state_;
};

}  // namespace troupe::durable
