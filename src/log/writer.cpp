#include "log/writer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/thread_name.hpp"
#include "log/fatal_signals.hpp"
#include "log/line.hpp"

namespace troupe::log {
namespace {

// The writer lets lines gather for this time, so that most callers need not wake it.
constexpr std::chrono::milliseconds gathers{5};
constexpr std::int64_t end_limit_ns = 2'000'000'000;  // for the last lines, at exit()
// A pipe that is ready takes so much without blocking.
constexpr std::size_t piece_bytes = 4096;

bool is_regular(int file) noexcept {
  struct ::stat is = {};
  return ::fstat(file, &is) == 0 && S_ISREG(is.st_mode);
}

std::uint64_t lines_in(std::string_view text) noexcept {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

int open_file(const std::string& path) noexcept {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

}  // namespace

writer& writer::get() noexcept {
  static writer& instance = *new writer;
  return instance;
}

writer::writer() : is_regular_(is_regular(STDERR_FILENO)) {
  for (buffer& one : buffers_) one.bytes.reset(new char[buffer_bytes]);
}

// Under buffer_mutex_.
void writer::start() {
  started_ = true;
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {  // at exit() the lines are written all the same
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::atexit([] { get().end(); });
  ::at_quick_exit([] { get().end(); });
  ::pthread_atfork(
      [] {
        get().output_mutex_.lock();
        get().buffer_mutex_.lock();
      },
      [] {
        get().buffer_mutex_.unlock();
        get().output_mutex_.unlock();
      },
      [] { get().after_fork(); });
  catch_fatal_signals();
}

// The child has no thread that writes: its lines are written at once. What the buffers hold is the
// parent's to write.
void writer::after_fork() noexcept {
  ended_ = true;
  // order: relaxed (both)  the child has one thread
  for (buffer& one : buffers_) one.used.store(0, std::memory_order_relaxed);
  buffer_mutex_.unlock();
  output_mutex_.unlock();
}

void writer::drop(std::uint64_t lines) noexcept {
  // order: relaxed  a statistic
  dropped_.fetch_add(lines, std::memory_order_relaxed);
}

counts writer::count() const noexcept {
  // order: relaxed (both)  statistics
  return {lines_.load(std::memory_order_relaxed), dropped_.load(std::memory_order_relaxed)};
}

void writer::add(std::string_view line) noexcept {
  // order: relaxed  a statistic
  lines_.fetch_add(1, std::memory_order_relaxed);
  bool wakes = false, is_last = false;
  {
    std::lock_guard lock(buffer_mutex_);
    if (!started_) start();
    // order: relaxed (all)  guarded by the mutex
    buffer& to = buffers_[filled_.load(std::memory_order_relaxed)];
    const std::size_t used = to.used.load(std::memory_order_relaxed);
    if (line.size() > buffer_bytes - used) return drop();
    std::memcpy(to.bytes.get() + used, line.data(), line.size());
    // order: release  the line is whole (L3); pairs with write_in_signal/acquire
    to.used.store(used + line.size(), std::memory_order_release);
    const std::size_t half = buffer_bytes / 2;
    wakes = used == 0 || (used < half && used + line.size() >= half);
    is_last = ended_;
  }
  if (is_last) return flush();  // the thread has ended: this one comes from a destructor at exit()
  if (wakes) wakes_.notify();
}

void writer::run() noexcept {
  ::pthread_setname_np(::pthread_self(), "log");
  // order: acquire  pairs with end/release
  while (!ends_.load(std::memory_order_acquire)) {
    wakes_.wait();
    // order: acquire  as above
    if (!ends_.load(std::memory_order_acquire)) static_cast<void>(wakes_.wait_for(gathers));
    flush();
  }
}

// At exit().
void writer::end() noexcept {
  // order: release  pairs with run/acquire
  ends_.store(true, std::memory_order_release);
  wakes_.notify();
  {
    std::lock_guard lock(buffer_mutex_);
    if (ended_) return;  // of a fork
    ended_ = true;
  }
  if (thread_.joinable()) thread_.join();
  flush();
}

void writer::flush() noexcept {
  std::lock_guard lock(output_mutex_);
  drain();
}

// Under output_mutex_.
void writer::drain() noexcept {
  // order: relaxed  a request
  if (reopens_.exchange(false, std::memory_order_relaxed)) reopen_file();
  buffer* full = nullptr;
  {
    std::lock_guard lock(buffer_mutex_);
    // order: relaxed  guarded by the mutex
    const unsigned which = filled_.load(std::memory_order_relaxed);
    full = &buffers_[which];
    // order: relaxed  guarded by the mutex
    if (full->used.load(std::memory_order_relaxed) == 0) full = nullptr;
    // order: release  the other buffer is empty; pairs with write_in_signal/acquire
    if (full != nullptr) filled_.store(1 - which, std::memory_order_release);
  }
  if (full != nullptr) {
    // order: relaxed (both)  the mutex has published them
    write_lines(full->bytes.get(), full->used.load(std::memory_order_relaxed), full->written);
    full->used.store(0, std::memory_order_relaxed);
    full->written.store(0, std::memory_order_relaxed);  // order: relaxed  guarded by output_mutex_
  }
  tell_dropped();
}

void writer::tell_dropped() noexcept try {
  const std::uint64_t now = count().dropped;
  if (now == dropped_told_) return;
  line made(form_now());
  made.begin(level::warning, "log", "lines were dropped");
  made.add(field("dropped", now - dropped_told_));
  made.end();
  std::atomic<std::size_t> written{0};
  dropped_told_ = now;
  write_lines(made.text().data(), made.text().size(), written);
} catch (const std::bad_alloc&) {  // it is told later
}

void writer::write_lines(const char* bytes, std::size_t size,
                         std::atomic<std::size_t>& written) noexcept {
  if (callback_ != nullptr) return call_with_lines({bytes, size});
  // order: acquire  pairs with end/release
  if (ends_.load(std::memory_order_acquire) && end_ns_ == 0)
    end_ns_ = base::now_ns() + end_limit_ns;
  std::size_t done = 0;
  while (done < size && write_some(bytes, size, done)) {
    // order: release  pairs with write_in_signal/acquire
    written.store(done, std::memory_order_release);
    writes_.store(false);  // order: seq_cst  pairs with write_in_signal
  }
  writes_.store(false);  // order: seq_cst  pairs with write_in_signal
  if (done < size) drop(lines_in({bytes + done, size - done}));
}

// Adds the number of bytes that were written. Returns false if no more can be.
bool writer::write_some(const char* bytes, std::size_t size, std::size_t& done) noexcept {
  if (!is_regular_ && !await_room()) return false;
  // A fatal signal's handler waits for the end of this write.
  // order: seq_cst (both)  either this sees that the handler has begun, or the handler sees the
  // write; pairs with write_in_signal
  writes_.store(true);
  ::ssize_t took = -1;
  int why = EIO;
  if (!crashed_.load()) {  // order: seq_cst  as above
    // order: relaxed  guarded by output_mutex_
    took = ::write(file_.load(std::memory_order_relaxed), bytes + done,
                   is_regular_ ? size - done : std::min(piece_bytes, size - done));
    why = errno;
  }
  if (took > 0) done += static_cast<std::size_t>(took);
  return took >= 0 || why == EINTR || why == EAGAIN;
}

// False: the program ends, and the reader does not read.
bool writer::await_room() noexcept {
  constexpr int look_ms = 100;
  for (;;) {
    // order: relaxed  guarded by output_mutex_
    ::pollfd ready{file_.load(std::memory_order_relaxed), POLLOUT, 0};
    if (::poll(&ready, 1, look_ms) != 0) return true;  // an error is write's to tell
    // order: acquire  pairs with end/release
    if (!ends_.load(std::memory_order_acquire)) continue;
    if (end_ns_ == 0) end_ns_ = base::now_ns() + end_limit_ns;
    if (base::now_ns() > end_ns_) return false;
  }
}

void writer::call_with_lines(std::string_view lines) noexcept {
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    try {
      callback_(lines.substr(0, end));
    } catch (...) {
      drop();
    }
    lines.remove_prefix(end + 1);
  }
}

void writer::configure(options chosen) {
  const int file = chosen.file.empty() ? STDERR_FILENO : open_file(chosen.file);
  if (file < 0)
    throw std::system_error(errno, std::generic_category(), "troupe: log: " + chosen.file);
  std::lock_guard lock(output_mutex_);
  drain();
  // order: relaxed (both)  a line may have the form of before; guarded by output_mutex_
  form_.store(chosen.as, std::memory_order_relaxed);
  const int before = file_.exchange(file, std::memory_order_relaxed);
  if (before > STDERR_FILENO) ::close(before);
  is_regular_ = is_regular(file);
  path_ = std::move(chosen.file);
  callback_ = std::move(chosen.callback);
}

// Under output_mutex_.
void writer::reopen_file() noexcept {
  if (path_.empty()) return;
  const int file = open_file(path_);
  if (file < 0) return;
  // order: relaxed  guarded by output_mutex_
  const int before = file_.exchange(file, std::memory_order_relaxed);
  if (before > STDERR_FILENO) ::close(before);
  is_regular_ = is_regular(file);
}

// Another thread may be in a write: its end is waited for, not longer than a little while. The
// buffers stay where they are, since nobody can finish a line of another thread.
void writer::write_in_signal() noexcept {
  // order: seq_cst (both)  pairs with write_some
  crashed_.store(true);
  constexpr int naps_max = 100, nap_ms = 1;
  // order: seq_cst  as above
  for (int i = 0; i < naps_max && writes_.load(); ++i) ::poll(nullptr, 0, nap_ms);
  // order: acquire (all)  pairs with add/release, write_lines/release and drain/release
  const unsigned filled = filled_.load(std::memory_order_acquire);
  for (const unsigned which : {1 - filled, filled}) {
    const buffer& one = buffers_[which];
    const std::size_t used = one.used.load(std::memory_order_acquire);
    std::size_t done = one.written.load(std::memory_order_acquire);
    while (done < used) {
      // order: relaxed  changes only when the file is opened anew
      const int file = file_.load(std::memory_order_relaxed);
      ::pollfd ready{file, POLLOUT, 0};
      if (::poll(&ready, 1, naps_max) == 0) return;
      const auto took = ::write(file, one.bytes.get() + done, std::min(piece_bytes, used - done));
      if (took < 0 && errno != EINTR && errno != EAGAIN) return;
      if (took > 0) done += static_cast<std::size_t>(took);
    }
  }
}

}  // namespace troupe::log
