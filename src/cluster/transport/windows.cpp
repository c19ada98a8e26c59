#include "cluster/transport/windows.hpp"

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <utility>

#include "cluster/transport/bundle.hpp"
#include "cluster/transport/window_set.hpp"
#include "troupe/base/error.hpp"
#include "troupe/cluster/error.hpp"
#include "troupe/kit/stoppable_sleep.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::cluster {
namespace {

using namespace std::chrono_literals;

// An answer that comes later is not looked at: a node that takes less than a window in this time
// does not get more.
constexpr std::chrono::nanoseconds mark_time = 5min;
// How often a window whose calls wait is marked again. A mark may be lost without a word.
constexpr std::chrono::nanoseconds remind_first = 250ms, remind_max = 4s;

// The state that the calls share, so that each may outlive the transport.
struct windowed_calls {
  windowed_calls(runtime& on, std::unique_ptr<transport> below, const window_options& chosen)
      : on(on), over(std::move(below)), windows(chosen) {}
  runtime& on;
  const std::unique_ptr<transport> over;
  window_set windows;
  std::stop_source ends;
};
using windowed_calls_ptr = std::shared_ptr<windowed_calls>;
using due_mark = std::optional<window_set::mark>;

task<> failing(std::exception_ptr how) {
  std::rethrow_exception(how);
  co_return;
}

task<> send_marks(windowed_calls_ptr all, window_set::mark first);

// Thread: any, since try_send may be called on any.
void begin(const windowed_calls_ptr& all, due_mark&& due) {
  if (due) static_cast<void>(all->on.spawn(send_marks(all, std::move(*due))));
}

// Whether it was lost with the connection. `due` is the mark that follows.
task<bool> send_mark(windowed_calls_ptr all, const window_set::mark& mark, due_mark& due) {
  try {
    auto asks = [all, target = mark.target] { return all->over->request(target->subject, {}); };
    auto within = with_deadline(mark_time, std::move(asks));
    const std::string says = co_await std::move(within);
    // order: relaxed  a hint, which stays true: each life of a node has a subject of its own
    if (says == bundle_mark) mark.target->takes_bundles.store(true, std::memory_order_relaxed);
    due = all->windows.taken(mark.target, mark.at);
  } catch (const error& failed) {
    if (failed.kind() != failure::unreachable) co_return true;
    due = all->windows.taken_all(mark.target);  // the subject has no subscriber
  } catch (const timed_out&) {
    // It was lost without a word, or the node is very slow.
  }
  co_return false;
}

task<> send_marks(windowed_calls_ptr all, window_set::mark first) {
  due_mark due;
  task<bool> sends = send_mark(all, first, due);
  const bool lost = co_await std::move(sends);
  begin(all, std::move(due));
  begin(all, all->windows.end_mark(first.target, lost));
}

// While calls wait for room.
task<> look_after(windowed_calls_ptr all, window_ptr window) {
  std::chrono::nanoseconds pause = remind_first;
  try {
    for (bool waits = true; waits;) {
      co_await kit::stoppable_sleep(pause).stop(all->ends.get_token());
      pause = std::min(2 * pause, remind_max);
      due_mark due;
      waits = all->windows.look_after(window, due);
      begin(all, std::move(due));
    }
  } catch (const cancelled&) {
  }
}

class open_wait {
 public:
  open_wait(window_set& windows, window& window, std::uint64_t number) noexcept
      : windows_(windows), window_(window), number_(number) {}
  open_wait(const open_wait&) = delete;
  open_wait& operator=(const open_wait&) = delete;
  ~open_wait() { windows_.give_up(window_, number_); }

 private:
  window_set& windows_;
  window& window_;
  const std::uint64_t number_;
};

task<> wait_for_room(windowed_calls_ptr all, window_ptr window, std::size_t bytes) {
  window_set::wait begun = all->windows.begin_wait(window, bytes);
  const open_wait open(all->windows, *window, begun.number);
  begin(all, std::move(begun.due));
  if (begun.remind) static_cast<void>(all->on.spawn(look_after(all, window)));
  co_await std::move(begun.end);
}

// After it was let in. A message that is large goes alone, and a bundle as it is.
bool send_now(windowed_calls& all, const window& target, const std::string& subject,
              std::string_view bytes) {
  constexpr std::size_t part_bytes_max = 4 * 1024;
  // order: relaxed  as where it is written
  const bool takes_bundles = target.takes_bundles.load(std::memory_order_relaxed);
  if (!takes_bundles || bytes.size() > part_bytes_max || bytes.starts_with(bundle_mark))
    return all.over->try_send(subject, bytes);
  const bundle_length length(static_cast<std::uint32_t>(bytes.size()));
  return all.over->try_send_joined(subject, bundle_mark, length.bytes(), bytes);
}

task<> send_later(windowed_calls_ptr all, window_ptr window, std::string subject,
                  std::string bytes) {
  task<> waits = wait_for_room(all, window, bytes.size());
  co_await std::move(waits);
  if (send_now(*all, *window, subject, bytes)) co_return;
  task<> sends = all->over->send(std::move(subject), std::move(bytes));
  co_await std::move(sends);
}

// The answer confirms all messages that were sent before.
task<std::string> ask(windowed_calls_ptr all, std::string subject, std::string bytes) {
  window_set::entry entry = all->windows.enter(subject, bytes.size());
  if (!entry.entered) {
    task<> waits = wait_for_room(all, entry.target, bytes.size());
    co_await std::move(waits);
  }
  begin(all, std::move(entry.due));
  try {
    task<std::string> asks = all->over->request(std::move(subject), std::move(bytes));
    std::string got = co_await std::move(asks);
    if (entry.entered) begin(all, all->windows.taken(entry.target, entry.at));
    co_return got;
  } catch (const error& failed) {
    if (failed.kind() == failure::unreachable) begin(all, all->windows.taken_all(entry.target));
    throw;
  }
}

// Each message of a bundle comes to the taker by itself.
task<> take_bundle(transport::taker handler, incoming all) {
  bundle_reader parts(all.bytes);
  incoming message;  // its memory is used again
  while (const auto part = parts.next()) {
    if (part->empty()) continue;
    message.bytes = *part;
    if (handler.try_now(message)) continue;
    task<> takes = handler(std::move(message));
    co_await std::move(takes);
  }
}

class over_windows final : public transport {
 public:
  over_windows(runtime& on, std::unique_ptr<transport> over, const window_options& chosen)
      : all_(std::make_shared<windowed_calls>(on, std::move(over), chosen)),
        prefix_(chosen.prefix) {}
  ~over_windows() override {
    end();
    static_cast<void>(all_->over->close(true));
  }

  task<> take(std::string subject, std::string queue, taker handler) override {
    // Not the transport itself: it keeps the taker.
    const auto at_once = [handler](incoming& message) {
      return !message.bytes.empty() && !is_bundle(message) && handler.try_now(message);
    };
    const auto also_marks = [by = std::weak_ptr(all_), handler](incoming message) -> task<> {
      if (is_bundle(message)) return take_bundle(handler, std::move(message));
      if (!message.bytes.empty() || message.reply.empty()) return handler(std::move(message));
      const windowed_calls_ptr all = by.lock();
      if (all == nullptr)
        return failing(std::make_exception_ptr(cancelled("troupe: cluster: end")));
      return all->over->answer(std::move(message.reply), std::string(bundle_mark));
    };
    return all_->over->take(std::move(subject), std::move(queue), taker(also_marks, at_once));
  }
  task<> leave(std::string subject, std::string queue) override {
    return all_->over->leave(std::move(subject), std::move(queue));
  }

  task<> send(std::string subject, std::string bytes) override {
    check(bytes);
    if (!subject.starts_with(prefix_))
      return all_->over->send(std::move(subject), std::move(bytes));
    window_set::entry entry = all_->windows.enter(subject, bytes.size());
    if (!entry.entered)
      return send_later(all_, std::move(entry.target), std::move(subject), std::move(bytes));
    begin(all_, std::move(entry.due));
    if (send_now(*all_, *entry.target, subject, bytes)) return nothing();
    return all_->over->send(std::move(subject), std::move(bytes));
  }
  bool try_send(const std::string& subject, std::string_view bytes) override {
    if (!subject.starts_with(prefix_)) return all_->over->try_send(subject, bytes);
    window_set::entry entry = all_->windows.enter(subject, bytes.size());
    if (!entry.entered) return false;
    begin(all_, std::move(entry.due));
    return send_now(*all_, *entry.target, subject, bytes);
  }
  bool takes_bundles(const std::string& subject) const override {
    return subject.starts_with(prefix_) && all_->windows.takes_bundles(subject);
  }
  task<std::string> request(std::string subject, std::string bytes) override {
    check(bytes);
    if (!subject.starts_with(prefix_))
      return all_->over->request(std::move(subject), std::move(bytes));
    return ask(all_, std::move(subject), std::move(bytes));
  }
  task<> answer(std::string reply, std::string bytes) override {
    return all_->over->answer(std::move(reply), std::move(bytes));
  }
  bool is_connected() const noexcept override { return all_->over->is_connected(); }
  std::size_t bytes_max() const noexcept override { return all_->over->bytes_max(); }
  task<> close(bool at_once) override {
    end();
    return all_->over->close(at_once);
  }

 private:
  static void check(const std::string& bytes) {
    if (bytes.empty()) throw usage_error("troupe: cluster: an empty message is a mark of windows");
  }
  static bool is_bundle(const incoming& message) noexcept {
    return message.reply.empty() && message.bytes.starts_with(bundle_mark);
  }
  void end() {
    all_->ends.request_stop();
    all_->windows.close();
  }

  const windowed_calls_ptr all_;
  const std::string prefix_;
};

}  // namespace

std::unique_ptr<transport> windowed(runtime& on, std::unique_ptr<transport> over,
                                    const window_options& chosen) {
  if (chosen.bytes < 4 || chosen.messages < 4)
    throw option_error("troupe: cluster: a window must have 4 bytes and 4 messages or more");
  return std::make_unique<over_windows>(on, std::move(over), chosen);
}

}  // namespace troupe::cluster
