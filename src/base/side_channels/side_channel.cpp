#include "base/side_channels/side_channel.hpp"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "base/clock.hpp"
#include "base/side_channels/bounded_write.hpp"

namespace troupe::base {
namespace {

constexpr int report_patience_ms = 20;

// One line of text that needs no memory. A text that is too long is cut.
class report_line {
 public:
  report_line& add(std::string_view text) noexcept {
    for (const char byte : text.substr(0, text_max)) {
      if (size_ + 1 >= sizeof bytes_) break;
      const auto code = static_cast<unsigned char>(byte);
      bytes_[size_++] = code < 0x20 || code == 0x7f ? '?' : byte;
    }
    return *this;
  }
  void write() noexcept {
    bytes_[size_++] = '\n';
    static_cast<void>(bounded_write(STDERR_FILENO, {bytes_, size_}, report_patience_ms));
  }

 private:
  static constexpr std::size_t text_max = 400;
  std::size_t size_ = 0;
  char bytes_[1024];
};

}  // namespace

// order: relaxed (all)  statistics and a time; the channel itself publishes nothing through them

bool side_channel::is_failing() const noexcept {
  return in_a_row_.load(std::memory_order_relaxed) != 0;  // order: relaxed  see above
}

std::int64_t side_channel::next_try_ns() const noexcept {
  if (!is_failing()) return 0;
  return next_try_ns_.load(std::memory_order_relaxed);  // order: relaxed  see above
}

bool side_channel::may_try() const noexcept {
  const std::int64_t next_ns = next_try_ns();
  return next_ns == 0 || now_ns() >= next_ns;
}

std::uint64_t side_channel::failures() const noexcept {
  return failures_.load(std::memory_order_relaxed);  // order: relaxed  see above
}

void side_channel::failed(std::string_view why, int error, std::string_view remedy) noexcept {
  // order: relaxed (both)  see above
  failures_.fetch_add(1, std::memory_order_relaxed);
  const std::uint32_t before = in_a_row_.fetch_add(1, std::memory_order_relaxed);
  constexpr std::uint32_t doublings_max = 10;
  const std::int64_t pause_ns =
      std::min(pause_min_ns << std::min(before, doublings_max), pause_max_ns);
  const std::int64_t now = now_ns();
  // order: relaxed (all)  see above
  next_try_ns_.store(now + pause_ns, std::memory_order_relaxed);
  std::int64_t last_ns = reported_ns_.load(std::memory_order_relaxed);
  if (is_reported_.load(std::memory_order_relaxed)) return;
  if (last_ns != 0 && now - last_ns < report_pause_ns) return;
  // order: relaxed  one of several threads reports
  if (!reported_ns_.compare_exchange_strong(last_ns, now, std::memory_order_relaxed)) return;
  is_reported_.store(true, std::memory_order_relaxed);  // order: relaxed  see above
  report(why, error, remedy);
}

void side_channel::works() noexcept {
  // order: relaxed (all)  see above
  if (in_a_row_.load(std::memory_order_relaxed) == 0) return;
  in_a_row_.store(0, std::memory_order_relaxed);
  if (!is_reported_.exchange(false, std::memory_order_relaxed)) return;
  report_line().add("troupe: ").add(name_).add(" works again").write();
}

void side_channel::report(std::string_view why, int error, std::string_view remedy) noexcept {
  report_line line;
  line.add("troupe: ").add(name_).add(" fails: ").add(why);
  if (error != 0) {
    char buffer[128];
    line.add(": ").add(::strerror_r(error, buffer, sizeof buffer));
  }
  if (!remedy.empty()) line.add("; ").add(remedy);
  line.add(" (the program continues)").write();
}

}  // namespace troupe::base
