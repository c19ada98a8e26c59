// side_run: a side call, or a branch within one, runs for users that are branches of a when_any.
//
// A value that a side call takes from its source and gives is lost if a user loses that has it to
// itself, such as a task that makes a pipe. Therefore it runs only where its users could run: their
// competitors are paused until the users have run, and where a user would be held, the message that
// would resume the side call is kept (docs/protocols/given_up_waits.md).
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/invariant.hpp"
#include "troupe/task/side_call.hpp"
#include "troupe/task/when.hpp"

namespace troupe::tasks {

// Thread: a turn of the actor.
class side_run {
 public:
  // Pauses the competitors of all users, or of none if one of them is held.
  explicit side_run(async_call& call) noexcept;
  side_run(const side_run&) = delete;
  side_run& operator=(const side_run&) = delete;
  bool is_held() const noexcept { return refuses_ != nullptr; }
  void keep(suspension& over) noexcept;
  // Behind the run: the users run that are ready, and the competitors of the others go on.
  void end() noexcept;

 private:
  static branch* user_of(async_call& call) noexcept;
  // A pipe within a when_any, within a pipe, and so on. Users around that many are not held.
  static constexpr unsigned users_max = 8;
  std::array<branch*, users_max> users_;
  unsigned count_ = 0;
  group* refuses_ = nullptr;
};

// The innermost branch in a race that waits for a side call of which this call is a part. Null if
// there is none.
branch* side_run::user_of(async_call& call) noexcept {
  bool is_aside = false;
  for (async_call* at = &call;;) {
    if (group* const all = group::around(*at)) {
      if (is_aside && all->race_ != nullptr) return static_cast<branch*>(at);
      at = all->waiter->call;
      continue;
    }
    side_call* const side = side_call::of(*at);
    const coroutine* const user = side == nullptr ? nullptr : side_call::awaits(*side);
    if (user == nullptr) return nullptr;
    is_aside = true;
    at = user->call;
  }
}

side_run::side_run(async_call& call) noexcept {
  async_call* from = &call;
  while (count_ != users_max) {
    branch* const user = user_of(*from);
    // A busy one, and those around it, are in a run that is under way.
    if (user == nullptr || user->busy) break;
    refuses_ = group::pause_beside(*user);
    if (refuses_ != nullptr) break;
    users_[count_++] = user;
    from = user;
  }
  for (branch* const user : std::span(users_.data(), count_)) {
    if (refuses_ != nullptr) {
      group::resume_beside(user->owner, *user, nullptr);
    } else {
      user->busy = true;
    }
  }
}

void side_run::keep(suspension& over) noexcept {
  auto& around = static_cast<group::own_race&>(*refuses_->race_);
  // order: relaxed  only turns of the actor use the list
  over.next.store(reinterpret_cast<std::uintptr_t>(around.kept), std::memory_order_relaxed);
  around.kept = &over;
}

void side_run::end() noexcept {
  for (branch* const user : std::span(users_.data(), count_)) {
    TROUPE_INVARIANT(user->busy, "A1");
    user->busy = false;
    if (user->has_ready()) {
      group::resume_in_race(*user, true);
    } else {
      group::resume_beside(user->owner, *user, nullptr);
    }
  }
}

const char* side_call::run_for_user(suspension& over, async_call& call,
                                    const char* (*resume)(suspension& over) noexcept) noexcept {
  side_run run(call);
  if (run.is_held()) [[unlikely]] {
    run.keep(over);
    return nullptr;
  }
  resume(over);
  run.end();
  return nullptr;
}

}  // namespace troupe::tasks
