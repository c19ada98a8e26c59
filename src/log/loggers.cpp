#include <array>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/threads/crash_stack.hpp"
#include "log/line.hpp"
#include "log/records.hpp"
#include "log/writer.hpp"
#include "troupe/log/log.hpp"

namespace troupe::log {
namespace {

constexpr std::array<std::string_view, 6> names{"trace",   "debug", "info",
                                                "warning", "error", "off"};

// Guards the list, and `has_own` of its members. Never destroyed: threads may log at exit().
std::mutex& registry_mutex() {
  static std::mutex& instance = *new std::mutex;
  return instance;
}

// Under the mutex. A name without a state gets a new state.
logger_state& find(std::string_view name) {
  if (name.empty()) return root_state;
  for (logger_state* logger = root_state.next; logger != nullptr; logger = logger->next) {
    if (logger->name == name) return *logger;
  }
  // order: relaxed  guarded by the mutex
  auto& added =
      *new logger_state(static_cast<level>(root_state.least.load(std::memory_order_relaxed)));
  added.name = *new std::string(name);
  added.next = root_state.next;
  root_state.next = &added;
  return added;
}

}  // namespace

constinit logger_state root_state{level::info};

logger::logger(std::string_view name) {
  std::lock_guard lock(registry_mutex());
  state_ = &find(name);
}

std::string_view name_of(level severity) noexcept {
  return names[static_cast<std::size_t>(severity)];
}

bool level_of(std::string_view text, level& to) noexcept {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != text) continue;
    to = static_cast<level>(i);
    return true;
  }
  return false;
}

void set_level(level least) { set_level({}, least); }

void set_level(std::string_view name, level least) {
  const auto number = static_cast<std::uint8_t>(least);
  std::lock_guard lock(registry_mutex());
  logger_state& chosen = find(name);
  // order: relaxed (both)  a thread may see it a little late
  chosen.least.store(number, std::memory_order_relaxed);
  chosen.has_own = true;
  if (&chosen != &root_state) return;
  for (logger_state* logger = root_state.next; logger != nullptr; logger = logger->next) {
    if (!logger->has_own) logger->least.store(number, std::memory_order_relaxed);
  }
}

std::vector<named_level> levels() {
  std::lock_guard lock(registry_mutex());
  std::vector<named_level> all;
  for (const logger_state* logger = &root_state; logger != nullptr; logger = logger->next) {
    // order: relaxed  guarded by the mutex
    all.push_back({std::string(logger->name),
                   static_cast<level>(logger->least.load(std::memory_order_relaxed))});
  }
  return all;
}

namespace {

// Returns null if lines are not kept, or memory is out.
std::unique_ptr<record> record_to_keep(const logger_state& by) noexcept {
  if (!kept_lines.is_kept()) return nullptr;
  std::unique_ptr<record> kept(new (std::nothrow) record);
  if (kept == nullptr) {
    kept_lines.drop();
  } else {
    kept->logger = by.name;
  }
  return kept;
}

}  // namespace

// Out of memory, the line is dropped.
TROUPE_NOINLINE void write(const logger_state& by, level severity, std::string_view text,
                           fields with) noexcept {
  base::make_crash_stack();  // so that the buffer is written though this thread's stack is used up
  writer& destination = writer::get();
  std::unique_ptr<record> kept = record_to_keep(by);
  try {
    line text_line(destination.form_now(), kept.get());
    text_line.begin(severity, by.name, text);
    for (const field& extra : with) text_line.add(extra);
    text_line.end();
    destination.add(text_line.text());
    if (kept != nullptr) kept_lines.put(std::move(kept));
  } catch (...) {
    destination.drop();
    if (kept != nullptr) kept_lines.drop();
  }
}

void configure(options chosen) { writer::get().configure(std::move(chosen)); }
void reopen() noexcept { writer::get().reopen(); }
void flush() noexcept { writer::get().flush(); }
counts count() noexcept { return writer::get().count(); }

}  // namespace troupe::log
