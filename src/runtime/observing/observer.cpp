#include "runtime/observing/observer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/side_channels/side_channel.hpp"
#include "base/thread_name.hpp"
#include "observe/live_trace.hpp"
#include "observe/sockets/observation_socket.hpp"
#include "runtime/observing/observed_runtime.hpp"
#include "runtime/observing/socket_answers.hpp"
#include "runtime/observing/summary.hpp"
#include "runtime/services/served_runtimes.hpp"

namespace troupe::observing {
namespace {

constexpr std::size_t clients_max = 16, question_bytes_max = 4096;
// A client that takes no bytes of an answer for this time is cut off.
constexpr std::int64_t patience_ns = 10'000'000'000;
// When all places are taken, a client that was answered, or came, longer ago than this makes room
// for a new one. Clients that ask nothing, or send a question byte by byte, lock no other out.
constexpr std::int64_t idle_ns_max = 2'000'000'000;

constinit base::side_channel observation("observation");

class descriptor {
 public:
  explicit descriptor(int fd = -1) noexcept : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

// A socket that listens, or why there is none.
struct listening {
  descriptor socket{};
  std::optional<observe::socket_fault> fault{};
};

std::optional<observe::socket_fault> make_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return observe::socket_fault{"mkdir " + folder, errno,
                                 "set XDG_RUNTIME_DIR to a folder of the program's user"};
  }
  return observe::check_folder(folder, observe::own_user());
}

// The path has the number of this process: another copy of the library in it therefore listens
// there; a plugin may have its own copy.
bool is_listened_at(const ::sockaddr_un& address) noexcept {
  const descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* const at = static_cast<const ::sockaddr*>(static_cast<const void*>(&address));
  return probe.get() >= 0 && ::connect(probe.get(), at, sizeof address) == 0;
}

listening listen_at(const std::string& path) {
  ::sockaddr_un address;
  if (auto fault = observe::make_address(path, address)) return {.fault = std::move(fault)};
  descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) return {.fault = observe::socket_fault{"socket", errno}};
  if (is_listened_at(address)) {
    return {.fault = observe::socket_fault{"bind " + path, EADDRINUSE,
                                           "another copy of the library in this process is "
                                           "observed there"}};
  }
  ::unlink(path.c_str());  // of an earlier process with this number
  const auto* const at = static_cast<const ::sockaddr*>(static_cast<const void*>(&address));
  if (::bind(socket.get(), at, sizeof address) != 0)
    return {.fault = observe::socket_fault{"bind " + path, errno}};
  if (::chmod(path.c_str(), 0600) != 0 ||
      ::listen(socket.get(), static_cast<int>(clients_max)) != 0)
    return {.fault = observe::socket_fault{"listen " + path, errno}};
  return {.socket = std::move(socket)};
}

struct client {
  descriptor stream;
  std::string asked, answer;
  std::size_t sent = 0;  // bytes of the answer
  // when it came, when the answer was made, or when bytes of it went out
  std::int64_t last_sent_ns = base::now_ns();
  bool is_over = false;
  std::unique_ptr<observe::live_trace> trace;  // the answer's next parts come from it
  std::int64_t trace_end_ns = 0;
  bool is_answered() const noexcept { return sent == answer.size(); }
  bool records() const noexcept { return trace != nullptr && !trace->has_ended(); }
  bool may_go(std::int64_t now_ns) const noexcept {
    return trace == nullptr && is_answered() && now_ns - last_sent_ns > idle_ns_max;
  }
};

// The observer of the process. Never destroyed.
class observer {
 public:
  static observer& get() {
    static observer& instance = *new observer;
    return instance;
  }

  void add(runtime_core& core) {
    observed_runtime& added = keep(core);
    try {
      served_.add(added, [this] { start(); });
    } catch (...) {
      static_cast<void>(take(core));
      throw;
    }
    core.stalls.tell([]() noexcept { get().look_now(); });
    look_now();
  }

  std::string ask(std::string_view question) {
    return served_.with_all([&](const auto& runtimes) { return answer(question, runtimes); });
  }

  void collect_all(observe::number_tables& tables) {
    collect_process(tables, false);
    served_.with_all([&](const auto& runtimes) {
      for (std::size_t i = 0; i < runtimes.size(); ++i)
        collect_numbers(tables, std::to_string(i), *runtimes[i], false);
      return runtimes.size();
    });
  }

  // Empty while there is no socket.
  std::string socket_path() {
    return served_.with_all(
        [&](const auto& runtimes) { return runtimes.empty() ? std::string() : path_; });
  }

  void remove(runtime_core& core) noexcept {
    const std::unique_ptr<observed_runtime> removed = take(core);
    if (removed == nullptr) return;
    served_.remove(*removed, [this] { end(); });
    removed->watch.tell_stalls();
  }

  void look_now() noexcept {
    std::lock_guard lock(waking_);
    wake();
  }

 private:
  observed_runtime& keep(runtime_core& core) {
    auto entry = std::make_unique<observed_runtime>(
        core, [](observed_runtime& observed, observe::number_tables& all) {
          collect_process(all, false);
          collect_numbers(all, "", observed, false);
        });
    std::lock_guard lock(owned_mutex_);
    return *(owned_[&core] = std::move(entry));
  }

  // Null for a runtime that is not observed.
  std::unique_ptr<observed_runtime> take(runtime_core& core) noexcept {
    std::lock_guard lock(owned_mutex_);
    const auto node = owned_.extract(&core);
    return node.empty() ? nullptr : std::move(node.mapped());
  }

  void wake() noexcept {
    const std::uint64_t number = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &number, sizeof number);
  }

  void end() noexcept {
    ends_.store(true, std::memory_order_release);  // order: release  pairs with was_ended/acquire
    look_now();
    if (thread_.joinable()) thread_.join();
    close_socket();
    std::lock_guard lock(waking_);
    wake_ = descriptor();
  }

  // Without a socket the thread still looks for warnings, and tries again to open one.
  void start() {
    clients_.reserve(clients_max);
    ready_.reserve(clients_max + 2);
    folder_ = observe::socket_folder(std::getenv("XDG_RUNTIME_DIR"), observe::own_user());
    {
      std::lock_guard lock(waking_);
      wake_ = descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    }
    ends_.store(false, std::memory_order_relaxed);  // order: relaxed  the thread starts later
    open_socket();
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& failed) {
      observation.failed(
          "no thread can be started, and nothing is observed until the program has "
          "no runtime and starts one",
          failed.code().value());
      close_socket();
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void open_socket() noexcept try {
    const std::string path = folder_ + "/" + std::to_string(::getpid()) + ".sock";
    listening opened;
    opened.fault = make_folder(folder_);
    if (!opened.fault) opened = listen_at(path);
    if (opened.fault)
      return observation.failed(opened.fault->problem, opened.fault->error, opened.fault->remedy);
    served_.with_all([&](const auto&) { path_ = path; });
    listener_ = std::move(opened.socket);
    observation.works();
  } catch (const std::bad_alloc&) {
    observation.failed("memory is out");
  }

  void close_socket() noexcept {
    if (listener_.get() >= 0) ::unlink(path_.c_str());
    served_.with_all([&](const auto&) { path_.clear(); });
    listener_ = descriptor();
  }

  void run() noexcept {
    base::name_this_thread("observer");
    turns_are_traced_ = false;
    clients_.clear();
    for (;;) {
      if (listener_.get() < 0 && observation.may_try()) open_socket();
      // poll() ignores a negative descriptor.
      ready_.assign({{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}});
      for (const client& peer : clients_) {
        const short wanted = peer.records() ? 0 : peer.is_answered() ? POLLIN : POLLOUT;
        ready_.push_back({peer.stream.get(), wanted, 0});
      }
      const bool is_full = clients_.size() >= clients_max && longest_idle() == clients_.end();
      if (is_full || !observation.may_try()) ready_[1].events = 0;
      wait();
      if (was_ended()) break;
      for (std::size_t i = 0; i < clients_.size(); ++i) serve(clients_[i], ready_[2 + i].revents);
      std::erase_if(clients_, [](const client& peer) { return peer.is_over; });
      trace_turns(std::any_of(clients_.begin(), clients_.end(),
                              [](const client& peer) { return peer.records(); }));
      if (ready_[1].revents != 0) accept_one();
    }
    clients_.clear();
  }

  // While a trace is taken, turns take the path that records them. A runtime that begins meanwhile
  // does that by itself.
  void trace_turns(bool traced) {
    if (std::exchange(turns_are_traced_, traced) == traced) return;
    served_.with_all([&](const auto& runtimes) {
      for (observed_runtime* const runtime : runtimes) {
        std::atomic<std::uint8_t>& flags = runtime->core.system->slow_path_flags;
        constexpr std::uint8_t flag = tasks::runtime_state::traced;
        // order: relaxed (both)  a turn may see it a little late
        traced ? flags.fetch_or(flag, std::memory_order_relaxed)
               : flags.fetch_and(static_cast<std::uint8_t>(~flag), std::memory_order_relaxed);
      }
    });
  }

  // Until when to wait at most for readers, and for ends of traces.
  std::int64_t next_of_clients() const noexcept {
    constexpr std::int64_t look_ns = 1'000'000'000;
    if (clients_.empty()) return INT64_MAX;
    std::int64_t next_ns = base::now_ns() + look_ns;
    for (const client& peer : clients_) {
      if (peer.records()) next_ns = std::min(next_ns, peer.trace_end_ns);
    }
    return next_ns;
  }

  // Until when to wait at most for the channel itself: for its next try, or, without a descriptor
  // that wakes the thread, for its end.
  std::int64_t next_of_channel() const noexcept {
    constexpr std::int64_t look_ns = 100'000'000;
    const std::int64_t end_ns = wake_.get() < 0 ? base::now_ns() + look_ns : INT64_MAX;
    return observation.is_failing() ? std::min(end_ns, observation.next_try_ns()) : end_ns;
  }

  static std::int64_t look_at_threads(thread_times& times) noexcept try {
    return times.look(base::now_ns());
  } catch (const std::bad_alloc&) {
    constexpr std::int64_t again_ns = 1'000'000'000;  // the next look may find memory
    return base::now_ns() + again_ns;
  }

  // Waits until there is something to read or write, or to look at.
  void wait() {
    const std::int64_t next_ns = served_.with_all([&](const auto& runtimes) {
      std::int64_t soonest = std::min(next_of_clients(), next_of_channel());
      for (observed_runtime* const runtime : runtimes) {
        soonest = std::min(soonest, runtime->watch.look(base::now_ns()));
        soonest = std::min(soonest, look_at_threads(runtime->times));
        soonest = std::min(soonest, runtime->history.look(base::now_ns()));
      }
      return soonest;
    });
    const std::int64_t now = base::now_ns();
    constexpr std::int64_t second_ns = 1'000'000'000;
    const std::int64_t pause = std::max<std::int64_t>(next_ns - now, 0);
    const ::timespec until{pause / second_ns, pause % second_ns};
    if (::ppoll(ready_.data(), ready_.size(), &until, nullptr) < 0) {
      for (::pollfd& descriptor : ready_) descriptor.revents = 0;
    }
  }

  bool was_ended() noexcept {
    std::uint64_t count = 0;
    if (ready_[0].revents != 0) {
      [[maybe_unused]] const auto read = ::read(wake_.get(), &count, sizeof count);
    }
    return ends_.load(std::memory_order_acquire);  // order: acquire  pairs with end/release
  }

  // The client that has been idle longest; the end if none may go.
  std::vector<client>::iterator longest_idle() noexcept {
    const std::int64_t now_ns = base::now_ns();
    auto found = clients_.end();
    for (auto at = clients_.begin(); at != clients_.end(); ++at) {
      const bool is_longer = found == clients_.end() || at->last_sent_ns < found->last_sent_ns;
      if (at->may_go(now_ns) && is_longer) found = at;
    }
    return found;
  }

  void accept_one() {
    if (clients_.size() >= clients_max) {
      const auto idle = longest_idle();
      if (idle == clients_.end()) return;
      clients_.erase(idle);
    }
    descriptor stream(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (stream.get() < 0) {
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        observation.failed("no connection can be accepted", errno, "raise ulimit -n");
      return;
    }
    observation.works();
    if (!observe::is_other_end_of(stream.get(), observe::own_user(), true)) return;
    clients_.emplace_back().stream = std::move(stream);
  }

  void serve(client& peer, short events) noexcept try {
    if (peer.records()) {
      peer.is_over = events != 0;  // the client has disconnected
      if (peer.is_over || base::now_ns() < peer.trace_end_ns) return;
      peer.trace->end();
      begin_part(peer);
    }
    if (!peer.is_answered()) {
      if (events != 0) send(peer);
      if (base::now_ns() - peer.last_sent_ns > patience_ns) peer.is_over = true;
      return;
    }
    if (events == 0) return;
    char bytes[512];
    const auto got = ::recv(peer.stream.get(), bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    peer.is_over = got <= 0;
    if (got > 0) peer.asked.append(bytes, static_cast<std::size_t>(got));
    answer_next(peer);
    if (peer.asked.size() > question_bytes_max) peer.is_over = true;
  } catch (const std::bad_alloc&) {
    peer.is_over = true;
  }

  // The client may have asked more than one question at once: they are answered one by one.
  void answer_next(client& peer) {
    const std::size_t end = peer.asked.find('\n');
    if (end == std::string::npos) return;
    const std::string question = peer.asked.substr(0, end);
    peer.asked.erase(0, end + 1);
    const std::optional<std::int64_t> trace_ms = trace_ms_of(question);
    if (trace_ms.has_value()) {
      begin_trace(peer, *trace_ms);
      if (peer.trace != nullptr) return;
      peer.answer = refusal("a trace is already taken, by TROUPE_TRACE or for another tool");
    } else {
      peer.answer = ask(question);
    }
    peer.answer += '\n';
    peer.sent = 0;
    peer.last_sent_ns = base::now_ns();
    send(peer);
  }

  static void begin_trace(client& peer, std::int64_t ms) {
    constexpr std::int64_t ms_ns = 1'000'000;
    peer.trace = observe::live_trace::begin();
    peer.trace_end_ns = base::now_ns() + ms * ms_ns;
  }

  // Returns false if the trace has been sent as a whole.
  static bool begin_part(client& peer) {
    peer.answer.clear();
    peer.sent = 0;
    peer.last_sent_ns = base::now_ns();
    if (peer.trace->add_part(peer.answer)) return true;
    peer.trace = nullptr;
    return false;
  }

  void send(client& peer) {
    while (!peer.is_answered()) {
      const auto done = ::send(peer.stream.get(), peer.answer.data() + peer.sent,
                               peer.answer.size() - peer.sent, MSG_NOSIGNAL);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0 && errno == EAGAIN) return;
      if (done <= 0) {
        peer.is_over = true;
        return;
      }
      peer.sent += static_cast<std::size_t>(done);
      peer.last_sent_ns = base::now_ns();
    }
    if (peer.trace != nullptr && begin_part(peer)) return;  // other clients come before that part
    answer_next(peer);
  }

  std::mutex owned_mutex_;  // guards owned_
  std::map<const runtime_core*, std::unique_ptr<observed_runtime>> owned_;
  served_runtimes<observed_runtime> served_;
  std::string folder_;
  std::string path_;  // of the socket, or empty; guarded by the mutex of served_
  descriptor listener_;
  std::mutex waking_;  // guards the replacement of wake_
  descriptor wake_;    // an eventfd
  std::atomic<bool> ends_{false};
  std::thread thread_;
  // Used by that thread alone. Their memory is reserved before it starts: it allocates none.
  std::vector<client> clients_;
  std::vector<::pollfd> ready_;
  bool turns_are_traced_ = false;
};

}  // namespace

void begin(runtime_core& core) { observer::get().add(core); }
std::string socket_path() { return observer::get().socket_path(); }
std::string ask(std::string_view question) { return observer::get().ask(question); }
void collect_all(observe::number_tables& tables) { observer::get().collect_all(tables); }
void end(runtime_core& core) noexcept { observer::get().remove(core); }

}  // namespace troupe::observing
