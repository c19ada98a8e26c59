#include "cluster/transport/window_set.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "base/invariant.hpp"

namespace troupe::cluster {
namespace {

[[maybe_unused]] bool is_within(const position& inner, const position& outer) noexcept {
  return inner.bytes <= outer.bytes && inner.messages <= outer.messages;
}

}  // namespace

bool window_set::has_room(const window& target, std::size_t bytes) const noexcept {
  const std::uint64_t bytes_out = target.sent.bytes - target.taken.bytes;
  const std::uint64_t messages_out = target.sent.messages - target.taken.messages;
  if (messages_out == 0) return true;  // also one that is larger than the window
  return messages_out < chosen_.messages && bytes_out + bytes <= chosen_.bytes;
}

bool window_set::has_mark_where_calls_wait(const window& target) const noexcept {
  return target.waiting.empty() || closed_ ||
         (target.marks != 0 && (target.marked == target.sent || target.marks >= marks_max));
}

void window_set::count(window& target, std::size_t bytes) noexcept {
  target.sent.bytes += bytes;
  ++target.sent.messages;
}

// When a quarter of the window was sent since the last mark, and when a call waits.
std::optional<window_set::mark> window_set::mark_due(const window_ptr& pointer) {
  window& target = *pointer;
  TROUPE_INVARIANT(is_within(target.taken, target.marked) && is_within(target.marked, target.sent),
                   "W1");
  // All marks have ended, the last without an answer: a call that waits needs another mark.
  if (target.marks == 0 && !target.waiting.empty()) target.marked = target.taken;
  if (target.marked == target.sent || target.marks >= marks_max || closed_) return std::nullopt;
  const bool quarter = target.sent.bytes - target.marked.bytes >= chosen_.bytes / 4 ||
                       target.sent.messages - target.marked.messages >= chosen_.messages / 4;
  if (!quarter && target.waiting.empty()) return std::nullopt;
  target.marked = target.sent;
  ++target.marks;
  return mark{pointer, target.sent};
}

std::vector<promise<>> window_set::let_in(window& target) {
  std::vector<promise<>> entered;
  while (!target.waiting.empty()) {
    window::waiting_call& first = target.waiting.begin()->second;
    if (!closed_ && !has_room(target, first.bytes)) break;
    entered.push_back(std::move(first.promised));
    count(target, first.bytes);
    target.waiting.erase(target.waiting.begin());
  }
  return entered;
}

const window_ptr& window_set::find(const std::string& subject) {
  const auto found = all_.find(subject);
  if (found != all_.end()) {
    found->second->used = true;
    return found->second;
  }
  if (all_.size() >= sweep_at_) {
    std::erase_if(all_, [](const auto& each) {
      const window& target = *each.second;
      return !std::exchange(each.second->used, false) && target.marks == 0 &&
             target.waiting.empty();
    });
    sweep_at_ = std::max<std::size_t>(64, 2 * all_.size());
  }
  return all_.emplace(subject, std::make_shared<window>(subject)).first->second;
}

window_set::entry window_set::enter(const std::string& subject, std::size_t bytes) {
  std::lock_guard held(mutex_);
  const window_ptr& target = find(subject);
  entry result;
  result.target = target;
  result.entered = closed_ || (target->waiting.empty() && has_room(*target, bytes));
  if (!result.entered) return result;
  // Before this message, which is sent after the mark was begun.
  result.due = mark_due(target);
  count(*target, bytes);
  result.at = target->sent;
  return result;
}

bool window_set::takes_bundles(const std::string& subject) {
  std::lock_guard held(mutex_);
  const auto found = all_.find(subject);
  // order: relaxed  as where it is written
  return found != all_.end() && found->second->takes_bundles.load(std::memory_order_relaxed);
}

window_set::wait window_set::begin_wait(const window_ptr& target, std::size_t bytes) {
  std::vector<promise<>> admitted;
  wait result;
  {
    std::lock_guard held(mutex_);
    result.number = ++last_call_;
    window::waiting_call& call = target->waiting.try_emplace(result.number, bytes).first->second;
    result.end = call.promised.get_future();
    TROUPE_INVARIANT(target->waiting.rbegin()->first == result.number, "W3");
    admitted = let_in(*target);  // there may be room since enter()
    result.due = mark_due(target);
    TROUPE_INVARIANT(has_mark_where_calls_wait(*target), "W2");
    result.remind = !target->waiting.empty() && !std::exchange(target->reminded, true);
  }
  for (promise<>& call : admitted) call.set_value();
  return result;
}

void window_set::give_up(window& target, std::uint64_t number) noexcept {
  std::optional<promise<>> gone;  // it ends with the mutex free
  std::vector<promise<>> admitted;
  {
    std::lock_guard held(mutex_);
    if (auto call = target.waiting.extract(number)) gone.emplace(std::move(call.mapped().promised));
    if (!gone) return;
    try {
      admitted = let_in(target);  // a smaller one may have waited behind it
    } catch (const std::bad_alloc&) {
      // The next mark lets it in.
    }
  }
  for (promise<>& call : admitted) call.set_value();
}

std::optional<window_set::mark> window_set::taken(const window_ptr& target, const position& at) {
  std::vector<promise<>> admitted;
  std::optional<mark> due;
  {
    std::lock_guard held(mutex_);
    if (at.messages > target->taken.messages) target->taken = at;
    if (at.messages > target->marked.messages) target->marked = at;
    admitted = let_in(*target);
    due = mark_due(target);
    TROUPE_INVARIANT(has_mark_where_calls_wait(*target), "W2");
  }
  for (promise<>& call : admitted) call.set_value();
  return due;
}

std::optional<window_set::mark> window_set::taken_all(const window_ptr& target) {
  position at;
  {
    std::lock_guard held(mutex_);
    at = target->sent;
  }
  return taken(target, at);
}

std::optional<window_set::mark> window_set::end_mark(const window_ptr& target, bool lost) {
  std::lock_guard held(mutex_);
  --target->marks;
  if (lost) target->marked = target->taken;
  return mark_due(target);
}

bool window_set::look_after(const window_ptr& target, std::optional<mark>& due) {
  std::lock_guard held(mutex_);
  target->reminded = !target->waiting.empty() && !closed_;
  if (!target->reminded) return false;
  if (target->marks >= marks_max) return true;
  target->marked = target->sent;
  ++target->marks;
  due = mark{target, target->sent};
  return true;
}

void window_set::close() {
  std::vector<promise<>> admitted;
  {
    std::lock_guard held(mutex_);
    closed_ = true;
    for (const auto& [subject, window] : all_)
      std::ranges::move(let_in(*window), std::back_inserter(admitted));
  }
  for (promise<>& call : admitted) call.set_value();
}

}  // namespace troupe::cluster
