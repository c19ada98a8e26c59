// window_set: the amount of sent messages that were not taken yet, for each subject. It does not
// depend on a transport.
//
// Threads: any; `mutex_` guards all of it. Nothing is resolved under it.
// Invariants
//   W1  taken <= marked <= sent, in bytes and in messages; sent - taken fits into the window, but
//       for one message that is larger.
//   W2  while a call waits, a mark at `sent` is on its way, or as many marks as there may be.
//   W3  calls are let in in the order in which they came; none passes one that waits.
//   W4  a call that waits is in `waiting`; the thread that removes it resolves its promise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/invariant.hpp"
#include "cluster/transport/window_options.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/task/future.hpp"

namespace troupe::cluster {

// How much was sent or taken since the window was made.
struct position {
  std::uint64_t bytes = 0, messages = 0;
  bool operator==(const position&) const = default;
};

struct window {
  explicit window(std::string name) : subject(std::move(name)) {}
  window(const window&) = delete;
  window& operator=(const window&) = delete;
  ~window() { TROUPE_INVARIANT(waiting.empty(), "W4"); }
  struct waiting_call {
    explicit waiting_call(std::size_t size) noexcept : bytes(size) {}
    std::size_t bytes;
    promise<> promised;
  };
  const std::string subject;
  position sent, marked, taken;
  std::map<std::uint64_t, waiting_call> waiting;  // by number, in the order in which they came
  unsigned marks = 0;                             // on their way
  bool reminded = false;                   // a task checks whether calls wait for a lost answer
  bool used = true;                        // since the windows were looked through
  std::atomic<bool> takes_bundles{false};  // its receiver has announced this
};
using window_ptr = std::shared_ptr<window>;

class window_set {
 public:
  explicit window_set(const window_options& chosen) noexcept : chosen_(chosen) {}

  // A mark that is to be sent: an empty request to that subject, whose answer confirms all messages
  // up to here.
  struct mark {
    window_ptr target;
    position at;
  };
  struct entry {
    window_ptr target;
    position at;  // after the message
    bool entered = false;
    std::optional<mark> due;
  };
  // Counts a message as sent if there is room for it, or none can be waited for any more.
  entry enter(const std::string& subject, std::size_t bytes);

  bool takes_bundles(const std::string& subject);

  // When enter() has not entered. Ready when the message counts as sent.
  struct wait {
    std::uint64_t number = 0;
    future<> end;
    std::optional<mark> due;
    bool remind = false;  // the caller is to begin the task that looks after the window
  };
  wait begin_wait(const window_ptr& target, std::size_t bytes);
  // The caller has given up. If it was let in meanwhile, its message counts as sent until the next
  // mark.
  void give_up(window& target, std::uint64_t number) noexcept;

  // Messages up to `at` were taken, or all were, since the subject has no subscriber. Returns the
  // mark that is due then.
  std::optional<mark> taken(const window_ptr& target, const position& at);
  std::optional<mark> taken_all(const window_ptr& target);
  // A mark has ended; `lost`: with the connection, as the messages before it may be.
  std::optional<mark> end_mark(const window_ptr& target, bool lost);
  // Calls still wait: one more mark if there may be one. False: none waits.
  bool look_after(const window_ptr& target, std::optional<mark>& due);

  // From now on no call waits.
  void close();

 private:
  // More than a silent node gets in the time after which a mark is given up.
  static constexpr unsigned marks_max = 96;

  // Under the mutex.
  bool has_room(const window& target, std::size_t bytes) const noexcept;
  bool has_mark_where_calls_wait(const window& target) const noexcept;  // W2
  void count(window& target, std::size_t bytes) noexcept;
  std::optional<mark> mark_due(const window_ptr& pointer);
  std::vector<promise<>> let_in(window& target);
  const window_ptr& find(const std::string& subject);

  const window_options chosen_;
  base::small_mutex mutex_;
  std::map<std::string, window_ptr, std::less<>> all_;
  std::size_t sweep_at_ = 64;
  std::uint64_t last_call_ = 0;
  bool closed_ = false;
};

}  // namespace troupe::cluster
