#include "sched/exploring/story_listener.hpp"

#include <link.h>
#include <unwind.h>

#include <array>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::sched::exploring {
namespace {

// The library's own calls of a message are about ten where nothing is inlined.
constexpr std::size_t callers_max = 40;

struct raw_callers {
  std::array<std::uintptr_t, callers_max> addresses{};
  std::size_t count = 0;
};

_Unwind_Reason_Code note_caller(_Unwind_Context* frame, void* noted) {
  auto& callers = *static_cast<raw_callers*>(noted);
  const std::uintptr_t address = _Unwind_GetIP(frame);
  if (address == 0 || callers.count == callers_max) return _URC_END_OF_STACK;
  callers.addresses[callers.count++] = address;
  return _URC_NO_REASON;
}

// The module in which an address lies. dladdr() would search all symbols of the module as well.
struct found_module {
  const std::uintptr_t address;
  std::uintptr_t base = 0;
  const char* name = nullptr;
};

int compare_module(::dl_phdr_info* module, std::size_t, void* searched) {
  auto& found = *static_cast<found_module*>(searched);
  for (const auto& segment : std::span(module->dlpi_phdr, module->dlpi_phnum)) {
    if (segment.p_type != PT_LOAD) continue;
    if (found.address - (module->dlpi_addr + segment.p_vaddr) >= segment.p_memsz) continue;
    found.base = module->dlpi_addr;
    found.name = module->dlpi_name;
    return 1;
  }
  return 0;
}

std::string path_of(const char* module) {
  std::error_code failed;
  if (*module == '\0') {
    static const std::string program =
        std::filesystem::read_symlink("/proc/self/exe", failed).string();
    return program;
  }
  const std::filesystem::path whole = std::filesystem::absolute(module, failed);
  return failed ? std::string(module) : whole.string();
}

}  // namespace

std::string without_qualifiers(std::string text) {
  for (const std::string_view part : {"{anonymous}::", "(anonymous namespace)::", "&"}) {
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos;) {
      // the '&' of a parameter's type has a meaning
      if (part == "&" && at != 0) break;
      text.erase(at, part.size());
    }
  }
  return text;
}

story_listener::story_listener(const execution& told, receiver receive)
    : listener{&hear, &hear_wait},
      told_(told),
      receive_(std::move(receive)),
      watched_before_(observe::is_watched(observe::watched::events)),
      outer_(observe::listener_here()) {
  observe::listen_here(this);
  observe::watch(observe::watched::events);
}

story_listener::~story_listener() {
  if (!watched_before_) observe::unwatch(observe::watched::events);
  observe::listen_here(outer_);
}

void story_listener::hear(listener& self, observe::event kind, const char* text,
                          std::uint64_t id) noexcept {
  auto& story = static_cast<story_listener&>(self);
  if (story.outer_ != nullptr) story.outer_->hear(*story.outer_, kind, text, id);
  try {
    story.pass(kind, text, id);
  } catch (const std::exception&) {  // out of memory: the story has a gap
  }
}

void story_listener::hear_wait(listener& self, std::uint64_t id, const char* text,
                               const char* whose, const char* file, std::uint32_t line) noexcept {
  auto& story = static_cast<story_listener&>(self);
  if (story.outer_ != nullptr) story.outer_->hear_wait(*story.outer_, id, text, whose, file, line);
  try {
    story_event event{.kind = story_kind::waits, .actor = id, .text = text};
    if (whose != nullptr) event.text += without_qualifiers(whose);
    if (line != 0) event.place = std::string(file) + ':' + std::to_string(line);
    story.receive_(event);
  } catch (const std::exception&) {  // as above
  }
}

void story_listener::pass(observe::event kind, const char* text, std::uint64_t id) {
  story_event event{.actor = id, .text = without_qualifiers(text == nullptr ? "" : text)};
  switch (kind) {
    case observe::event::spawned:
    case observe::event::turn_begin:
      event.kind = story_kind::spawned;
      break;
    case observe::event::sent:
      event.kind = story_kind::sent;
      event.callers = callers();
      break;
    case observe::event::handle_begin:
      event.kind = story_kind::begun;
      begin(event);
      break;
    case observe::event::handle_end:
      event.kind = story_kind::ended;
      break;
    case observe::event::timer:
      event.kind = story_kind::outside;
      event.text = "a timer";
      break;
    case observe::event::io_end:
      event.kind = story_kind::outside;
      event.text = "I/O";
      break;
    default:
      return;
  }
  receive_(event);
}

void story_listener::note_fault(const hold& happened) {
  receive_({.kind = story_kind::fault,
            .text = text_of_fault(happened),
            .callers = callers(),
            .turn = told_.turns});
}

void story_listener::begin(story_event& event) const {
  event.turn = told_.turns;
  if (told_.seen.empty()) return;
  event.id = told_.seen.back().id;
  event.ready_after = told_.seen.back().begun;
}

std::vector<code_address> story_listener::callers() {
  raw_callers raw;
  _Unwind_Backtrace(&note_caller, &raw);
  std::vector<code_address> found;
  found.reserve(raw.count);
  for (std::size_t i = 0; i < raw.count; ++i) {
    const std::uintptr_t call = raw.addresses[i] - 1;  // within the call and not behind it
    const auto known = known_calls_.find(call);
    if (known != known_calls_.end()) {
      found.push_back(known->second);
      continue;
    }
    found_module module{call};
    if (::dl_iterate_phdr(&compare_module, &module) == 0 || module.name == nullptr) continue;
    found.push_back({module_of(path_of(module.name)), call - module.base});
    known_calls_.emplace(call, found.back());
  }
  return found;
}

std::uint32_t story_listener::module_of(const std::string& path) {
  const auto [found, is_new] =
      modules_.try_emplace(path, static_cast<std::uint32_t>(modules_.size()));
  if (is_new) receive_({.kind = story_kind::module, .text = path});
  return found->second;
}

}  // namespace troupe::sched::exploring
