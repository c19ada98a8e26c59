#include "runtime/observing/relations.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "actor/counting/message_counts.hpp"
#include "actor/scan/actor_scan.hpp"
#include "actor/waits/suspended.hpp"
#include "observe/ticks.hpp"
#include "runtime/observing/calls.hpp"
#include "runtime/observing/core_parts.hpp"
#include "runtime/observing/observed_runtime.hpp"
#include "runtime/observing/summary.hpp"

namespace troupe::observing {
namespace {

// Calls beyond these are counted, but not looked at: the first ones show the same kinds of waits.
constexpr std::size_t calls_max = 100'000, calls_of_actor_max = 100;
// The most asked actors whose class is looked up.
constexpr std::size_t asked_max = 1'000;
// The most children that are inspected while a lock is held.
constexpr std::size_t children_max = 250;

struct handler_time {
  std::uint64_t parts = 0;
  spent_time spent;
  std::map<std::string_view, std::uint64_t> ticks_of_spans;
};
using times_of_class = std::map<std::string_view, handler_time>;
using times_of_thread = std::map<std::string_view, times_of_class>;

std::map<unsigned, times_of_thread> sum_up_by_thread(const actor::message_counts& counts,
                                                     const thread_times& times) {
  std::map<unsigned, times_of_thread> all;
  counts.for_each_thread([&](const actor::thread_counts& thread) {
    thread.for_each_handler([&](const actor::handler_count& handler) {
      const std::string_view name = handler.method(nullptr, nullptr, actor::message_act::describe);
      handler_time& time = all[thread.worker()][handler.type->name][name];
      time.parts += handler.messages.get() + handler.resumed.get();
      handler.for_each_span([&](const actor::span_count& span) {
        time.ticks_of_spans[span.name] += span.ticks.get();
      });
    });
  });
  for (const auto& [name, spent] : times.parts())
    all[name.worker][name.of_class][name.handler].spent += spent;
  return all;
}

// The class of an actor, from a look at the actors; empty when the actor was destroyed.
std::string_view class_of(const actor::actor_system& system, std::uint64_t id) {
  std::string_view name;
  if (id == 0) return name;
  actor::scan_actors(system, id, [&](const actor::seen_actor& seen) {
    if (seen.id == id) name = seen.type->name;
    return false;
  });
  return name;
}

void write_spans(json_text& out, const handler_time& time, double ns_per_tick) {
  if (time.ticks_of_spans.empty()) return;
  out.key("spans").open('[');
  for (const auto& [name, ticks] : time.ticks_of_spans) {
    const auto ns = static_cast<std::uint64_t>(static_cast<double>(ticks) * ns_per_tick);
    out.open('{').member("span", name).member("busy_ns", ns).close('}');
  }
  out.close(']');
}

void write_children(json_text& out, actor::actor_system& system) {
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> pairs;
  system.supervised.for_each_child(children_max,
                                   [&](const actor::cell& parent, const actor::cell& child) {
                                     ++pairs[{parent.type->name, child.type->name}];
                                   });
  out.key("children").open('[');
  for (const auto& [pair, count] : pairs)
    out.open('{')
        .member("parent", pair.first)
        .member("child", pair.second)
        .member("count", count)
        .close('}');
  out.close(']');
}

}  // namespace

void write_threads(json_text& out, observed_runtime& observed) {
  out.open('{').key("threads").open('[');
  if (observed.core.system->counts != nullptr) {
    const double ns_per_tick = ns_per_tick_of(observed.core);
    for (const auto& [worker, classes] :
         sum_up_by_thread(*observed.core.system->counts, observed.times)) {
      out.open('{').member("worker", worker).key("classes").open('[');
      for (const auto& [of_class, handlers] : classes) {
        out.open('{').member("class", of_class.empty() ? "other work" : of_class);
        out.key("handlers").open('[');
        for (const auto& [handler, time] : handlers) {
          out.open('{').member("handler", handler).member("messages", time.parts);
          out.member("busy_ns", time.spent.cpu_ns).member("blocked_ns", time.spent.blocked_ns);
          write_spans(out, time, ns_per_tick);
          out.close('}');
        }
        out.close(']').close('}');
      }
      out.close(']').close('}');
    }
  }
  out.close(']').close('}');
}

void write_waits(json_text& out, observed_runtime& observed) {
  actor::actor_system& system = *observed.core.system;
  using kind =
      std::tuple<std::string_view, std::string_view, std::string, std::string, std::string>;
  struct kind_count {
    std::size_t calls = 0;
    std::uint64_t first = 0;  // the lowest id among their actors
  };
  std::map<kind, kind_count> kinds;
  std::map<const void*, std::string> class_of_asked;
  std::size_t count = 0;
  const actor::actor_system::gate_guard gate(system);
  if (gate.let_in()) {
    const actor::suspended_calls all = actor::find_suspended(system, calls_max);
    count = all.count;
    for (const actor::suspended_call& call : all.found) {
      const void* const asked = call.waits_for ? call.waits_for->asked : nullptr;
      const auto [found, is_new] = class_of_asked.try_emplace(asked);
      if (is_new && asked != nullptr && class_of_asked.size() <= asked_max)
        found->second = class_of(system, system.slots.find_number(asked));
      kind_count& same =
          kinds[{call.actor, call.method, wait_place(call), wait_text(call), found->second}];
      if (same.calls++ == 0 || call.id < same.first) same.first = call.id;
    }
  }
  out.open('{').member("suspended", count).key("waits").open('[');
  for (const auto& [group, same] : kinds) {
    const auto& [of_class, handler, at, description, asked] = group;
    out.open('{').member("class", of_class).member("handler", handler).member("at", at);
    out.member("for", description).member("of_class", asked).member("calls", same.calls);
    out.member("first", same.first).close('}');
  }
  out.close(']');
  if (gate.let_in()) write_children(out, system);
  out.close('}');
}

void write_story(json_text& out, observed_runtime& observed, std::uint64_t id) {
  actor::actor_system& system = *observed.core.system;
  bool exists = false;
  out.open('{').key("actor");
  actor::scan_actors(system, id, [&](const actor::seen_actor& seen) {
    exists = seen.id == id;
    if (exists) actor_writer(observed).write(out, seen);
    return false;
  });
  if (!exists) out.null();
  out.key("calls").open('[');
  std::size_t count = 0;
  const actor::actor_system::gate_guard gate(system);
  if (exists && gate.let_in()) {
    const std::array ids{id};
    const actor::suspended_calls own = actor::find_suspended(system, calls_of_actor_max, ids);
    for (const actor::suspended_call& call : own.found) write_call(out, call, observed);
    count = own.count;
  }
  out.close(']').member("suspended", count).close('}');
}

}  // namespace troupe::observing
