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

// The next event of a thread that is not printed yet.
struct place {
  const ring* source = nullptr;
  std::uint64_t at = 0, end = 0;
  event_data next{};
  bool there = false;

  void advance() noexcept {
    there = false;
    while (!there && at < end)
      there = source->events.read(at++, next) && kind_of(next) < kinds.size();
  }
};

// Static, because the stack of a signal handler may be small. One table at a time.
place places[threads_max];

class table {
 public:
  table(int fd, const tick_scale& began) noexcept : out_(fd), began_(began) {}

  bool write() noexcept {
    // Newest first. A thread that makes its ring at the same time appears in the next table.
    const ring* const newest = first_ring();
    for (const bool lasts : {true, false}) {
      for (const ring* thread = newest; thread != nullptr; thread = thread->next) {
        // order: relaxed  decides which threads with events are in the table
        if (thread->lasts.load(std::memory_order_relaxed) == lasts) take_in(*thread);
      }
    }
    out_ << "Thread            Queued   Idle Blocked      Time (ms)  Event\n";
    for (;;) {
      place* first = nullptr;
      for (std::size_t i = 0; i < count_; ++i) {
        if (places[i].there && (first == nullptr || places[i].next.ticks < first->next.ticks))
          first = &places[i];
      }
      if (first == nullptr) break;
      add(*first->source, first->next);
      first->advance();
    }
    if (lost_ != 0) out_ << lost_ << " older events were overwritten\n";
    if (left_out_ != 0) {
      out_ << left_out_ << " other threads were left out: a table has "
           << std::uint64_t{threads_max} << ", main and the workers, and then the youngest\n";
    }
    out_.flush();
    return !out_.failed();
  }

 private:
  void take_in(const ring& thread) noexcept {
    const std::uint64_t end = thread.events.written();
    if (end == thread.printed) return;
    if (count_ == threads_max) {
      ++left_out_;
      return;
    }
    place& next = places[count_++];
    next.source = &thread;
    next.end = end;
    next.at = std::max(ring::events_of_thread::oldest(end), thread.printed);
    lost_ += next.at - thread.printed;
    thread.printed = end;
    next.advance();
  }

  void add(const ring& thread, const event_data& entry) noexcept {
    const auto kind = static_cast<event>(kind_of(entry));
    const kind_of_event& is = kinds[kind_of(entry)];
    if (kind == event::lazy_queued) ++queued_;
    if (queued_ != 0 && (kind == event::lazy_taken || kind == event::lazy_stolen ||
                         (kind == event::lazy_inline && lazy_event::unpacked(entry.id).was_queued)))
      --queued_;
    if (kind == event::park_begin) ++idle_;
    if (idle_ != 0 && kind == event::park_end) --idle_;
    if (kind == event::asleep_begin) ++blocked_;
    if (blocked_ != 0 && kind == event::asleep_end) --blocked_;
    out_.right(thread.number, 4) << ' ';
    out_.left(thread.name, 13);
    out_.right(queued_, 6);
    out_.right(idle_, 7);
    out_.right(blocked_, 8) << ' ';
    const auto ns = static_cast<std::uint64_t>(now_.ns_since(began_, entry.ticks));
    out_.right(ns / 1'000'000, 7) << '.';
    out_.digits(ns % 1'000'000, 6) << "  ";
    const char* text = reinterpret_cast<const char*>(static_cast<std::uintptr_t>(entry.text));
    out_ << is.name << (text == nullptr || *is.name == '\0' ? "" : " ");
    if (text != nullptr) out_.visible(text);
    if (is.when != phase::instant) out_ << (is.when == phase::begin ? " begins" : " ends");
    if (is.id == lazy_id) {
      const auto lazy = lazy_event::unpacked(entry.id);
      out_ << " (lazy " << std::uint64_t{lazy.number} << " of line " << std::uint64_t{lazy.line}
           << ')';
    } else if (is.id != nullptr) {
      out_ << " (" << is.id << ' ';
      out_.signed_number(entry.id) << ')';
    }
    out_ << '\n';
  }

  output out_;
  const tick_scale& began_;
  const tick_scale now_;
  std::size_t count_ = 0;
  std::uint64_t queued_ = 0, idle_ = 0, blocked_ = 0, lost_ = 0, left_out_ = 0;
};

}  // namespace

bool write_table(int fd, const tick_scale& began) noexcept { return table(fd, began).write(); }

}  // namespace troupe::observe
