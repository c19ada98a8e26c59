// The backend over epoll, and over a simulated kernel: it tries each operation first, and again when the system tells
// that something has changed.
#include <array>
#include <cerrno>
#include <climits>

#include "io/attempt.hpp"
#include "io/make_reactor.hpp"
#include "troupe/io/error.hpp"

namespace troupe::io {
namespace {

constexpr int events_max = 256;  // of one look
constexpr std::uint32_t interests = EPOLLIN | EPOLLOUT | EPOLLRDHUP;

// A tag of epoll's: a slot's address, and its generation in the upper bits, which no address of ours has.
constexpr int generation_shift = 48;
std::uint64_t tag_of(const slot& at) noexcept {
  return reinterpret_cast<std::uintptr_t>(&at) | std::uint64_t{at.generation} << generation_shift;
}
slot* slot_of(std::uint64_t tag) noexcept {
  return reinterpret_cast<slot*>(tag & ((std::uint64_t{1} << generation_shift) - 1));
}
std::uint16_t generation_of(std::uint64_t tag) noexcept { return static_cast<std::uint16_t>(tag >> generation_shift); }

class readiness_reactor final : public reactor {
 public:
  // `own`: the kernel, if it belongs to this reactor alone.
  readiness_reactor(kernel& calls, std::unique_ptr<kernel> own, runtime_services of)
      : reactor(calls, std::move(of)), own_(std::move(own)) {
    set_ = calls.make_set();
    if (set_ < 0) throw io_error("epoll_create1", "", -set_);
    bell_ = calls.make_bell();
    const int added = bell_ < 0 ? bell_ : calls.add(set_, bell_, EPOLLIN, 0);
    if (added >= 0) return;
    close_all();
    throw io_error("eventfd", "", -added);
  }
  ~readiness_reactor() override { close_all(); }

  bool start(operation& one) noexcept override {
    slot& at = *one.at;
    if (is_of_file(one.what)) {
      const bool done = try_file(one);
      if (!done) start_aside(one);
      return done;
    }
    std::lock_guard lock(at.mutex);
    operation_queue& queue = reads(one) ? at.readers : at.writers;
    const bool can = reads(one) ? at.can_read : at.can_write;
    if (queue.empty() && (can || (one.what == action::connect && !one.begun))) {
      if (attempt(calls, at, one)) return true;
    }
    if (!at.registered && !tell_of(at, one)) return true;
    one.pending = true;
    enter(one);
    queue.push(one);
    return false;
  }

  void cancel(operation& one) noexcept override {
    {
      std::lock_guard lock(one.at->mutex);
      if (!one.pending || (one.aside && one.begun)) return;
      (reads(one) ? one.at->readers : one.at->writers).remove(one);
      one.pending = false;
      one.result = -ECANCELED;
    }
    complete(one);
  }

  bool look() noexcept override { return fetch(0); }
  bool wait(const std::chrono::nanoseconds* limit) noexcept override {
    if (limit == nullptr) return fetch(-1);
    const auto ms = (limit->count() + 999'999) / 1'000'000;
    return fetch(ms > INT_MAX ? INT_MAX : static_cast<int>(ms));
  }
  void wake() noexcept override { calls.ring(bell_); }
  void retire() noexcept override { calls.end_simulation(); }
  std::optional<std::int64_t> next_ns() override { return calls.next_ns(); }

  void dispatch() noexcept override {
    for (int i = 0; i < fetched_; ++i) {
      if (slot* at = slot_of(events_[static_cast<std::size_t>(i)].data.u64)) serve(*at, events_[static_cast<std::size_t>(i)]);
    }
    fetched_ = 0;
  }

 protected:
  bool abandon(slot& at, operation_queue& ended) noexcept override {
    // A duplicate elsewhere would keep what is borrowed in the set; what is closed leaves it by itself.
    if (at.registered && at.borrowed) calls.remove(set_, at.fd);
    for (operation_queue* queue : {&at.readers, &at.writers}) {
      while (operation* one = queue->front()) {
        queue->remove(*one);
        one->pending = false;
        one->result = -ECANCELED;
        ended.push(*one);
      }
    }
    return true;
  }

 private:
  void close_all() noexcept {
    if (bell_ >= 0) calls.close(bell_);
    if (set_ >= 0) calls.close(set_);
  }

  // From now on the set tells of this slot, of what can be done by then as well. False: `one` is done instead.
  bool tell_of(slot& at, operation& one) noexcept {
    int result = calls.add(set_, at.fd, interests, tag_of(at));
    // Somebody else waits for the same descriptor: so by another name for it.
    if (result == -EEXIST && at.borrowed && !at.duplicated) {
      result = calls.duplicate(at.fd);
      if (result >= 0) {
        at.fd = result;
        at.duplicated = true;
        result = calls.add(set_, at.fd, interests, tag_of(at));
      }
    }
    if (result >= 0) return at.registered = true;
    // What epoll does not take (a file) never blocks.
    one.result = result == -EPERM && (one.what == action::readable || one.what == action::writable) ? POLLIN | POLLOUT : result;
    return false;
  }

  bool fetch(int timeout_ms) noexcept {
    fetched_ = calls.wait_events(set_, events_.data(), events_max, timeout_ms);
    if (fetched_ < 0) fetched_ = 0;
    // The bell alone is no event.
    return fetched_ > 1 || (fetched_ == 1 && events_[0].data.u64 != 0);
  }

  void serve(slot& at, const epoll_event& event) noexcept {
    operation_queue ended;
    {
      std::lock_guard lock(at.mutex);
      if (at.generation != generation_of(event.data.u64) || at.fd < 0) return;
      if ((event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) at.hung_up = true;
      if ((event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        at.can_read = true;
        go_on(at, at.readers, at.can_read, ended);
      }
      if ((event.events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
        at.can_write = true;
        go_on(at, at.writers, at.can_write, ended);
      }
    }
    while (operation* one = ended.front()) {
      ended.remove(*one);
      complete(*one);
    }
  }

  void go_on(slot& at, operation_queue& queue, const bool& can, operation_queue& ended) noexcept {
    while (operation* one = can ? queue.front() : nullptr) {
      if (!attempt(calls, at, *one)) continue;  // then it cannot any more
      queue.remove(*one);
      one->pending = false;
      ended.push(*one);
    }
  }

  const std::unique_ptr<kernel> own_;
  int set_ = -1, bell_ = -1;
  int fetched_ = 0;
  std::array<epoll_event, events_max> events_;
};

}  // namespace

std::shared_ptr<reactor> make_readiness_reactor(kernel& calls, runtime_services of) {
  return std::make_shared<readiness_reactor>(calls, nullptr, std::move(of));
}

std::shared_ptr<reactor> make_readiness_reactor(std::unique_ptr<kernel> calls, runtime_services of) {
  kernel& made = *calls;
  return std::make_shared<readiness_reactor>(made, std::move(calls), std::move(of));
}

}  // namespace troupe::io
