#include "io/processes/reaper.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <thread>
#include <vector>

#include "base/threads/at_fork.hpp"

namespace troupe::io {
namespace {

// The object is never destroyed, because its thread may outlive main().
struct reaper {
  std::mutex mutex;
  std::vector<pollfd> children;  // while the thread runs, the first entry is the bell, or -1
  bool runs = false;
};
reaper& the_reaper() {
  static reaper& only = *[] {
    auto* const created = new reaper;
    base::hold_at_fork(created->mutex, [] noexcept {
      // The children are the parent's, and the thread is not there.
      the_reaper().children.clear();
      the_reaper().runs = false;
    });
    return created;
  }();
  return only;
}

// Returns true when the child has ended, or cannot be waited for.
bool reaped(int pidfd) noexcept {
  siginfo_t how{};
  const int result = ::waitid(P_PIDFD, static_cast<id_t>(pidfd), &how, WEXITED | WNOHANG);
  if (result == 0 && how.si_pid == 0) return false;
  if (result < 0 && errno != ECHILD) return false;
  ::close(pidfd);
  return true;
}

// Time between two checks for new children when no descriptor was available for a bell.
constexpr int round_ms = 50;

// The caller holds the mutex.
void look_at(std::vector<pollfd>& children, std::size_t first) noexcept {
  const auto begin = children.begin() + static_cast<std::ptrdiff_t>(first);
  children.erase(
      std::remove_if(begin, children.end(), [](const pollfd& child) { return reaped(child.fd); }),
      children.end());
}

void live(reaper& self) {
  std::vector<pollfd> polled;
  for (;;) {
    {
      std::lock_guard lock(self.mutex);
      look_at(self.children, 1);
      if (self.children.size() == 1) {
        if (self.children.front().fd >= 0) ::close(self.children.front().fd);
        self.children.clear();
        self.runs = false;
        return;
      }
      polled = self.children;
    }
    const int bell = polled.front().fd;
    ::poll(polled.data(), polled.size(), bell < 0 ? round_ms : -1);
    eventfd_t rung = 0;
    if (bell >= 0) static_cast<void>(::eventfd_read(bell, &rung));
  }
}

// The caller holds the mutex. The thread blocks all signals, so that it handles none of the
// program's.
void start(reaper& self) {
  const int bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  self.children.insert(self.children.begin(), {bell, POLLIN, 0});
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([&self] { live(self); }).detach();
    self.runs = true;
  } catch (const std::system_error&) {
    if (bell >= 0) ::close(bell);
    self.children.erase(self.children.begin());
    look_at(self.children, 0);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void reap_in_background(int pidfd) noexcept {
  if (reaped(pidfd)) return;
  try {
    reaper& self = the_reaper();
    std::lock_guard lock(self.mutex);
    self.children.reserve(self.children.size() + 2);
    self.children.push_back({pidfd, POLLIN, 0});
    if (!self.runs) {
      start(self);
    } else if (self.children.front().fd >= 0) {
      ::eventfd_write(self.children.front().fd, 1);
    }
  } catch (const std::bad_alloc&) {
    ::close(pidfd);
  }
}

}  // namespace troupe::io
