#include "http/h1/date.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "kit/clock_and_random.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::http {

namespace {

using namespace std::chrono;

constexpr std::array<std::string_view, 7> days{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                               "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::size_t short_name = 3;
constexpr sys_seconds first = sys_days(year(0) / 1 / 1),
                      last = sys_days(year(9999) / 12 / 31) + 24h - 1s;

// Takes parts from the front of a text. After the first missing part, all later calls also fail.
class reader {
 public:
  explicit reader(std::string_view text) noexcept : left_(text) {}
  bool is_whole() const noexcept { return well_ && left_.empty(); }

  void word(std::string_view name) noexcept {
    well_ = well_ && left_.starts_with(name);
    if (well_) left_.remove_prefix(name.size());
  }
  // Returns the index of the name in the list.
  template <std::size_t N>
  unsigned one_of(const std::array<std::string_view, N>& names, std::size_t bytes) noexcept {
    for (unsigned i = 0; i < N; ++i) {
      const std::string_view name = names[i].substr(0, bytes);
      if (!left_.starts_with(name)) continue;
      left_.remove_prefix(name.size());
      return i;
    }
    well_ = false;
    return 0;
  }
  // `padded`: the first digit may be a space.
  int number(std::size_t digits, bool padded = false) noexcept {
    int value = 0;
    well_ = well_ && left_.size() >= digits;
    for (std::size_t i = 0; well_ && i < digits; ++i) {
      const char digit = left_[i];
      if (padded && i == 0 && digit == ' ') continue;
      well_ = digit >= '0' && digit <= '9';
      value = value * 10 + (digit - '0');
    }
    if (well_) left_.remove_prefix(digits);
    return value;
  }

 private:
  std::string_view left_;
  bool well_ = true;
};

struct parts {
  int year = 0, day = 0, hour = 0, minute = 0, second = 0;
  unsigned month = 0;
  void read_time(reader& from) noexcept {
    hour = from.number(2);
    from.word(":");
    minute = from.number(2);
    from.word(":");
    second = from.number(2);
  }
  std::optional<std::time_t> time() const noexcept {
    const year_month_day date{std::chrono::year(year), std::chrono::month(month + 1),
                              std::chrono::day(static_cast<unsigned>(day))};
    // Some minutes have a leap second.
    if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
    return (sys_days(date) + hours(hour) + minutes(minute) + seconds(second))
        .time_since_epoch()
        .count();
  }
};

}  // namespace

std::array<char, date_bytes> write_date(std::time_t time) noexcept {
  const sys_seconds at = std::clamp(sys_seconds(seconds(time)), first, last);
  const sys_days day = floor<std::chrono::days>(at);
  const year_month_day date(day);
  const hh_mm_ss clock(at - day);
  std::array<char, date_bytes> written;
  char* to = written.data();
  const auto text = [&](std::string_view name) { to = std::copy(name.begin(), name.end(), to); };
  const auto number = [&](std::int64_t value, int digits) {
    for (int i = digits - 1; i >= 0; --i, value /= 10) to[i] = static_cast<char>('0' + value % 10);
    to += digits;
  };
  text(days[weekday(day).c_encoding()].substr(0, short_name));
  text(", ");
  number(unsigned{date.day()}, 2);
  text(" ");
  text(months[unsigned{date.month()} - 1]);
  text(" ");
  number(int{date.year()}, 4);
  text(" ");
  number(clock.hours().count(), 2);
  text(":");
  number(clock.minutes().count(), 2);
  text(":");
  number(clock.seconds().count(), 2);
  text(" GMT");
  return written;
}

std::optional<std::time_t> read_date(std::string_view text, std::time_t now) noexcept {
  reader from(text);
  parts date;
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) {  // the form of asctime
    from.one_of(days, short_name);
    from.word(" ");
    date.month = from.one_of(months, short_name);
    from.word(" ");
    date.day = from.number(2, true);
    from.word(" ");
    date.read_time(from);
    from.word(" ");
    date.year = from.number(4);
    return from.is_whole() ? date.time() : std::nullopt;
  }
  const bool is_old = comma != short_name;  // the form of RFC 850
  from.one_of(days, is_old ? std::string_view::npos : short_name);
  from.word(", ");
  date.day = from.number(2);
  from.word(is_old ? "-" : " ");
  date.month = from.one_of(months, short_name);
  from.word(is_old ? "-" : " ");
  date.year = from.number(is_old ? 2 : 4);
  from.word(" ");
  date.read_time(from);
  from.word(" GMT");
  if (!from.is_whole()) return std::nullopt;
  if (is_old) {
    const int this_year =
        int{year_month_day(floor<std::chrono::days>(sys_seconds(seconds(now)))).year()};
    date.year += this_year - this_year % 100;
    if (date.year > this_year + 50) date.year -= 100;
  }
  return date.time();
}

TROUPE_NOINLINE std::string_view date_line() {
  struct cache {
    std::time_t second = -1;
    std::array<char, 6 + date_bytes + 2> line{'D', 'a', 't', 'e', ':', ' '};
  };
  thread_local cache kept;
  const std::time_t now = kit::wall_now();
  if (now != kept.second) {
    kept.second = now;
    const std::array<char, date_bytes> date = write_date(kept.second);
    *std::copy(date.begin(), date.end(), kept.line.begin() + 6) = '\r';
    kept.line.back() = '\n';
  }
  return {kept.line.data(), kept.line.size()};
}

}  // namespace troupe::http
