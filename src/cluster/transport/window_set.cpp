#include "cluster/transport/window_set.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace troupe::cluster {

bool window_set::has_room(const window& of, std::size_t bytes) const noexcept {
  const std::uint64_t bytes_out = of.sent.bytes - of.taken.bytes;
  const std::uint64_t messages_out = of.sent.messages - of.taken.messages;
  if (messages_out == 0) return true;  // also one that is larger than the window
  return messages_out < chosen_.messages && bytes_out + bytes <= chosen_.bytes;
}

void window_set::count(window& of, std::size_t bytes) noexcept {
  of.sent.bytes += bytes;
  ++of.sent.messages;
}

// When a quarter of the window was sent since the last mark, and when a call waits.
std::optional<window_set::mark> window_set::mark_due(const window_ptr& of) {
  window& one = *of;
  if (one.marked == one.sent || one.marks >= marks_max || closed_) return std::nullopt;
  const bool quarter = one.sent.bytes - one.marked.bytes >= chosen_.bytes / 4 ||
                       one.sent.messages - one.marked.messages >= chosen_.messages / 4;
  if (!quarter && one.waiting.empty()) return std::nullopt;
  one.marked = one.sent;
  ++one.marks;
  return mark{of, one.sent};
}

std::vector<promise<>> window_set::let_in(window& of) {
  std::vector<promise<>> in;
  while (!of.waiting.empty()) {
    window::waiting_call& first = of.waiting.begin()->second;
    if (!closed_ && !has_room(of, first.bytes)) break;
    in.push_back(std::move(first.to));
    count(of, first.bytes);
    of.waiting.erase(of.waiting.begin());
  }
  return in;
}

const window_ptr& window_set::find(const std::string& subject) {
  const auto found = all_.find(subject);
  if (found != all_.end()) {
    found->second->used = true;
    return found->second;
  }
  if (all_.size() >= sweep_at_) {
    std::erase_if(all_, [](const auto& each) {
      const window& one = *each.second;
      return !std::exchange(each.second->used, false) && one.marks == 0 && one.waiting.empty();
    });
    sweep_at_ = std::max<std::size_t>(64, 2 * all_.size());
  }
  return all_.emplace(subject, std::make_shared<window>(subject)).first->second;
}

window_set::entry window_set::enter(const std::string& subject, std::size_t bytes) {
  std::lock_guard held(mutex_);
  const window_ptr& of = find(subject);
  entry made;
  made.of = of;
  made.entered = closed_ || (of->waiting.empty() && has_room(*of, bytes));
  if (!made.entered) return made;
  // Before this message, which is sent after the mark was begun.
  made.due = mark_due(of);
  count(*of, bytes);
  made.at = of->sent;
  return made;
}

window_set::wait window_set::begin_wait(const window_ptr& of, std::size_t bytes) {
  std::vector<promise<>> in;
  wait made;
  {
    std::lock_guard held(mutex_);
    made.number = ++last_call_;
    window::waiting_call& one = of->waiting.try_emplace(made.number, bytes).first->second;
    made.end = one.to.get_future();
    in = let_in(*of);  // there may be room since enter()
    made.due = mark_due(of);
    made.remind = !of->waiting.empty() && !std::exchange(of->reminded, true);
  }
  for (promise<>& one : in) one.set_value();
  return made;
}

void window_set::give_up(window& of, std::uint64_t number) noexcept {
  std::optional<promise<>> gone;  // it ends with the mutex free
  std::vector<promise<>> in;
  {
    std::lock_guard held(mutex_);
    if (auto one = of.waiting.extract(number)) gone.emplace(std::move(one.mapped().to));
    if (!gone) return;
    try {
      in = let_in(of);  // a smaller one may have waited behind it
    } catch (const std::bad_alloc&) {
      // The next mark lets it in.
    }
  }
  for (promise<>& one : in) one.set_value();
}

std::optional<window_set::mark> window_set::taken(const window_ptr& of, const position& at) {
  std::vector<promise<>> in;
  std::optional<mark> due;
  {
    std::lock_guard held(mutex_);
    if (at.messages > of->taken.messages) of->taken = at;
    if (at.messages > of->marked.messages) of->marked = at;
    in = let_in(*of);
    due = mark_due(of);
  }
  for (promise<>& one : in) one.set_value();
  return due;
}

std::optional<window_set::mark> window_set::taken_all(const window_ptr& of) {
  position at;
  {
    std::lock_guard held(mutex_);
    at = of->sent;
  }
  return taken(of, at);
}

std::optional<window_set::mark> window_set::end_mark(const window_ptr& of, bool lost) {
  std::lock_guard held(mutex_);
  --of->marks;
  if (lost) of->marked = of->taken;
  return mark_due(of);
}

bool window_set::look_after(const window_ptr& of, std::optional<mark>& due) {
  std::lock_guard held(mutex_);
  of->reminded = !of->waiting.empty() && !closed_;
  if (!of->reminded) return false;
  if (of->marks >= marks_max) return true;
  of->marked = of->sent;
  ++of->marks;
  due = mark{of, of->sent};
  return true;
}

void window_set::close() {
  std::vector<promise<>> in;
  {
    std::lock_guard held(mutex_);
    closed_ = true;
    for (const auto& [subject, one] : all_) std::ranges::move(let_in(*one), std::back_inserter(in));
  }
  for (promise<>& one : in) one.set_value();
}

}  // namespace troupe::cluster
