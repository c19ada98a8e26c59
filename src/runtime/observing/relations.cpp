#include "runtime/observing/relations.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "actor/counting/actor_scan.hpp"
#include "actor/counting/message_counts.hpp"
#include "actor/waits/suspended.hpp"
#include "observe/ticks.hpp"
#include "runtime/observing/summary.hpp"
#include "runtime/runtime_core.hpp"

namespace troupe::observing {
namespace {

// Calls beyond these are counted, but not looked at: the first ones show the same kinds of waits.
constexpr std::size_t calls_max = 100'000, calls_of_actor_max = 100;
// Of so many actors that are asked the class is looked up.
constexpr std::size_t asked_max = 1'000;
// As many children are looked at while a lock is held.
constexpr std::size_t children_max = 250;

struct handler_time {
  std::uint64_t parts = 0;
  spent_time spent;
  std::map<std::string_view, std::uint64_t> ticks_of_spans;
};
using times_of_class = std::map<std::string_view, handler_time>;
using times_of_thread = std::map<std::string_view, times_of_class>;

std::map<unsigned, times_of_thread> sum_up(const actor::message_counts& counts,
                                           const thread_times& times) {
  std::map<unsigned, times_of_thread> all;
  counts.for_each_thread([&](const actor::thread_counts& of) {
    of.for_each_handler([&](const actor::handler_count& one) {
      const std::string_view name = one.method(nullptr, nullptr, actor::message_act::describe);
      handler_time& to = all[of.worker()][one.type->name][name];
      to.parts += one.messages.get() + one.resumed.get();
      one.for_each_span(
          [&](const actor::span_count& span) { to.ticks_of_spans[span.name] += span.ticks.get(); });
    });
  });
  for (const auto& [name, spent] : times.parts())
    all[name.worker][name.of_class][name.handler].spent += spent;
  return all;
}

std::string wait_text(const actor::suspended_call& one) {
  if (one.guarded) return "its predicate";
  if (!one.waits_for) return "something of its own";
  return std::string(one.waits_for->what) + one.waits_for->of;
}

std::string place(const actor::suspended_call& one) {
  if (!one.waits_for || one.waits_for->at.line() == 0) return {};
  return actor::place_of(one.waits_for->at);
}

// The class of an actor, from a look at the actors; empty when it has gone.
std::string_view class_of(const actor::actor_system& system, std::uint64_t id) {
  std::string_view name;
  if (id == 0) return name;
  actor::scan_actors(system, id, [&](const actor::seen_actor& one) {
    if (one.id == id) name = one.type->name;
    return false;
  });
  return name;
}

void write_spans(json_text& to, const handler_time& of, double ns_per_tick) {
  if (of.ticks_of_spans.empty()) return;
  to.key("spans").open('[');
  for (const auto& [name, ticks] : of.ticks_of_spans) {
    const auto ns = static_cast<std::uint64_t>(static_cast<double>(ticks) * ns_per_tick);
    to.open('{').member("span", name).member("busy_ns", ns).close('}');
  }
  to.close(']');
}

void write_children(json_text& to, actor::actor_system& system) {
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> pairs;
  system.supervised.for_each_child(children_max,
                                   [&](const actor::cell& parent, const actor::cell& child) {
                                     ++pairs[{parent.type->name, child.type->name}];
                                   });
  to.key("children").open('[');
  for (const auto& [pair, count] : pairs)
    to.open('{')
        .member("parent", pair.first)
        .member("child", pair.second)
        .member("count", count)
        .close('}');
  to.close(']');
}

}  // namespace

void write_call(json_text& to, const actor::suspended_call& one, const runtime_core& core) {
  const actor::actor_system& system = *core.system;
  to.open('{').member("handler", one.method).member("at", place(one));
  to.member("for", wait_text(one));
  if (one.waits_for && one.waits_for->asked != nullptr)
    to.member("asked", system.slots.find_number(one.waits_for->asked));
  if (one.waits_for && one.waits_for->held_since.line() != 0)
    to.member("held_since", actor::place_of(one.waits_for->held_since));
  if (one.waits_for && one.waits_for->first_seen != 0)
    to.member("waits_ns", core.watch->ns_since(one.waits_for->first_seen));
  to.close('}');
}

void write_threads(json_text& to, runtime_core& core) {
  to.open('{').key("threads").open('[');
  if (core.system->counts != nullptr) {
    const double ns_per_tick = ns_per_tick_of(core);
    for (const auto& [worker, classes] : sum_up(*core.system->counts, *core.times)) {
      to.open('{').member("worker", worker).key("classes").open('[');
      for (const auto& [of_class, handlers] : classes) {
        to.open('{').member("class", of_class.empty() ? "other work" : of_class);
        to.key("handlers").open('[');
        for (const auto& [handler, time] : handlers) {
          to.open('{').member("handler", handler).member("messages", time.parts);
          to.member("busy_ns", time.spent.cpu_ns).member("blocked_ns", time.spent.blocked_ns);
          write_spans(to, time, ns_per_tick);
          to.close('}');
        }
        to.close(']').close('}');
      }
      to.close(']').close('}');
    }
  }
  to.close(']').close('}');
}

void write_waits(json_text& to, runtime_core& core) {
  actor::actor_system& system = *core.system;
  using kind =
      std::tuple<std::string_view, std::string_view, std::string, std::string, std::string>;
  struct kind_count {
    std::size_t calls = 0;
    std::uint64_t first = 0;  // the lowest id among their actors
  };
  std::map<kind, kind_count> kinds;
  std::map<const void*, std::string> class_of_asked;
  std::size_t count = 0;
  const actor::actor_system::gate_guard here(system);
  if (here.let_in()) {
    const actor::suspended_calls all = actor::find_suspended(system, calls_max);
    count = all.count;
    for (const actor::suspended_call& one : all.found) {
      const void* const asked = one.waits_for ? one.waits_for->asked : nullptr;
      const auto [found, is_new] = class_of_asked.try_emplace(asked);
      if (is_new && asked != nullptr && class_of_asked.size() <= asked_max)
        found->second = class_of(system, system.slots.find_number(asked));
      kind_count& same = kinds[{one.actor, one.method, place(one), wait_text(one), found->second}];
      if (same.calls++ == 0 || one.id < same.first) same.first = one.id;
    }
  }
  to.open('{').member("suspended", count).key("waits").open('[');
  for (const auto& [of, same] : kinds) {
    const auto& [of_class, handler, at, what, asked] = of;
    to.open('{').member("class", of_class).member("handler", handler).member("at", at);
    to.member("for", what).member("of_class", asked).member("calls", same.calls);
    to.member("first", same.first).close('}');
  }
  to.close(']');
  if (here.let_in()) write_children(to, system);
  to.close('}');
}

void write_story(json_text& to, runtime_core& core, std::uint64_t id) {
  actor::actor_system& system = *core.system;
  bool exists = false;
  to.open('{').key("actor");
  actor::scan_actors(system, id, [&](const actor::seen_actor& one) {
    exists = one.id == id;
    if (exists) actor_writer(core).write(to, one);
    return false;
  });
  if (!exists) to.null();
  to.key("calls").open('[');
  std::size_t count = 0;
  const actor::actor_system::gate_guard here(system);
  if (exists && here.let_in()) {
    const std::array of{id};
    const actor::suspended_calls own = actor::find_suspended(system, calls_of_actor_max, of);
    for (const actor::suspended_call& one : own.found) write_call(to, one, core);
    count = own.count;
  }
  to.close(']').member("suspended", count).close('}');
}

}  // namespace troupe::observing
