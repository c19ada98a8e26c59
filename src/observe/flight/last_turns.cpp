#include "observe/flight/last_turns.hpp"

#include <algorithm>
#include <new>
#include <string_view>

#include "observe/kinds.hpp"
#include "observe/ticks.hpp"

namespace troupe::observe {
namespace {

std::uint16_t number_in(const turn_record& record) noexcept {
  return static_cast<std::uint16_t>(record.code >> subjects::shift);
}
bool is_time(const turn_record& record) noexcept { return number_in(record) == subjects::time; }
bool is_high(const turn_record& record) noexcept {
  return number_in(record) == subjects::time_high;
}

}  // namespace

turns_of_thread::turns_of_thread(const flight_recorder& recorder, std::uint64_t now_ticks) noexcept
    : recorder_(&recorder), at_(recorder.ring().written()), begun_(now_ticks), later_(now_ticks) {
  take_time(at_, {});
  advance();
}

bool turns_of_thread::read(std::uint64_t at, turn_record& to) noexcept {
  if (recorder_->ring().read(at, to)) return true;
  overtaken_ = true;
  return false;
}

// A time's high part is right behind it, if it is new. Without it the time is the newest one that
// fits. A thread that records while it is read may have written times behind the reader's moment,
// and these only: below an older time each time is older.
std::uint64_t turns_of_thread::ticks_of(const turn_record& time) const noexcept {
  constexpr unsigned bits = flight_recorder::time_bits + flight_recorder::tick_shift;
  constexpr std::uint64_t turn = std::uint64_t{1} << bits;
  const std::uint64_t low =
      (std::uint64_t{time.code & subjects::time_low_mask} << flight_recorder::number_bits |
       time.number)
      << flight_recorder::tick_shift;
  if (high_) return *high_ << bits | low;
  const std::uint64_t meanwhile = later_ == begun_ ? turn / 256 : 0;  // half a minute
  const std::uint64_t fits = (later_ & ~(turn - 1)) | low;
  return fits <= later_ + meanwhile || fits < turn ? fits : fits - turn;
}

// The records below `at` are older than `later_`: finds how many there are up to the time before.
void turns_of_thread::take_time(std::uint64_t at, const turn_record& record) noexcept {
  open_ = !is_time(record);
  if (!open_) later_ = std::min(later_, ticks_of(record));
  high_.reset();
  group_ = done_ = 0;
  earlier_ = later_;
  constexpr std::uint64_t looks_max = 2 * flight_recorder::turns_a_time_max;
  const std::uint64_t oldest = recorder_->ring().oldest(recorder_->ring().written());
  std::uint64_t below = at;
  for (std::uint64_t looks = 0; looks < looks_max && below > oldest; ++looks) {
    turn_record seen;
    if (!recorder_->ring().read(--below, seen)) return;
    if (is_high(seen)) {
      high_ = seen.number;
    } else if (is_time(seen)) {
      earlier_ = std::min(later_, ticks_of(seen));
      break;
    } else {
      ++group_;
    }
  }
  high_.reset();
}

void turns_of_thread::give_time() noexcept {
  // The newest of a group ends at the time above, the others at even distances.
  const std::uint64_t each = group_ == 0 ? 0 : (later_ - earlier_) / group_;
  current_.ticks = later_ - std::min(later_, each * done_);
  current_.is_estimate = open_ || done_ != 0;
  ++done_;
}

void turns_of_thread::advance() noexcept {
  there_ = false;
  for (;;) {
    turn_record record;
    if (at_ == 0 || at_ - 1 < recorder_->ring().oldest(recorder_->ring().written()) ||
        !read(at_ - 1, record))
      return;
    --at_;
    if (is_high(record)) {
      high_ = record.number;
      continue;
    }
    if (is_time(record)) {
      take_time(at_, record);
      continue;
    }
    current_.thread = recorder_;
    current_.is = subjects::of(number_in(record));
    current_.is_other = number_in(record) == subjects::other;
    current_.number = record.number;
    current_.messages = record.code & flight_recorder::messages_max;
    give_time();
    there_ = true;
    return;
  }
}

last_turns::last_turns(std::uint64_t now_ticks) noexcept {
  for (const flight_recorder* recorder = flight_recorder::first(); recorder != nullptr;
       recorder = recorder->next()) {
    if (count_ == threads_max) {
      ++left_out_;
      continue;
    }
    threads_[count_++] = turns_of_thread(*recorder, now_ticks);
  }
}

bool last_turns::next(last_turn& to) noexcept {
  turns_of_thread* newest = nullptr;
  for (std::size_t i = 0; i < count_; ++i) {
    if (threads_[i].there() && (newest == nullptr || threads_[i].get().ticks > newest->get().ticks))
      newest = &threads_[i];
  }
  if (newest == nullptr) return false;
  to = newest->get();
  newest->advance();
  return true;
}

bool last_turns::was_overtaken() const noexcept {
  return std::any_of(threads_, threads_ + count_,
                     [](const turns_of_thread& thread) { return thread.was_overtaken(); });
}

namespace {

std::string_view file_name(const char* path) noexcept {
  const std::string_view all(path);
  return all.substr(all.rfind('/') + 1);
}

void write_event(output& out, const last_turn& turn) noexcept {
  const kind_of_event& is = kinds[static_cast<std::size_t>(turn.is->kind)];
  out << is.name << (turn.is->name == nullptr || *is.name == '\0' ? "" : " ");
  if (turn.is->name != nullptr) out.visible(turn.is->name);
  if (is.when == phase::begin) out << " begins";
  if (is.when == phase::end) out << " ends";
  if (is.id == nullptr) return;
  out << " (" << is.id << ' ';
  // A result may be negative, and was cut to 32 bits.
  out.signed_number(
      static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(turn.number)}));
  out << ')';
}

}  // namespace

void write_turn(output& out, const last_turn& turn) noexcept {
  if (turn.is != nullptr && turn.is->kind == event::suspended) {
    out << "  #" << std::uint64_t{turn.number} << " waits at ";
    out.visible(file_name(turn.is->name)) << ':' << std::uint64_t{turn.is->line};
    return;
  }
  if (!turn.is_turn()) return write_event(out, turn);
  out << '#' << std::uint64_t{turn.number} << ' ';
  if (turn.is != nullptr) {
    out.visible(turn.is->name);
  } else {
    out << (turn.is_other ? "another handler" : "the runtime's own message");
  }
  if (turn.messages == 1) return;
  out << ", " << std::uint64_t{turn.messages}
      << (turn.messages == flight_recorder::messages_max ? " messages or more" : " messages");
}

namespace {

// Static, because the stack of a signal handler may be small.
alignas(last_turns) constinit std::byte room[sizeof(last_turns)]{};

void write_running(output& out) noexcept {
  for (const flight_recorder* recorder = flight_recorder::first(); recorder != nullptr;
       recorder = recorder->next()) {
    const running_now now = recorder->is_in_use() ? recorder->running() : running_now();
    if (now.handler == nullptr) continue;
    out << "               ";
    out.left(recorder->thread_name(), 16) << "runs ";
    if (now.actor != 0) out << '#' << now.actor << ' ';
    out.visible(now.handler) << '\n';
  }
}

}  // namespace

bool write_last_turns(int fd, std::size_t lines) noexcept {
  output out(fd);
  const tick_scale now;
  const double ns_a_tick = flight_recorder::best_rate(now);
  out << "troupe: the last turns, newest first\n   Before (ms)  Thread          Turn\n";
  write_running(out);
  auto& turns = *::new (static_cast<void*>(room)) last_turns(now.ticks);
  last_turn turn;
  for (std::size_t written = 0; written < lines && turns.next(turn); ++written) {
    const auto before = static_cast<std::uint64_t>(
        static_cast<double>(now.ticks - std::min(now.ticks, turn.ticks)) * ns_a_tick);
    out.right(before / 1'000'000, 7) << '.';
    out.digits(before / 1'000 % 1'000, 3) << (turn.is_estimate ? "~   " : "    ");
    out.left(turn.thread->thread_name(), 16);
    write_turn(out, turn);
    out << '\n';
  }
  if (turns.left_out() != 0) out << std::uint64_t{turns.left_out()} << " threads were left out\n";
  out.flush();
  return !out.failed();
}

}  // namespace troupe::observe
