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
#include "base/invariant.hpp"
#include "base/side_channels/bounded_write.hpp"
#include "base/side_channels/side_channel.hpp"
#include "base/thread_name.hpp"
#include "log/fatal_signals.hpp"
#include "log/line.hpp"

namespace troupe::log {
namespace {

// The writer lets lines gather for this time, so that most callers need not wake it.
constexpr std::chrono::milliseconds gathers{5};
// For the last lines, at exit(), and for the lines that flush() and configure() write.
constexpr std::int64_t end_limit_ns = 2'000'000'000;
// A pipe that is ready takes so much without blocking.
constexpr std::size_t piece_bytes = 4096;

sink sink_of(int file) noexcept {
  struct ::stat is = {};
  const bool is_regular = ::fstat(file, &is) == 0 && S_ISREG(is.st_mode);
  return is_regular ? sink::regular_file : sink::other_file;
}

std::uint64_t lines_in(std::string_view text) noexcept {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

// Does not wait for the reader of a named pipe. A path with a zero byte would be cut there.
int open_file(const std::string& path) noexcept {
  if (path.find('\0') != std::string::npos) {
    errno = EINVAL;
    return -1;
  }
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
}

constinit base::side_channel log_file("the log's file"), log_lines("the log");

}  // namespace

// Takes output_mutex_ from the writing thread, which gives it up soon.
class writer::output_lock {
 public:
  explicit output_lock(writer& owner) noexcept : owner_(owner) {
    owner_.waiters_.fetch_add(1, std::memory_order_relaxed);  // order: relaxed  a request
    owner_.output_mutex_.lock();
    owner_.waiters_.fetch_sub(1, std::memory_order_relaxed);  // order: relaxed  a request
    owner_.patience_end_ns_ = base::now_ns() + end_limit_ns;
  }
  output_lock(const output_lock&) = delete;
  output_lock& operator=(const output_lock&) = delete;
  ~output_lock() {
    owner_.patience_end_ns_ = 0;
    owner_.output_mutex_.unlock();
  }

 private:
  writer& owner_;
};

writer& writer::get() noexcept {
  static writer& instance = *new writer;
  return instance;
}

writer::writer() : sink_(sink_of(STDERR_FILENO)) {
  for (buffer& empty : buffers_) empty.bytes.reset(new char[buffer_bytes]);
}

// Under buffer_mutex_.
void writer::start() {
  thread_stage_.begin();
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {  // at exit() the lines are still written
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::atexit([] { get().end(); });
  ::at_quick_exit([] { get().end(); });
  ::pthread_atfork(
      [] {
        // order: relaxed (both)  a request
        get().waiters_.fetch_add(1, std::memory_order_relaxed);
        get().output_mutex_.lock();
        get().waiters_.fetch_sub(1, std::memory_order_relaxed);
        get().buffer_mutex_.lock();
      },
      [] {
        get().buffer_mutex_.unlock();
        get().output_mutex_.unlock();
      },
      [] { get().after_fork(); });
  catch_fatal_signals([]() noexcept { get().write_in_signal(); });
}

// The child has no thread that writes: its lines are written at once. The lines in the buffers are
// the parent's to write.
void writer::after_fork() noexcept {
  if (!thread_stage_.has_ended()) thread_stage_.end();
  // order: relaxed (both)  the child has one thread
  for (buffer& emptied : buffers_) emptied.used.store(0, std::memory_order_relaxed);
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
  bool wakes = false, is_last = false;
  {
    std::lock_guard lock(buffer_mutex_);
    if (!thread_stage_.has_begun()) start();
    // order: relaxed (all)  guarded by the mutex
    lines_.store(lines_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    buffer& filled = buffers_[filled_.load(std::memory_order_relaxed)];
    const std::size_t used = filled.used.load(std::memory_order_relaxed);
    if (line.size() > buffer_bytes - used) return drop();
    TROUPE_INVARIANT(!line.empty() && line.back() == '\n', "L1");
    TROUPE_INVARIANT(used == 0 || filled.bytes[used - 1] == '\n', "L1");
    std::memcpy(filled.bytes.get() + used, line.data(), line.size());
    // order: release  the line is complete (L3); pairs with write_in_signal/acquire
    filled.used.store(used + line.size(), std::memory_order_release);
    const std::size_t half = buffer_bytes / 2;
    wakes = used == 0 || (used < half && used + line.size() >= half);
    is_last = thread_stage_.has_ended();
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
    bool is_whole = false;
    {
      std::lock_guard lock(output_mutex_);
      is_whole = drain();
    }
    if (!is_whole) wakes_.notify();
  }
}

// At exit().
void writer::end() noexcept {
  // order: release  pairs with run/acquire
  ends_.store(true, std::memory_order_release);
  wakes_.notify();
  {
    std::lock_guard lock(buffer_mutex_);
    if (thread_stage_.has_ended()) return;  // of a fork
    thread_stage_.end();
  }
  if (thread_.joinable()) thread_.join();
  flush();
}

void writer::flush() noexcept {
  bool is_whole = false;
  {
    const output_lock lock(*this);
    is_whole = drain();
  }
  if (!is_whole) wakes_.notify();
}

// Under output_mutex_. Returns false if lines are left that can be written later.
bool writer::drain() noexcept {
  // order: relaxed  a request
  if (reopens_.load(std::memory_order_relaxed) && log_file.may_try()) reopen_file();
  // order: relaxed  changes under both mutexes
  buffer& rest = buffers_[1 - filled_.load(std::memory_order_relaxed)];
  if (!write_buffer(rest)) return false;
  buffer* full = nullptr;
  {
    std::lock_guard lock(buffer_mutex_);
    // order: relaxed  guarded by the mutex
    const unsigned which = filled_.load(std::memory_order_relaxed);
    full = &buffers_[which];
    // order: relaxed  guarded by the mutex
    if (full->used.load(std::memory_order_relaxed) == 0) full = nullptr;
    // order: relaxed  guarded by output_mutex_
    TROUPE_INVARIANT(rest.used.load(std::memory_order_relaxed) == 0, "L2");
    // order: release  the other buffer is empty; pairs with write_in_signal/acquire
    if (full != nullptr) filled_.store(1 - which, std::memory_order_release);
  }
  if (full != nullptr && !write_buffer(*full)) return false;
  tell_dropped();
  return true;
}

// Returns false if it stops early: the remaining lines are written later.
bool writer::write_buffer(buffer& full) noexcept {
  // order: relaxed (all)  the mutex that guards filled_ has published the lines; the rest is
  // guarded by output_mutex_
  const std::size_t used = full.used.load(std::memory_order_relaxed);
  if (used == 0) return true;
  const end_of_write ended = write_lines(full.bytes.get(), used, full.written);
  // order: relaxed (all)  as above; after a crash the lines are the signal handler's to write (L3)
  const bool is_left = !is_over() || gate_.has_crashed();
  if (ended == end_of_write::given_up && is_left) return false;
  const std::size_t done = full.written.load(std::memory_order_relaxed);
  if (done < used) drop(lines_in({full.bytes.get() + done, used - done}));
  full.used.store(0, std::memory_order_relaxed);
  // order: release  a fatal signal's handler that sees it sees that the buffer is empty, and does
  // not write the lines again; pairs with write_in_signal/acquire
  full.written.store(0, std::memory_order_release);
  return true;
}

void writer::tell_dropped() noexcept try {
  const std::uint64_t now = count().dropped;
  if (now == dropped_told_) return;
  line warning(form_now());
  warning.begin(level::warning, "log", "lines were dropped");
  warning.add(field("dropped", now - dropped_told_));
  warning.end();
  std::atomic<std::size_t> written{0};
  dropped_told_ = now;
  if (write_lines(warning.text().data(), warning.text().size(), written) != end_of_write::whole)
    drop();
} catch (const std::bad_alloc&) {  // it is reported later
}

// Adds the number of written bytes to `written`.
writer::end_of_write writer::write_lines(const char* bytes, std::size_t size,
                                         std::atomic<std::size_t>& written) noexcept {
  // order: relaxed  guarded by output_mutex_
  std::size_t done = written.load(std::memory_order_relaxed);
  end_of_write ended = end_of_write::whole;
  if (sink_ == sink::callback) {
    call_with_lines({bytes + done, size - done});
    done = size;
  } else {
    const base::without_write_signals guard;
    while (done < size && ended == end_of_write::whole) {
      ended = write_some(bytes, size, done);
      // order: release  pairs with write_in_signal/acquire
      written.store(done, std::memory_order_release);
      gate_.end_write();
    }
    if (ended == end_of_write::whole) log_lines.works();
  }
  written.store(done, std::memory_order_release);  // order: release  as above
  return ended;
}

// Adds to `done` the number of bytes that were written. Returns `whole` if more may follow.
writer::end_of_write writer::write_some(const char* bytes, std::size_t size,
                                        std::size_t& done) noexcept {
  if (sink_ != sink::regular_file && !await_room()) return end_of_write::given_up;
  // A fatal signal's handler waits for the end of this write.
  if (!gate_.begin_write()) return end_of_write::given_up;
  // order: relaxed  guarded by output_mutex_
  const ::ssize_t took =
      ::write(file_.load(std::memory_order_relaxed), bytes + done,
              sink_ == sink::regular_file ? size - done : std::min(piece_bytes, size - done));
  const int why = errno;
  if (took > 0) done += static_cast<std::size_t>(took);
  if (took >= 0 || why == EINTR || why == EAGAIN) return end_of_write::whole;
  log_lines.failed("lines cannot be written, and are dropped", why);
  return end_of_write::failed;
}

// The program ends, and the time for its last lines is over.
bool writer::is_over() noexcept {
  // order: acquire  pairs with end/release
  if (!ends_.load(std::memory_order_acquire)) return false;
  if (end_ns_ == 0) end_ns_ = base::now_ns() + end_limit_ns;
  return base::now_ns() > end_ns_;
}

// False: the reader does not read, and the write is given up for now.
bool writer::await_room() noexcept {
  constexpr int look_ms = 20;
  for (;;) {
    // order: relaxed  guarded by output_mutex_
    ::pollfd ready{file_.load(std::memory_order_relaxed), POLLOUT, 0};
    if (::poll(&ready, 1, look_ms) != 0) return true;  // write() reports an error
    if (is_over()) return false;
    if (patience_end_ns_ != 0) {
      // order: acquire  pairs with end/release: then the limit of is_over() applies
      if (!ends_.load(std::memory_order_acquire) && base::now_ns() > patience_end_ns_) return false;
    } else if (waiters_.load(std::memory_order_relaxed) != 0) {  // order: relaxed  a request
      return false;
    }
  }
}

void writer::call_with_lines(std::string_view lines) noexcept {
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    try {
      callback_(lines.substr(0, end));
      log_lines.works();
    } catch (...) {
      drop();
      log_lines.failed("the callback throws, and its lines are dropped");
    }
    lines.remove_prefix(end + 1);
  }
}

void writer::configure(options chosen) {
  const output_lock lock(*this);
  static_cast<void>(drain());
  // order: relaxed  a line may have the form of before
  form_.store(chosen.as, std::memory_order_relaxed);
  path_ = std::move(chosen.file);
  callback_ = std::move(chosen.callback);
  set_sink();
  reopen_file();
}

// Under output_mutex_. Lines go to the file of before until the new one can be opened.
void writer::reopen_file() noexcept {
  const int file = path_.empty() ? STDERR_FILENO : open_file(path_);
  const int error = file < 0 ? errno : 0;
  reopens_.store(file < 0, std::memory_order_relaxed);  // order: relaxed  a request
  if (file < 0) return log_file.failed(path_, error, "lines go where they went before");
  log_file.works();
  // order: relaxed  guarded by output_mutex_
  const int before = file_.exchange(file, std::memory_order_relaxed);
  if (before > STDERR_FILENO) ::close(before);
  set_sink();
}

void writer::set_sink() noexcept {
  // order: relaxed  guarded by output_mutex_
  sink_ = callback_ != nullptr ? sink::callback : sink_of(file_.load(std::memory_order_relaxed));
}

// Another thread may be in a write: its end is waited for, not longer than a little while. The
// buffers stay where they are, since no thread can finish a line of another thread.
void writer::write_in_signal() noexcept {
  const base::without_write_signals guard;
  gate_.crash();
  constexpr int naps_max = 100, nap_ms = 1;
  for (int i = 0; i < naps_max && gate_.is_writing(); ++i) ::poll(nullptr, 0, nap_ms);
  // order: acquire (all)  pairs with add/release, write_lines/release and drain/release
  const unsigned filled = filled_.load(std::memory_order_acquire);
  for (const unsigned which : {1 - filled, filled}) {
    const buffer& written_out = buffers_[which];
    // In this order: `written` goes back to zero after `used`.
    std::size_t done = written_out.written.load(std::memory_order_acquire);
    const std::size_t used = written_out.used.load(std::memory_order_acquire);
    while (done < used) {
      // order: relaxed  changes only when the file is opened anew
      const int file = file_.load(std::memory_order_relaxed);
      ::pollfd ready{file, POLLOUT, 0};
      if (::poll(&ready, 1, naps_max) == 0) return;
      const auto took =
          ::write(file, written_out.bytes.get() + done, std::min(piece_bytes, used - done));
      if (took < 0 && errno != EINTR && errno != EAGAIN) return;
      if (took > 0) done += static_cast<std::size_t>(took);
    }
  }
}

}  // namespace troupe::log
