#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "base/text/json_text.hpp"
#include "observe/kinds.hpp"
#include "observe/output.hpp"
#include "observe/ring.hpp"
#include "observe/write.hpp"

namespace troupe::observe {
namespace {

constexpr std::size_t depth_max = 64;  // nested stretches; deeper ones are left out

std::string_view text_of(const event_data& entry) noexcept {
  const char* text = reinterpret_cast<const char*>(static_cast<std::uintptr_t>(entry.text));
  return text == nullptr ? std::string_view() : std::string_view(text);
}

using json = base::json_writer<output&>;

// Ends an event that gives a name to a thread or to the process.
void end_name(json& event, std::string_view kind, std::string_view name) noexcept {
  event.member("name", kind).key("args").open('{').member("name", name).close('}').close('}');
}

// Writes the events of one thread in Chrome's format. An arrow leads from the moment in which a
// message was sent to the stretch in which it is handled. Its number is the address of the message,
// which another message may have after that stretch has begun: viewers end an arrow there.
class thread_writer {
 public:
  thread_writer(output& out, const ring& thread, const tick_scale& began,
                const tick_scale& now) noexcept
      : out_(out), thread_(thread), began_(began), now_(now) {}

  void write() noexcept {
    json event = begin("M");
    end_name(event, "thread_name", thread_.name);
    const std::uint64_t written = thread_.events.written();
    const std::uint64_t oldest = ring::events_of_thread::oldest(written);
    for (std::uint64_t at = std::max(oldest, thread_.first); at < written; ++at) {
      event_data entry;
      if (thread_.events.read(at, entry) && kind_of(entry) < kinds.size()) add(entry);
    }
    // Closes stretches that have not ended.
    while (depth_ != 0) close(depth_ - 1, now_.ticks);
  }

 private:
  void add(const event_data& entry) noexcept {
    switch (kinds[kind_of(entry)].when) {
      case phase::begin:
        if (depth_ < depth_max) open_[depth_] = entry;
        ++depth_;
        break;
      case phase::end:
        end(entry);
        break;
      case phase::instant:
        begin("i", entry).member("s", "t").close('}');
        add_arrow("s", entry);
        break;
    }
  }

  // Ends a stretch. The ends of stretches inside it may be missing.
  void end(const event_data& entry) noexcept {
    std::size_t at = depth_;
    while (at > depth_max || (at != 0 && kind_of(open_[at - 1]) + 1 != kind_of(entry))) {
      if (at > depth_max) {
        --depth_;
        return;
      }
      --at;
    }
    if (at == 0) return;  // it began before the oldest event
    while (depth_ >= at) close(depth_ - 1, entry.ticks);
  }

  void close(std::size_t which, std::uint64_t ticks) noexcept {
    --depth_;
    if (which >= depth_max) return;
    const event_data& entry = open_[which];
    const std::uint64_t from = ns(entry.ticks), until = ns(ticks);
    json stretch = begin("X", entry);
    add_us(stretch, "dur", until > from ? until - from : 0);
    stretch.close('}');
    add_arrow("f", entry);  // behind its stretch, in which it ends
  }

  // One end of an arrow, if the event is of a message.
  void add_arrow(std::string_view end, const event_data& entry) noexcept {
    const std::uint64_t message = kind_and_message::message_in(entry.kind);
    if (message == 0) return;
    json arrow = begin(end);
    if (end == "f") arrow.member("bp", "e");
    add_us(arrow, "ts", ns(entry.ticks));
    arrow.member("cat", "message").member("name", "message").key("id").quoted(message).close('}');
  }

  // An event of this kind on a line of its own, to which members can be added.
  json begin(std::string_view kind) noexcept {
    out_ << ",\n";
    json event(out_);
    event.open('{').member("ph", kind).member("pid", 1).member("tid", thread_.number);
    return event;
  }

  json begin(std::string_view kind, const event_data& entry) noexcept {
    const kind_of_event& is = kinds[kind_of(entry)];
    const std::string_view text = text_of(entry);
    json event = begin(kind);
    add_us(event, "ts", ns(entry.ticks));
    event.member("cat", is.category).key("name").value_by([&](output& out) {
      out << '"';
      // The name of a stretch is its subject, so that viewers add up stretches with the same
      // subject.
      if (is.when == phase::instant || text.empty()) out << is.name;
      if (is.when == phase::instant && !text.empty() && *is.name != '\0') out << ' ';
      base::add_json_characters(out, text);
      out << '"';
    });
    if (is.id == nullptr) return event;
    event.key("args").open('{');
    if (is.id != lazy_id) {
      event.member(is.id, static_cast<std::int64_t>(entry.id));
    } else {
      const auto lazy = lazy_event::unpacked(entry.id);
      event.member(is.id, lazy.number).member("line", lazy.line);
    }
    event.close('}');
    return event;
  }

  static void add_us(json& event, std::string_view name, std::uint64_t ns) noexcept {
    event.key(name).value_by([ns](output& out) { out.thousandths(ns); });
  }

  std::uint64_t ns(std::uint64_t ticks) const noexcept {
    return static_cast<std::uint64_t>(now_.ns_since(began_, ticks));
  }

  output& out_;
  const ring& thread_;
  const tick_scale& began_;
  const tick_scale& now_;
  std::size_t depth_ = 0;
  event_data open_[depth_max];
};

}  // namespace

void chrome_writer::begin(output& out) noexcept {
  out << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  json event(out);
  event.open('{').member("ph", "M").member("pid", 1);
  end_name(event, "process_name", ::program_invocation_short_name);
}

void chrome_writer::add(output& out, const ring& thread) noexcept {
  const std::uint64_t oldest = ring::events_of_thread::oldest(thread.events.written());
  if (oldest > thread.first) lost_ += oldest - thread.first;
  thread_writer(out, thread, began_, now_).write();
}

void chrome_writer::end(output& out) noexcept {
  out << "\n],\"otherData\":";
  json lost(out);
  lost.open('{').key("events overwritten by later ones").quoted(lost_).close('}');
  out << "}\n";
}

bool write_chrome(int fd, const tick_scale& began) noexcept {
  chrome_writer writer(began);
  output out(fd);
  writer.begin(out);
  for (const ring* thread = first_ring(); thread != nullptr; thread = thread->next)
    writer.add(out, *thread);
  writer.end(out);
  out.flush();
  return !out.failed();
}

}  // namespace troupe::observe
