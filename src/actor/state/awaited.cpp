#include "actor/state/awaited.hpp"

#include <string_view>

#include "troupe/actor/method_message.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/side_call.hpp"
#include "troupe/task/when.hpp"

namespace troupe::actor {

namespace {

// All folders of include/troupe (tests/tidy/layers.py).
constexpr std::string_view header_folders[] = {
    "actor",   "asio",     "base",     "cluster",  "context",
    "cron",    "database", "dns",      "durable",  "durable_postgres",
    "http",    "io",       "jobs",     "json",     "kit",
    "log",     "memory",   "nats",     "observe",  "observe_page",
    "otlp",    "parallel", "postgres", "protocol", "reflect",
    "runtime", "sched",    "sqlite",   "streams",  "sync",
    "task",    "tls"};

// Whether the file is the library's. A message must name a line that the user can change:
// line_in_use goes from a coroutine of the library to the one that awaits it, up to one of the
// user's. The library's own coroutines lie in headers, in a folder named like a layer, and in the
// folder of sources that holds this file.
bool is_file_of_library(std::string_view file) noexcept {
  static constexpr std::string_view own_file = __FILE__, own = "actor/state/awaited.cpp";
  if (own_file.ends_with(own) && file.starts_with(own_file.substr(0, own_file.size() - own.size())))
    return !file.ends_with(".test.cpp");
  for (std::size_t at = file.find("troupe/"); at != std::string_view::npos;
       at = file.find("troupe/", at + 1)) {
    const std::string_view rest = file.substr(at + 7);
    if (!rest.ends_with(".hpp")) return false;
    for (const std::string_view folder : header_folders) {
      const std::size_t length = folder.size();
      if (rest.starts_with(folder) && rest.size() > length && rest[length] == '/') return true;
    }
  }
  return false;
}

std::source_location line_in_use(const tasks::suspension& wait) noexcept {
  for (const tasks::coroutine* at = wait.waiter; at != nullptr;) {
    const std::source_location place = tasks::location_of(at->awaits_at);
    if (at->awaits_at != nullptr && !is_of_library(place)) return place;
    const tasks::coroutine* const above = at->waiting_parent();
    at = above != nullptr ? above : tasks::side_call::awaits(*at->call);
  }
  return {};  // the library's coroutine was spawned directly
}

}  // namespace

bool is_of_library(const std::source_location& where) noexcept {
  return is_file_of_library(where.file_name());
}

bool is_locked_out(const tasks::suspension& wait, tasks::lock_holder& holder) noexcept {
  return wait.act(const_cast<tasks::suspension*>(&wait), &holder, message_act::holder) != nullptr;
}

namespace {

awaited lock_in_words(const std::source_location& at, const tasks::lock_holder& holder) {
  awaited words{at, holder.is_child ? "a child of its scope in " : "a lock held by ",
                holder.method(nullptr, nullptr, message_act::describe), nullptr};
  const std::source_location since = tasks::location_of(holder.at);
  if (!is_of_library(since)) words.held_since = since;
  if (!holder.is_child) words.held_by = holder.by;
  return words;
}

}  // namespace

awaited look_at(const tasks::suspension& wait) {
  const std::source_location at = line_in_use(wait);
  if (tasks::lock_holder holder;
      wait.for_lock && is_locked_out(wait, holder) && holder.method != nullptr)
    return lock_in_words(at, holder);
  const tasks::ask_link* const asked = tasks::asked_by(wait);
  if (asked == nullptr)
    return {at, wait.act(const_cast<tasks::suspension*>(&wait), nullptr, message_act::describe), "",
            nullptr};
  if (asked->kind == tasks::ask_link::subject::job)
    return {at, "the value of ", asked->name(), nullptr};
  const char* const description =
      asked->kind == tasks::ask_link::subject::permit   ? "room in the mailbox of "
      : asked->kind == tasks::ask_link::subject::object ? "the object of "
                                                        : "the answer of ";
  return {at, description, asked->method(nullptr, nullptr, message_act::describe), asked->asked};
}

std::string place_of(const std::source_location& where) {
  const std::string path = where.file_name();
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(where.line());
}

bool waits_for_others(const tasks::async_call* suspended) noexcept {
  if (suspended == nullptr) return true;
  const tasks::suspension* const wait = suspended->awaited;
  return wait != nullptr && !wait->limited &&
         (wait->for_lock || tasks::awaited_by(*wait) != nullptr ||
          tasks::group::of(*wait) != nullptr || tasks::side_wait::of(*wait) != nullptr);
}

}  // namespace troupe::actor
