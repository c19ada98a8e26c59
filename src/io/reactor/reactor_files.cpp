// What all reactors do with operations of files that would wait: a thread of the runtime's that may
// block carries them out.
//
// Invariant
//   F1  a call that was handed aside finds, in its slot, an operation that nobody has begun, and
//   begins it; or it finds
//       none, since that was taken back. Should the slot be another file's operation's by then,
//       that one is begun: its own call finds it begun, or gone.
#include <cerrno>
#include <exception>
#include <utility>

#include "io/operations/attempt.hpp"
#include "io/reactor/reactor.hpp"

namespace troupe::io {

// Dropped without having been called, it ends the operation: as cancelled at the runtime's end, and
// when there is no room for it in the list of calls by that error.
class reactor::call_aside {
 public:
  call_aside(std::shared_ptr<reactor> by, slot& at) noexcept : by_(std::move(by)), at_(&at) {}
  call_aside(call_aside&& other) noexcept
      : by_(std::move(other.by_)), at_(std::exchange(other.at_, nullptr)) {}
  call_aside& operator=(call_aside&&) = delete;
  ~call_aside() {
    operation* const one = at_ == nullptr ? nullptr : begin();
    if (one != nullptr) end(*one, std::uncaught_exceptions() > 0 ? -ENOMEM : -ECANCELED);
  }
  void operator()() noexcept {
    operation* const one = begin();
    at_ = nullptr;
    if (one == nullptr) return;
    attempt_file(by_->calls, one->at->fd, *one, false);
    end(*one, one->result);
  }

 private:
  operation* begin() noexcept {
    std::lock_guard lock(at_->mutex);
    operation* const one = at_->readers.front();
    if (one == nullptr || !one->aside || one->begun) return nullptr;
    one->begun = true;
    return one;
  }
  void end(operation& one, int result) noexcept {
    {
      std::lock_guard lock(one.at->mutex);
      one.at->readers.remove(one);
      one.pending = false;
      one.result = result;
    }
    by_->complete(one);
  }

  std::shared_ptr<reactor> by_;
  slot* at_;
};

bool reactor::try_file(operation& one) noexcept {
  return attempt_file(calls, one.at->fd, one, true);
}

void reactor::start_aside(operation& one) noexcept {
  slot& at = *one.at;
  {
    std::lock_guard lock(at.mutex);
    one.pending = true;
    one.aside = true;
    enter(one);
    at.readers.push(one);
  }
  hand_aside(at);
}

void reactor::hand_aside(slot& at) noexcept {
  try {
    services_.aside(call_aside(shared_from_this(), at));
  } catch (...) {
    // The call was dropped, and the operation is over.
  }
}

}  // namespace troupe::io
