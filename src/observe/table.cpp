#include <algorithm>
#include <cstdint>
#include <string_view>

#include "observe/kinds.hpp"
#include "observe/output.hpp"
#include "observe/ring.hpp"
#include "observe/write.hpp"

namespace troupe::observe {
namespace {

constexpr std::size_t threads_max = 256;  // in one table: main and the workers, then the youngest

std::uint64_t kind_of(const event_data& one) noexcept {
  return kind_and_message::kind_in(one.kind);
}

// The next event of a thread that is not printed yet.
struct place {
  const ring* of = nullptr;
  std::uint64_t at = 0, end = 0;
  event_data next{};
  bool there = false;

  void advance() noexcept {
    there = false;
    while (!there && at < end) there = of->events.read(at++, next) && kind_of(next) < kinds.size();
  }
};

// Static, because the stack of a signal handler may be small. One table at a time.
place places[threads_max];

class table {
 public:
  table(int fd, const tick_scale& began) noexcept : to_(fd), began_(began) {}

  bool write() noexcept {
    // Newest first. A thread that makes its ring at the same time appears in the next table.
    const ring* const newest = first_ring();
    for (const bool lasts : {true, false}) {
      for (const ring* one = newest; one != nullptr; one = one->next) {
        // order: relaxed  decides which threads with events are in the table
        if (one->lasts.load(std::memory_order_relaxed) == lasts) take_in(*one);
      }
    }
    to_ << "Thread            Queued   Idle Blocked      Time (ms)  Event\n";
    for (;;) {
      place* first = nullptr;
      for (std::size_t i = 0; i < count_; ++i) {
        if (places[i].there && (first == nullptr || places[i].next.ticks < first->next.ticks))
          first = &places[i];
      }
      if (first == nullptr) break;
      add(*first->of, first->next);
      first->advance();
    }
    if (lost_ != 0) to_ << lost_ << " older events were overwritten\n";
    if (left_out_ != 0) {
      to_ << left_out_ << " other threads were left out: a table has " << std::uint64_t{threads_max}
          << ", main and the workers, and then the youngest\n";
    }
    to_.flush();
    return !to_.failed();
  }

 private:
  void take_in(const ring& of) noexcept {
    const std::uint64_t end = of.events.written();
    if (end == of.printed) return;
    if (count_ == threads_max) {
      ++left_out_;
      return;
    }
    place& here = places[count_++];
    here.of = &of;
    here.end = end;
    here.at = std::max(ring::events_of_thread::oldest(end), of.printed);
    lost_ += here.at - of.printed;
    of.printed = end;
    here.advance();
  }

  void add(const ring& of, const event_data& one) noexcept {
    const auto kind = static_cast<event>(kind_of(one));
    const kind_of_event& is = kinds[kind_of(one)];
    if (kind == event::lazy_queued) ++queued_;
    if (queued_ != 0 && (kind == event::lazy_taken || kind == event::lazy_stolen ||
                         (kind == event::lazy_inline && lazy_event::unpacked(one.id).was_queued)))
      --queued_;
    if (kind == event::park_begin) ++idle_;
    if (idle_ != 0 && kind == event::park_end) --idle_;
    if (kind == event::asleep_begin) ++blocked_;
    if (blocked_ != 0 && kind == event::asleep_end) --blocked_;
    to_.right(of.number, 4) << ' ';
    to_.left(of.name, 13);
    to_.right(queued_, 6);
    to_.right(idle_, 7);
    to_.right(blocked_, 8) << ' ';
    const auto ns = static_cast<std::uint64_t>(now_.ns_since(began_, one.ticks));
    to_.right(ns / 1'000'000, 7) << '.';
    to_.digits(ns % 1'000'000, 6) << "  ";
    const char* what = reinterpret_cast<const char*>(static_cast<std::uintptr_t>(one.what));
    to_ << is.name << (what == nullptr || *is.name == '\0' ? "" : " ");
    if (what != nullptr) to_.visible(what);
    if (is.when != phase::instant) to_ << (is.when == phase::begin ? " begins" : " ends");
    if (is.id == lazy_id) {
      const auto lazy = lazy_event::unpacked(one.id);
      to_ << " (lazy " << std::uint64_t{lazy.number} << " of line " << std::uint64_t{lazy.line}
          << ')';
    } else if (is.id != nullptr) {
      to_ << " (" << is.id << ' ';
      to_.signed_number(one.id) << ')';
    }
    to_ << '\n';
  }

  output to_;
  const tick_scale& began_;
  const tick_scale now_;
  std::size_t count_ = 0;
  std::uint64_t queued_ = 0, idle_ = 0, blocked_ = 0, lost_ = 0, left_out_ = 0;
};

}  // namespace

bool write_table(int fd, const tick_scale& began) noexcept { return table(fd, began).write(); }

}  // namespace troupe::observe
