#include "runtime/failures/failure_lines.hpp"

#include <cxxabi.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "base/clock.hpp"

namespace troupe {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr int slow_ms = 10;  // for the mutex, and again for the reader

// A line of text that needs no memory; a text that is too long is cut.
class line {
 public:
  line& add(std::string_view text, std::size_t most = SIZE_MAX) noexcept {
    const bool cut = text.size() > most;
    for (const char letter : text.substr(0, most)) {
      if (size_ == sizeof text_ - 8) return *this;
      // Control characters become spaces, so that it stays one line; characters beyond ASCII stay.
      text_[size_++] = static_cast<unsigned char>(letter) < ' ' || letter == '\x7f' ? ' ' : letter;
    }
    return cut ? add("…") : *this;
  }
  line& add(std::uint64_t number, bool grouped) noexcept {
    char digits[32];
    std::size_t at = sizeof digits;
    unsigned count = 0;
    do {
      if (grouped && count != 0 && count % 3 == 0) digits[--at] = ',';
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
      ++count;
    } while (number != 0);
    return add({digits + at, sizeof digits - at});
  }
  line& end() noexcept {
    text_[size_++] = '\n';
    return *this;
  }
  bool write() const noexcept;

 private:
  std::size_t size_ = 0;
  char text_[2048];
};

// While this lives the thread gets no SIGPIPE.
class without_sigpipe {
 public:
  without_sigpipe() noexcept {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  without_sigpipe(const without_sigpipe&) = delete;
  without_sigpipe& operator=(const without_sigpipe&) = delete;
  ~without_sigpipe() {
    const timespec now{0, 0};
    while (broken && !was_pending_ && ::sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  bool broken = false;

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

// One thread at a time writes: otherwise another of our threads could use up the space in the pipe
// between the check for it and the write.
std::timed_mutex& get_writing() noexcept {
  // Never destroyed, since threads may end after the program's static objects; and not allocated,
  // since memory may be out.
  alignas(std::timed_mutex) static std::byte storage[sizeof(std::timed_mutex)];
  static std::timed_mutex& instance = *::new (storage) std::timed_mutex;
  return instance;
}

bool line::write() const noexcept {
  const int errno_before = errno;
  std::unique_lock lock(get_writing(), std::chrono::milliseconds(slow_ms));
  bool done = false;
  if (lock.owns_lock()) {
    without_sigpipe guard;
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    int found = ::poll(&ready, 1, slow_ms);
    if (found < 0 && errno == EINTR) found = ::poll(&ready, 1, slow_ms);
    if (found == 1 && (ready.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0) {
      ssize_t bytes = -1;
      do {
        bytes = ::write(STDERR_FILENO, text_, size_);
      } while (bytes < 0 && errno == EINTR);
      guard.broken = bytes < 0 && errno == EPIPE;
      done = bytes > 0;
    }
  }
  errno = errno_before;
  return done;
}

// "Parser #3, &Parser::parse", "a posted procedure".
void add_place(line& line, const actor::failed_call& where) noexcept {
  constexpr std::size_t name_max = 300;
  const std::string_view actor = where.actor, method = where.method;
  if (actor.empty()) {
    if (method == "post") {
      line.add("a posted procedure");
    } else if (method == "lazy") {
      line.add("a lazy whose value was not wanted");
    } else {
      line.add(method, name_max);
    }
    return;
  }
  line.add(actor, name_max);
  if (where.id != 0) line.add(" #").add(where.id, false);
  line.add(", ").add(method, name_max);
}

void add_what(line& line, const std::exception_ptr& failure) noexcept {
  constexpr std::size_t what_max = 1'000;
  std::string_view text;
  const std::type_info* type = nullptr;
  const auto finish = [&] {
    line.add(text, what_max);
    if (type == nullptr) return;
    char* const name = abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr);
    line.add(text.empty() ? "" : " (")
        .add(name != nullptr ? name : type->name(), 200)
        .add(text.empty() ? "" : ")");
    std::free(name);
  };
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& exception) {
    type = &typeid(exception);
    const char* const said = exception.what();
    text = said == nullptr ? "" : said;
    finish();
  } catch (...) {
    type = abi::__cxa_current_exception_type();
    finish();
  }
}

bool write_left_out(std::uint64_t count) noexcept {
  line text;
  return text.add("troupe: failure: … and ")
      .add(count, true)
      .add(" more in the last second")
      .end()
      .write();
}

}  // namespace

bool failure_lines::write_failure(const std::exception_ptr& failure,
                                  const actor::failed_call& where,
                                  std::uint64_t left_out_before) noexcept {
  if (left_out_before != 0) write_left_out(left_out_before);
  line text;
  text.add(where.is_dropped ? "troupe: dropped error: " : "troupe: failure: ");
  add_place(text, where);
  if (!where.is_dropped || where.id != 0) text.add(": ");
  add_what(text, failure);
  return text.end().write();
}

void failure_lines::write_text(const char* text) noexcept {
  line line;
  line.add(text).end().write();
}

failure_lines::report failure_lines::tell(const std::exception_ptr& failure,
                                          const actor::failed_call& where) noexcept {
  if (a_second_max_ == 0) return {false, false};
  std::uint64_t left_out_before = 0;
  {
    std::lock_guard lock(mutex_);
    const std::int64_t now = base::now_ns();
    if (began_ns_ == 0 || now - began_ns_ >= second_ns) {
      began_ns_ = now;
      written_ = 0;
      left_out_before = std::exchange(left_out_, 0);
    }
    if (written_ == a_second_max_) {
      ++left_out_;
      return {false, !std::exchange(armed_, true)};
    }
    ++written_;
  }
  if (write_failure(failure, where, left_out_before)) return {true, false};
  std::lock_guard lock(mutex_);
  ++left_out_;
  return {false, !std::exchange(armed_, true)};
}

void failure_lines::cannot_arm() noexcept {
  std::lock_guard lock(mutex_);
  armed_ = false;
}

void failure_lines::on_time() noexcept {
  cannot_arm();
  tell_left_out();
}

void failure_lines::tell_left_out() noexcept {
  std::uint64_t count = 0;
  {
    std::lock_guard lock(mutex_);
    count = std::exchange(left_out_, 0);
  }
  if (count != 0) write_left_out(count);
}

}  // namespace troupe
