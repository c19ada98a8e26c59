// store: durable actors, whose state and mail survive the program.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/base/time_span.hpp"
#include "troupe/durable/call.hpp"
#include "troupe/durable/error.hpp"
#include "troupe/durable/kind.hpp"
#include "troupe/durable/message_id.hpp"
#include "troupe/durable/storage.hpp"
#include "troupe/durable/turn.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/task.hpp"

namespace troupe::durable {

namespace parts {
struct store_access;
}

// Limits and times of a store; the defaults suit a server.
struct options {
  // Maximum number of actors in memory. Beyond it, the least recently used actor is unloaded; its
  // state is in the store. Busy actors are not unloaded. 1 or more.
  std::size_t actors_max = 100'000;
  // How long an actor may be idle before it is unloaded. 1 ms or more.
  time_span idle_max = std::chrono::seconds(60);
  // Messages in memory that wait or are being handled. Beyond this number, messages from outside
  // fail with store_full; messages from other durable actors stay in the store until there is
  // space.
  std::size_t waiting_max = 100'000;
  // The same for the bytes of their arguments, all together. 1 or more.
  std::size_t waiting_bytes_max = 256u << 20;
  // After how many failures of its handler a post goes to the dead letters, with the last error. 1
  // or more.
  std::uint32_t failures_max = 5;
  // The time before a failed post is handled again; it doubles with each failure, up to 10 s.
  time_span retry_first = std::chrono::milliseconds(10);
  // How long the answer to an id that the sender chose is kept. A later message with the same id
  // counts as a new message.
  time_span remember = std::chrono::hours(24);
  // The largest state of one actor, in bytes; a handler that makes it larger fails, and so does a
  // message, an answer or an event that is larger. 1 or more.
  std::size_t state_bytes_max = 16u << 20;
  // How long the store waits after a failed commit before it tries again; the time doubles with
  // each failure, up to 5 s; of a node in a cluster up to 500 ms.
  time_span away_first = std::chrono::milliseconds(20);
};

// A store's counters since it was opened, and gauges of its present state.
struct counts {
  std::uint64_t turns = 0;         // handlers whose effects are stored
  std::uint64_t messages = 0;      // from outside, from handlers and of reminders
  std::uint64_t commits = 0;       // transactions
  std::uint64_t failed_turns = 0;  // handlers that threw
  // How often a message had to be handled again, because its handler threw, or because the database
  // failed during an ask of the handler.
  std::uint64_t retries = 0;
  std::uint64_t reminders = 0;  // whose message was sent
  std::uint64_t failed_commits = 0;
  std::chrono::nanoseconds commit_time{0};  // of all commits together
  std::uint64_t loads = 0;                  // actors read from the store
  union {
    std::uint64_t unloaded = 0;  // actors, since others needed the memory or they were idle
    [[deprecated("its name is `unloaded`")]] std::uint64_t put_away;
  };
  std::uint64_t dead_letters = 0;
  std::size_t actors = 0;   // in memory now
  std::size_t waiting = 0;  // messages in memory now
  bool is_away = false;     // the last commit failed, and none has succeeded since
};

// Keys in the order of their bytes; on PostgreSQL a zero byte, or a byte that is not UTF-8, is
// sorted directly after the backslash. The next page begins after keys.back().
struct key_page {
  std::vector<std::string> keys;
  bool has_more = false;
};

// A durable actor, by its class and key. The first message makes the object: from the stored state,
// or new. Copyable. Thread: any. Lifetime: keeps the store open.
template <class T>
class ref {
 public:
  // Asks the actor. The answer arrives when the handler's effects are stored. After an earlier
  // crash either the message is lost, or all its effects are stored.
  //
  // Cost: about one transaction that is shared with all turns of that moment. Errors are in the
  // returned future: handler_failed, which includes that nothing was changed; store_full;
  // schema_error; unknown_method; database::error: if its effect() is none, nothing was changed.
  template <auto Method, class... Args>
  [[nodiscard]] auto ask(Args&&... args) const {
    using facts = parts::method_of<decltype(Method)>;
    using given = typename parts::awaited_of<typename facts::returned>::type;
    using result = typename parts::answer_type<given>::type;
    return send<result, Method>(false, std::forward<Args>(args)...);
  }
  // Sends a message; the future is ready when it is stored. It is handled later, exactly once in
  // effect, even if the program is restarted before. Order: if a sender awaits each post before it
  // sends the next, they are handled in that order. Errors: as ask(), except handler_failed.
  template <auto Method, class... Args>
  [[nodiscard]] future<> post(Args&&... args) const {
    return send<void, Method>(true, std::forward<Args>(args)...);
  }

  // The same actor, for a message with this id. A message whose id was handled within
  // options::remember is not handled again: an ask gets the first answer. A sender that does not
  // learn whether its message was handled sends it again.
  ref with_id(const message_id& id) const {
    ref other = *this;
    other.id_ = id;
    return other;
  }
  const std::string& key() const noexcept { return key_; }

 private:
  friend class store;
  ref(std::shared_ptr<parts::engine> engine, std::string key) noexcept
      : engine_(std::move(engine)), key_(std::move(key)) {}

  template <class Result, auto Method, class... Args>
  future<Result> send(bool is_post, Args&&... args) const {
    using facts = parts::method_of<decltype(Method)>;
    static_assert(std::is_base_of_v<typename facts::owner, T>,
                  "troupe: durable: this is not a method of the actor's class");
    auto answer = std::make_unique<parts::answer_of<Result>>();
    future<Result> later = answer->get_future();
    parts::request request;
    request.kind = &parts::class_tag<T>;
    request.method = &parts::method_tag<Method>;
    request.key = key_;
    request.arguments = parts::encode_arguments<facts>(std::forward<Args>(args)...);
    request.id = id_;
    request.is_post = is_post;
    request.answer = std::move(answer);
    parts::send(engine_, std::move(request));
    return later;
  }

  std::shared_ptr<parts::engine> engine_;
  std::string key_;
  message_id id_;
};

// Durable actors in one database. One transaction stores all effects of a turn: its message leaves
// the inbox, the state is written, and the handler's messages enter the inboxes of their receivers.
// Turns of many actors share a transaction.
//
// Thread: any. Copies are the same store. Lifetime: it stays open as long as a copy or a ref exists
// or a message is being handled; the runtime must live as long. Only one process can use a store:
// when another process opens it, this process's messages fail with store_taken.
//
// Example (declarations):
//     #include <troupe/durable/sqlite_storage.hpp>
//     struct Account {
//       std::int64_t cents = 0;
//       std::int64_t deposit(std::int64_t amount) { return cents += amount; }
//     };
//     troupe::task<> bank(troupe::runtime& rt) {
//       auto file = troupe::durable::sqlite_storage(rt, "bank.db");
//       auto store = co_await troupe::durable::store::open(
//           rt, std::move(file), troupe::durable::kind<Account, &Account::deposit>());
//       std::cout << co_await store.get<Account>("alice").ask<&Account::deposit>(100) << '\n';
//     }
class store {
  // For the library's own use.
  friend struct parts::store_access;

 public:
  // Opens the storage and begins to handle the messages that wait in it. Errors: database::error;
  // schema_error, which names the class, if the members of a class differ from the members that are
  // stored under its number; option_error for two classes or methods of one name.
  template <std::same_as<parts::kind_table>... Kinds>
  static task<store> open(runtime& on, std::unique_ptr<storage> storage, Kinds... kinds) {
    return open(on, std::move(storage), options(), std::move(kinds)...);
  }
  template <std::same_as<parts::kind_table>... Kinds>
  static task<store> open(runtime& on, std::unique_ptr<storage> storage, options chosen,
                          Kinds... kinds) {
    std::vector<parts::kind_table> all;
    (all.push_back(std::move(kinds)), ...);
    return open_kinds(on, std::move(storage), chosen, std::move(all));
  }

  // The actor of that class and key. Cost: some ns; nothing is read. Errors: usage_error if the
  // class was not given to open(), and for a key that the storage cannot keep (PostgreSQL: 2,000
  // bytes with the name of the class). A key is a part of each message, whose size
  // options::state_bytes_max limits.
  template <class T>
  ref<T> get(std::string_view key) const {
    check_name(&parts::class_tag<T>, base::type_name<T>(), key);
    return ref<T>(engine_, std::string(key));
  }

  // The keys of the class's actors whose state or events are stored, page by page. In a cluster
  // these are the actors of all nodes. An actor whose first turn is not stored yet is left out.
  // Cost: one read of the database. Errors: usage_error as get(), and for `most`; database::error.
  //
  // Example (declarations):
  //     #include <troupe/durable/store.hpp>
  //     struct Customer {
  //       std::string name;
  //       void rename(std::string to) { name = std::move(to); }
  //     };
  //     troupe::task<> greet(troupe::durable::store shop) {
  //       troupe::durable::key_range range{.prefix = "de/"};
  //       for (bool has_more = true; has_more;) {
  //         auto asks = shop.keys<Customer>(range);
  //         const troupe::durable::key_page page = co_await std::move(asks);
  //         for (const std::string& key : page.keys) std::cout << key << '\n';
  //         has_more = page.has_more;
  //         if (has_more) range.after = page.keys.back();
  //       }
  //     }
  template <class T>
  task<key_page> keys() const {
    return keys<T>(key_range());
  }
  template <class T>
  task<key_page> keys(key_range range) const {
    return keys_of(engine_, &parts::class_tag<T>, base::type_name<T>(), std::move(range));
  }

  // Thread: any. Cost: some us.
  durable::counts counts() const;

 private:
  explicit store(std::shared_ptr<parts::engine> engine) noexcept : engine_(std::move(engine)) {}
  static task<store> open_kinds(runtime& on, std::unique_ptr<storage> storage, options chosen,
                                std::vector<parts::kind_table> kinds);
  void check_name(const void* tag, const char* name, std::string_view key) const;
  static task<key_page> keys_of(std::shared_ptr<parts::engine> engine, const void* tag,
                                const char* name, key_range range);

  std::shared_ptr<parts::engine> engine_;
};

namespace parts {

struct store_access {
  static store make(std::shared_ptr<engine> engine) { return store(std::move(engine)); }
};

}  // namespace parts
}  // namespace troupe::durable
