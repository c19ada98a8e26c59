#include "runtime/observing/summary.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actor/scan/actor_scan.hpp"
#include "actor/turn/running_handlers.hpp"
#include "observe/ticks.hpp"
#include "runtime/observing/calls.hpp"
#include "runtime/observing/core_parts.hpp"
#include "runtime/observing/numbers/numbers_json.hpp"
#include "runtime/observing/numbers/sums.hpp"
#include "runtime/observing/observed_runtime.hpp"
#include "task/running/running.hpp"

namespace troupe::observing {
namespace {

void write_handler(json_text& out, std::string_view name, const handler_sum& sum,
                   double ns_per_tick) {
  const auto in_ns = [&](double ticks) { return static_cast<std::uint64_t>(ticks * ns_per_tick); };
  const auto quantile = [&](const observe::value_counts& counts, double part) {
    return in_ns(static_cast<double>(counts.quantile(part)));
  };
  out.open('{').member("handler", name);
  write_members(out, handler_numbers, sum);
  out.member("busy_ns", sum.spent.cpu_ns).member("blocked_ns", sum.spent.blocked_ns);
  out.member("busy_samples", sum.busy_samples);
  out.member("busy_p50_ns", quantile(sum.busy, 0.5))
      .member("busy_p99_ns", quantile(sum.busy, 0.99));
  out.member("wait_samples", sum.wait_samples);
  out.member("wait_p50_ns", quantile(sum.waited, 0.5));
  out.member("wait_p99_ns", quantile(sum.waited, 0.99)).close('}');
}

void write_classes(json_text& out, const all_sums& all, double ns_per_tick) {
  out.key("classes").open('[');
  for (const auto& [name, sum] : all.classes) {
    out.open('{').member("class", name);
    write_members(out, class_numbers, sum);
    out.key("handlers").open('[');
    for (const auto& [handler, of_handler] : sum.handlers)
      write_handler(out, handler, of_handler, ns_per_tick);
    out.close(']').close('}');
  }
  out.close(']');
  out.key("edges").open('[');
  for (const auto& [key, messages] : all.edges) {
    out.open('{').member("from", key.first.first).member("to", key.first.second);
    out.member("handler", key.second).member("messages", messages).close('}');
  }
  out.close(']');
}

void write_worker(json_text& out, const worker_metrics& worker,
                  const thread_times::thread_sum& spent) {
  out.open('{');
  write_members(out, worker_numbers, worker);
  out.member("busy_ns", spent.cpu_ns).member("blocked_ns", spent.blocked_ns);
  out.member("idle_ns", spent.idle_ns).close('}');
}

// Work that is no handler's: posted procedures, lazies, and the like.
void write_other_work(json_text& out, const thread_times& times) {
  std::map<std::string_view, spent_time> all;
  for (const auto& [name, spent] : times.parts()) {
    if (name.of_class.empty()) all[name.handler] += spent;
  }
  out.key("other_work").open('[');
  for (const auto& [name, spent] : all) {
    out.open('{').member("work", name).member("busy_ns", spent.cpu_ns);
    out.member("blocked_ns", spent.blocked_ns).close('}');
  }
  out.close(']');
}

void write_metrics(json_text& out, const runtime_metrics& now, const thread_times& times) {
  out.member("up_ns", now.up_ns).key("metrics").open('{');
  write_members(out, runtime_numbers, now);
  out.close('}');
  const auto spent_by = [&](unsigned worker) {
    const auto found = times.threads().find(worker);
    return found == times.threads().end() ? thread_times::thread_sum() : found->second;
  };
  thread_times::thread_sum all;
  for (const auto& [worker, spent] : times.threads()) all += spent, all.idle_ns += spent.idle_ns;
  write_worker(out.key("total"), now.total, all);
  out.key("workers").open('[');
  for (unsigned number = 0; const worker_metrics& worker : now.workers)
    write_worker(out, worker, spent_by(++number));
  write_worker(out.close(']').key("others"), now.others, spent_by(0));
  write_other_work(out, times);
}

void write_timers(json_text& out, tasks::timers& clock) {
  const tasks::source_counts all = clock.count_by_source();
  out.key("timers").open('[');
  for (std::size_t i = 0; i < all.size(); ++i) {
    out.open('{').member("source", timer_source_names[i]);
    write_members(out, timer_numbers, all[i]);
    out.close('}');
  }
  out.close(']');
}

void write_times(json_text& out, const timed_sum& times, double ns_per_tick) {
  const auto in_ns = [&](double part) {
    return static_cast<std::uint64_t>(static_cast<double>(times.took.quantile(part)) * ns_per_tick);
  };
  out.member("samples", times.samples);
  out.member("p50_ns", in_ns(0.5)).member("p99_ns", in_ns(0.99));
}

void write_operations(json_text& out, const runtime_core& core, double ns_per_tick) {
  out.key("io").open('[');
  for (const auto& [name, all] : sum_up(reactor_of(core))) {
    out.open('{').member("operation", name);
    write_members(out, operation_numbers, all);
    write_times(out, all.timed, ns_per_tick);
    out.close('}');
  }
  out.close(']');
}

void write_lazies(json_text& out, const runtime_core& core, double ns_per_tick) {
  out.key("lazies").open('[');
  for (const auto& [name, all] : sum_up(core.jobs->counts())) {
    out.open('{').member("lazy", name);
    write_members(out, lazy_numbers, all);
    out.member("busy_ns", static_cast<std::uint64_t>(static_cast<double>(all.ticks) * ns_per_tick));
    write_times(out, all.timed, ns_per_tick);
    out.close('}');
  }
  out.close(']');
}

const char* name_of(actor::seen_state state) {
  switch (state) {
    case actor::seen_state::inactive:
      return "inactive";
    case actor::seen_state::active:
      return "active";
    default:
      return "suspended";
  }
}

}  // namespace

known_handlers::known_handlers(const observed_runtime& observed) {
  const actor::message_counts* const counts = observed.core.system->counts.get();
  if (counts == nullptr) return;
  counts->for_each_thread([this](const actor::thread_counts& of_thread) {
    of_thread.for_each_handler([this](const actor::handler_count& handler) {
      names_.try_emplace(handler.method, observing::name_of(handler.method));
    });
  });
}

std::string_view known_handlers::name_of(actor::message::handler method) const noexcept {
  const auto found = names_.find(method);
  return found == names_.end() ? std::string_view() : found->second;
}

actor_writer::actor_writer(const observed_runtime& observed)
    : observed_(observed), handlers_(observed), parents_(*observed.core.system) {
  tasks::for_each_running(*observed.core.system, [this](const tasks::running_work& work) {
    if (work.actor != nullptr) running_[work.actor] = work.method;
  });
}

void actor_writer::write(json_text& out, const actor::seen_actor& seen,
                         const actor::suspended_call* waits) {
  out.open('{').member("id", seen.id).member("class", seen.type->name);
  const std::string name = observed_.core.system->names.find(seen.id);
  if (!name.empty()) out.member("name", name);
  out.member("state", name_of(seen.state)).member("mail", seen.mail);
  const auto runs = running_.find(seen.at);
  const std::string_view last =
      handlers_.name_of(runs == running_.end() ? seen.last : runs->second);
  if (!last.empty()) out.member("last_handler", last);
  const std::uint64_t parent = parents_.find(seen);
  if (parent != 0) out.member("parent", parent);
  if (waits != nullptr) write_call(out.key("waits"), *waits, observed_);
  out.close('}');
}

void write_summary(json_text& out, observed_runtime& observed) {
  runtime_core& core = observed.core;
  out.open('{');
  write_metrics(out, core.metrics(), observed.times);
  out.member("running", actor::running_handlers(*core.system));
  write_timers(out, *core.clock);
  write_operations(out, core, ns_per_tick_of(core));
  write_lazies(out, core, ns_per_tick_of(core));
  observed.watch.list().write_all(out.key("warnings"));
  observed.watch.list().write_counts(out.key("warning_counts"));
  if (core.system->counts != nullptr)
    write_classes(out, sum_up(*core.system->counts, observed.times), ns_per_tick_of(core));
  core.components->write(out);
  out.close('}');
}

namespace {

// While more turns are suspended, the lists do not show the waits of actors: a look at all of them
// would take too long, and the answer for a single actor has its waits.
constexpr std::int64_t suspended_max = 100'000;

// The waits of the actors that are suspended, by id: for each actor the call that has waited
// longest.
class longest_suspensions {
 public:
  longest_suspensions(observed_runtime& observed, const std::vector<actor::seen_actor>& page) {
    std::vector<std::uint64_t> ids;
    for (const actor::seen_actor& seen : page) {
      if (seen.state == actor::seen_state::suspended || seen.type->reentrant)
        ids.push_back(seen.id);
    }
    actor::actor_system& system = *observed.core.system;
    if (ids.empty() || tasks::suspended_turns(system) > suspended_max) return;
    std::ranges::sort(ids);
    const actor::actor_system::gate_guard gate(system);
    if (!gate.let_in()) return;
    for (actor::suspended_call& call : actor::find_suspended(system, calls_max, ids).found) {
      const auto [known, is_new] = longest_.try_emplace(call.id, call);
      if (!is_new && since(call) < since(known->second)) known->second = std::move(call);
    }
  }
  const actor::suspended_call* find(std::uint64_t id) const noexcept {
    const auto found = longest_.find(id);
    return found == longest_.end() ? nullptr : &found->second;
  }

 private:
  static constexpr std::size_t calls_max = 10'000;
  // Calls that no look has seen yet have begun last.
  static std::uint32_t since(const actor::suspended_call& call) noexcept {
    return call.waits_for && call.waits_for->first_seen != 0 ? call.waits_for->first_seen
                                                             : UINT32_MAX;
  }
  std::unordered_map<std::uint64_t, actor::suspended_call> longest_;
};

void write_page(json_text& out, observed_runtime& observed,
                const std::vector<actor::seen_actor>& page) {
  const longest_suspensions waits(observed, page);
  actor_writer actors(observed);
  out.key("actors").open('[');
  for (const actor::seen_actor& seen : page) actors.write(out, seen, waits.find(seen.id));
  out.close(']');
}

}  // namespace

void write_actors(json_text& out, observed_runtime& observed, std::uint64_t from, std::size_t most,
                  std::string_view of_class) {
  std::vector<actor::seen_actor> page;
  const std::uint64_t next =
      actor::scan_actors(*observed.core.system, from, [&](const actor::seen_actor& seen) {
        if (!of_class.empty() && seen.type->name != of_class) return true;
        if (page.size() == most) return false;
        page.push_back(seen);
        return true;
      });
  out.open('{');
  write_page(out, observed, page);
  out.member("next", next).close('}');
}

void write_longest(json_text& out, observed_runtime& observed, std::size_t most,
                   std::string_view of_class) {
  std::vector<actor::seen_actor> longest;
  const auto has_more = [](const actor::seen_actor& a, const actor::seen_actor& b) {
    return a.mail > b.mail;
  };
  actor::scan_actors(*observed.core.system, 0, [&](const actor::seen_actor& seen) {
    if (seen.mail == 0 || (!of_class.empty() && seen.type->name != of_class)) return true;
    longest.push_back(seen);
    std::push_heap(longest.begin(), longest.end(), has_more);
    if (longest.size() <= most) return true;
    std::pop_heap(longest.begin(), longest.end(), has_more);
    longest.pop_back();
    return true;
  });
  std::sort(longest.begin(), longest.end(), has_more);
  out.open('{');
  write_page(out, observed, longest);
  out.close('}');
}

}  // namespace troupe::observing
