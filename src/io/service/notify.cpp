// Messages to the service manager are datagrams to the socket that NOTIFY_SOCKET names. One that
// cannot be sent now waits in a list, which a thread sends; the thread exists only while the list
// is not empty.
#include "troupe/io/service/notify.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.hpp"
#include "base/side_channels/side_channel.hpp"
#include "base/thread_name.hpp"
#include "io/operations/broken_pipes.hpp"
#include "io/service/ready_pipe.hpp"

namespace troupe::service {
namespace {

constexpr int none = -1;
std::atomic<int> ready_pipe{none};

constinit base::side_channel notification("notification");

struct address {
  sockaddr_un at{};
  socklen_t bytes = 0;
};

// False if there is no service manager, or its socket is of a kind that is not supported.
bool find_manager(address& manager) noexcept {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || *path == '\0') return false;
  const std::size_t bytes = std::strlen(path);
  const std::string_view name(path, bytes);
  const bool is_path = name[0] == '/' || name.starts_with("./") || name.starts_with("../");
  if ((!is_path && name[0] != '@') || bytes >= sizeof manager.at.sun_path) {
    notification.failed(path, 0,
                        "NOTIFY_SOCKET must be the path of a Unix socket of at most 107 bytes");
    return false;
  }
  manager.at.sun_family = AF_UNIX;
  std::memcpy(manager.at.sun_path, path, bytes);
  if (path[0] == '@') manager.at.sun_path[0] = '\0';  // a name without a file
  manager.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes);
  return true;
}

// Sends one datagram without waiting. Returns 0, or an error number.
int send_to(const address& manager, std::string_view text) noexcept {
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  ssize_t sent = -1;
  do {
    sent = ::sendto(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                    reinterpret_cast<const sockaddr*>(&manager.at), manager.bytes);
  } while (sent < 0 && errno == EINTR);
  const int error = sent < 0 ? errno : 0;
  ::close(fd);
  return error;
}

// The messages that could not be sent yet, oldest first. Of the process; never destroyed.
class unsent_messages {
 public:
  static unsent_messages& get() {
    static unsent_messages& instance = *new unsent_messages;
    return instance;
  }

  // Returns whether the manager has the message now. It does not overtake those that wait.
  bool send(std::string_view text) {
    std::lock_guard lock(mutex_);
    address manager;
    if (!find_manager(manager)) {
      waiting_.clear();
      return false;
    }
    send_waiting(manager);
    if (waiting_.empty()) {
      const int error = try_to_send(manager, text);
      if (error == 0) return true;
      if (error == EMSGSIZE) return false;  // it will never be sent
    }
    if (waiting_.size() == messages_max) waiting_.pop_front();
    waiting_.emplace_back(text);
    has_thread_ ? changed_.notify_one() : start_thread();
    return false;
  }

 private:
  static constexpr std::size_t messages_max = 16;

  unsent_messages() {
    ::pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                     [] {
                       // The thread is the parent's, and sends the messages waiting there.
                       get().has_thread_ = false;
                       get().waiting_.clear();
                       get().mutex_.unlock();
                     });
  }

  static int try_to_send(const address& manager, std::string_view text) noexcept {
    const int error = send_to(manager, text);
    if (error == 0) {
      notification.works();
    } else if (error == EMSGSIZE) {
      notification.failed("a message to the service manager is too large", error, "shorten it");
    } else {
      notification.failed("the service manager cannot be told at NOTIFY_SOCKET", error);
    }
    return error;
  }

  void send_waiting(const address& manager) noexcept {
    while (!waiting_.empty()) {
      const int error = try_to_send(manager, waiting_.front());
      if (error != 0 && error != EMSGSIZE) return;
      waiting_.pop_front();
    }
  }

  void start_thread() noexcept {
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      // It is detached: it keeps no program alive, and uses only objects that are never destroyed.
      std::thread([this] { run(); }).detach();
      has_thread_ = true;
    } catch (const std::exception&) {  // the next message tries again
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void run() noexcept {
    base::name_this_thread("notify");
    std::unique_lock lock(mutex_);
    while (!waiting_.empty()) {
      const std::chrono::nanoseconds pause(notification.next_try_ns() - base::now_ns());
      // A message that is sent meanwhile was tried at once, and may have changed when to try again.
      if (pause.count() > 0) {
        changed_.wait_for(lock, pause);
        continue;
      }
      address manager;
      find_manager(manager) ? send_waiting(manager) : waiting_.clear();
    }
    has_thread_ = false;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  bool has_thread_ = false;
};

}  // namespace

// order: relaxed (both)  the descriptor is the process's; nothing else is published
void keep_ready_pipe(int fd) noexcept {
  const int before = ready_pipe.exchange(fd, std::memory_order_relaxed);
  if (before != none) ::close(before);
}
void tell_predecessor() noexcept {
  const int fd = ready_pipe.exchange(none, std::memory_order_relaxed);
  if (fd == none) return;
  io::ignore_broken_pipes();
  static_cast<void>(!::write(fd, "R", 1));  // it may have closed its end, and needs no notice then
  ::close(fd);
}

bool notify(std::string_view lines) noexcept try {
  return unsent_messages::get().send(lines);
} catch (const std::bad_alloc&) {
  notification.failed("memory is out");
  return false;
}

void ready() noexcept {
  tell_predecessor();
  notify("READY=1\n");
}

void stopping() noexcept { notify("STOPPING=1\n"); }

// systemd requires the time, to distinguish the ready() of this reload from the ready() of an
// earlier one.
void reloading() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  char lines[64] = "RELOADING=1\nMONOTONIC_USEC=";
  const std::size_t begin = std::strlen(lines);
  char* const end = std::to_chars(lines + begin, lines + sizeof lines - 1,
                                  std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000)
                        .ptr;
  *end = '\n';
  notify({lines, static_cast<std::size_t>(end + 1 - lines)});
}

}  // namespace troupe::service
