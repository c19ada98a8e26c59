#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "observe/kinds.hpp"
#include "observe/output.hpp"
#include "observe/ring.hpp"
#include "observe/write.hpp"

namespace troupe::observe {
namespace {

constexpr std::size_t depth_max = 64;  // nested stretches; deeper ones are left out

std::string_view text_of(const event_data& one) noexcept {
  const char* what = reinterpret_cast<const char*>(static_cast<std::uintptr_t>(one.what));
  return what == nullptr ? std::string_view() : std::string_view(what);
}

std::uint64_t kind_of(const event_data& one) noexcept {
  return kind_and_message::kind_in(one.kind);
}

// Writes the events of one thread in Chrome's format. An arrow leads from the moment in which a
// message was sent to the stretch in which it is handled. Its number is the address of the message,
// which another message may have after that stretch has begun: viewers end an arrow there.
class thread_writer {
 public:
  thread_writer(output& to, const ring& of, const tick_scale& began, const tick_scale& now) noexcept
      : to_(to), of_(of), began_(began), now_(now) {}

  void write() noexcept {
    to_ << ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":" << std::uint64_t{of_.number}
        << ",\"name\":\"thread_name\",\"args\":{\"name\":\"";
    to_.quoted(of_.name) << "\"}}";
    const std::uint64_t written = of_.events.written();
    const std::uint64_t oldest = ring::events_of_thread::oldest(written);
    for (std::uint64_t at = std::max(oldest, of_.first); at < written; ++at) {
      event_data one;
      if (of_.events.read(at, one) && kind_of(one) < kinds.size()) add(one);
    }
    // Closes stretches that have not ended.
    while (depth_ != 0) close(depth_ - 1, now_.ticks);
  }

 private:
  void add(const event_data& one) noexcept {
    switch (kinds[kind_of(one)].when) {
      case phase::begin:
        if (depth_ < depth_max) open_[depth_] = one;
        ++depth_;
        break;
      case phase::end:
        end(one);
        break;
      case phase::instant:
        begin("i", one, one.ticks);
        to_ << ",\"s\":\"t\"}";
        add_arrow("s", one);
        break;
    }
  }

  // Ends a stretch. The ends of stretches inside it may be missing.
  void end(const event_data& one) noexcept {
    std::size_t at = depth_;
    while (at > depth_max || (at != 0 && kind_of(open_[at - 1]) + 1 != kind_of(one))) {
      if (at > depth_max) {
        --depth_;
        return;
      }
      --at;
    }
    if (at == 0) return;  // it began before the oldest event
    while (depth_ >= at) close(depth_ - 1, one.ticks);
  }

  void close(std::size_t which, std::uint64_t ticks) noexcept {
    --depth_;
    if (which >= depth_max) return;
    const event_data& one = open_[which];
    begin("X", one, one.ticks);
    const std::uint64_t from = ns(one.ticks), until = ns(ticks);
    to_ << ",\"dur\":";
    to_.thousandths(until > from ? until - from : 0) << '}';
    add_arrow("f\",\"bp\":\"e", one);  // behind its stretch, in which it ends
  }

  // One end of an arrow, if the event is of a message.
  void add_arrow(std::string_view end, const event_data& one) noexcept {
    const std::uint64_t message = kind_and_message::message_in(one.kind);
    if (message == 0) return;
    to_ << ",\n{\"ph\":\"" << end << "\",\"pid\":1,\"tid\":" << std::uint64_t{of_.number}
        << ",\"ts\":";
    to_.thousandths(ns(one.ticks))
        << ",\"cat\":\"message\",\"name\":\"message\",\"id\":\"" << message << "\"}";
  }

  void begin(std::string_view kind, const event_data& one, std::uint64_t ticks) noexcept {
    const kind_of_event& is = kinds[kind_of(one)];
    const std::string_view text = text_of(one);
    to_ << ",\n{\"ph\":\"" << kind << "\",\"pid\":1,\"tid\":" << std::uint64_t{of_.number}
        << ",\"ts\":";
    to_.thousandths(ns(ticks)) << ",\"cat\":\"" << is.category << "\",\"name\":\"";
    // The name of a stretch is its subject, so that viewers add up stretches with the same subject.
    if (is.when == phase::instant || text.empty()) to_ << is.name;
    if (is.when == phase::instant && !text.empty() && *is.name != '\0') to_ << ' ';
    to_.quoted(text) << '"';
    if (is.id == nullptr) return;
    to_ << ",\"args\":{\"" << is.id << "\":";
    if (is.id != lazy_id) {
      to_.signed_number(one.id) << '}';
      return;
    }
    const auto of = lazy_event::unpacked(one.id);
    to_ << std::uint64_t{of.number} << ",\"line\":" << std::uint64_t{of.line} << '}';
  }

  std::uint64_t ns(std::uint64_t ticks) const noexcept {
    return static_cast<std::uint64_t>(now_.ns_since(began_, ticks));
  }

  output& to_;
  const ring& of_;
  const tick_scale& began_;
  const tick_scale& now_;
  std::size_t depth_ = 0;
  event_data open_[depth_max];
};

}  // namespace

void chrome_writer::begin(output& to) noexcept {
  to << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,\"name\":\"process_"
        "name\",\"args\":{\"name\":\"";
  to.quoted(::program_invocation_short_name) << "\"}}";
}

void chrome_writer::add(output& to, const ring& one) noexcept {
  const std::uint64_t oldest = ring::events_of_thread::oldest(one.events.written());
  if (oldest > one.first) lost_ += oldest - one.first;
  thread_writer(to, one, began_, now_).write();
}

void chrome_writer::end(output& to) noexcept {
  to << "\n],\"otherData\":{\"events overwritten by later ones\":\"" << lost_ << "\"}}\n";
}

bool write_chrome(int fd, const tick_scale& began) noexcept {
  chrome_writer writer(began);
  output to(fd);
  writer.begin(to);
  for (const ring* one = first_ring(); one != nullptr; one = one->next) writer.add(to, *one);
  writer.end(to);
  to.flush();
  return !to.failed();
}

}  // namespace troupe::observe
