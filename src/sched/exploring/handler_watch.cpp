#include "sched/exploring/handler_watch.hpp"

#include <exception>
#include <string>

#include "sched/exploring/seen_file.hpp"
#include "sched/exploring/story_listener.hpp"
#include "troupe/sched/message.hpp"

namespace troupe::sched::exploring {

handler_watch::handler_watch(execution& watched)
    : listener{&hear, [](listener&, std::uint64_t, const char*, const char*, const char*,
                         std::uint32_t) noexcept {}},
      execution_(watched),
      watched_before_(observe::is_watched(observe::watched::events)) {
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
    } else if (kind == observe::event::spawned || kind == observe::event::ended) {
      watch.last_.erase(id);
    }
  } catch (const std::exception&) {  // out of memory: the coverage has a gap
  }
}

void handler_watch::begin(const char* handler, std::uint64_t actor) {
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
