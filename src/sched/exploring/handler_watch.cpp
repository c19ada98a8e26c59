#include "sched/exploring/handler_watch.hpp"

#include <exception>
#include <string>

#include "sched/exploring/seen_file.hpp"
#include "sched/exploring/story_listener.hpp"
#include "troupe/sched/message.hpp"

namespace troupe::sched::exploring {
namespace {

// The state is a sum: it depends on no order, and is the same again when as much was taken from it
// as was added. Within one execution an address names a text.
std::uint64_t part_of_state(const char* text, std::uint64_t number = 0) noexcept {
  return child_name(reinterpret_cast<std::uintptr_t>(text), static_cast<std::uint32_t>(number)) | 1;
}

}  // namespace

handler_watch::handler_watch(execution& watched)
    : listener{&hear, &hear_wait},
      execution_(watched),
      watched_before_(observe::is_watched(observe::watched::events)) {
  execution_.is_watched = true;
  observe::listen_here(this);
  observe::watch(observe::watched::events);
}

handler_watch::~handler_watch() {
  if (!watched_before_) observe::unwatch(observe::watched::events);
  observe::listen_here(nullptr);
}

void handler_watch::hear(listener& self, observe::event kind, const char* text,
                         std::uint64_t id) noexcept {
  auto& watch = static_cast<handler_watch&>(self);
  try {
    if (kind == observe::event::handle_begin && text != nullptr) {
      watch.begin(text, id);
    } else if (kind == observe::event::sent && text != nullptr) {
      watch.send(text, id);
    } else if (kind == observe::event::spawned || kind == observe::event::ended) {
      watch.last_.erase(id);  // another actor may have this number later
    }
  } catch (const std::exception&) {  // out of memory: the coverage has a gap
  }
}

void handler_watch::hear_wait(listener& self, std::uint64_t actor, const char* event, const char*,
                              const char* file, std::uint32_t line) noexcept {
  auto& watch = static_cast<handler_watch&>(self);
  const std::uint64_t part = part_of_state(line == 0 ? event : file, line);
  try {
    watch.waits_[actor].push_back(part);
    watch.execution_.state += part;
  } catch (const std::exception&) {  // out of memory: the state does not come again
  }
}

void handler_watch::send(const char* handler, std::uint64_t actor) {
  ++sent_[{actor, handler}];
  execution_.state += part_of_state(handler);
}

void handler_watch::begin(const char* handler, std::uint64_t actor) {
  execution_.last_handler = handler;
  take(handler, actor);
  order(handler, actor);
}

// A handler begins by a message, or its next part by the end of a wait.
void handler_watch::take(const char* handler, std::uint64_t actor) {
  if (const auto mail = sent_.find({actor, handler}); mail != sent_.end()) {
    execution_.state -= part_of_state(handler);
    if (--mail->second == 0) sent_.erase(mail);
    return;
  }
  const auto waits = waits_.find(actor);
  if (waits == waits_.end()) return;
  execution_.state -= waits->second.front();
  waits->second.pop_front();
  if (waits->second.empty()) waits_.erase(waits);
}

void handler_watch::order(const char* handler, std::uint64_t actor) {
  if (handler == described_as_constructor) return;  // no schedule runs it later
  const char*& last = last_[actor];
  const char* const before = std::exchange(last, handler);
  if (before == nullptr || before == handler || !known_.emplace(before, handler).second) return;
  handler_order order{without_qualifiers(before), without_qualifiers(handler)};
  if (order.first == order.second) return;
  if (execution_.on_seen) execution_.on_seen(line_of(order));
  execution_.orders.insert(std::move(order));
}

}  // namespace troupe::sched::exploring
