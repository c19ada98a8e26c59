#include "sched/exploring/story_event.hpp"

#include <array>
#include <cstddef>
#include <sstream>
#include <string_view>

namespace troupe::sched::exploring {
namespace {

constexpr std::string_view story_head = "story";
constexpr std::array<std::string_view, 9> kinds{"module", "spawned", "sent",   "begun", "ended",
                                                "waits",  "outside", "broken", "fault"};

bool has_callers(story_kind kind) noexcept {
  return kind == story_kind::sent || kind == story_kind::fault;
}

void write_callers(std::ostream& line, const std::vector<code_address>& callers) {
  line << ' ' << callers.size() << std::hex;
  for (const code_address& caller : callers) line << ' ' << caller.module << ':' << caller.offset;
  line << std::dec;
}

void read_callers(std::istream& words, std::vector<code_address>& callers) {
  constexpr std::size_t callers_max = 1'000;
  std::size_t count = 0;
  words >> count;
  if (count > callers_max) words.setstate(std::ios::failbit);
  words >> std::hex;
  for (char colon = 0; words && count-- != 0;) {
    code_address& caller = callers.emplace_back();
    words >> caller.module >> colon >> caller.offset;
    if (colon != ':') words.setstate(std::ios::failbit);
  }
  words >> std::dec;
}

}  // namespace

std::string text_of_fault(const hold& happened) {
  const std::string run = std::to_string(happened.held.run + 1);
  const std::string nth = std::to_string(happened.held.nth);
  const bool has_name = happened.held.maker != program_name || happened.held.run != 0;
  const std::string call = has_name ? "call " + run + " of a storage" : "statement " + nth;
  switch (happened.injected) {
    case fault::cut:
      return "a connection was cut at its send " + run;
    case fault::lost:
      return "nothing arrived by a connection any more from its send " + run + " on";
    case fault::slow:
      return "send " + run + " of a connection arrived 10 s later";
    case fault::slow_file:
      return "operation " + nth + " of files began 10 s later";
    case fault::write_fails:
      return "write " + nth + " of files failed";
    case fault::storage_fails:
      return call + " failed";
    case fault::storage_cut:
      return call + " lost its connection before it had an effect";
    case fault::storage_slow:
      return call + " began 10 s later";
    case fault::storage_stalls:
      return call + " waited 15 min and lost its connection";
    case fault::commit_lost:
      return (has_name ? "commit " + run + " of a storage" : "commit " + nth) +
             " was stored, and its answer was lost";
    case fault::none:
      break;
  }
  return "";
}

std::string line_of(const story_event& event) {
  std::ostringstream line;
  line << story_head << ' ' << kinds[static_cast<std::size_t>(event.kind)] << ' ' << event.actor;
  if (has_callers(event.kind)) write_callers(line, event.callers);
  if (event.kind == story_kind::fault) line << ' ' << event.turn;
  if (event.kind == story_kind::begun) {
    line << ' ' << event.turn << ' ' << std::hex << event.id.maker << std::dec << ' '
         << event.id.nth << ' ' << event.id.run << ' ' << event.ready_after;
  }
  line << ' ' << event.text;
  if (event.kind == story_kind::waits) line << '\t' << event.place;
  return line.str();
}

bool read_event(const std::string& line, story_event& event) {
  std::istringstream words(line);
  std::string first, kind;
  words >> first >> kind >> event.actor;
  if (!words || first != story_head) return false;
  std::size_t which = 0;
  while (which < kinds.size() && kinds[which] != kind) ++which;
  if (which == kinds.size()) return false;
  event.kind = static_cast<story_kind>(which);
  event.callers.clear();
  if (has_callers(event.kind)) read_callers(words, event.callers);
  if (event.kind == story_kind::fault) words >> event.turn;
  if (event.kind == story_kind::begun) {
    words >> event.turn >> std::hex >> event.id.maker >> std::dec >> event.id.nth >> event.id.run >>
        event.ready_after;
  }
  if (!words) return false;
  words.get();  // the space before the text
  event.text.clear();
  event.place.clear();
  if (event.kind == story_kind::waits) {
    std::getline(words, event.text, '\t');
    std::getline(words, event.place);
  } else {
    std::getline(words, event.text);
  }
  return true;
}

}  // namespace troupe::sched::exploring
