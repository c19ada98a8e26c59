#include "runtime/observing/summary.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actor/counting/actor_scan.hpp"
#include "actor/turn/running_handlers.hpp"
#include "observe/ticks.hpp"
#include "runtime/observing/numbers/numbers_json.hpp"
#include "runtime/observing/numbers/sums.hpp"
#include "runtime/observing/relations.hpp"
#include "runtime/runtime_core.hpp"
#include "task/running/running.hpp"

namespace troupe::observing {
namespace {

void write_handler(json_text& to, std::string_view name, const handler_sum& sum,
                   double ns_per_tick) {
  const auto in_ns = [&](double ticks) { return static_cast<std::uint64_t>(ticks * ns_per_tick); };
  const auto quantile = [&](const observe::value_counts& of, double part) {
    return in_ns(static_cast<double>(of.quantile(part)));
  };
  to.open('{').member("handler", name);
  write_members(to, handler_numbers, sum);
  to.member("busy_ns", sum.spent.cpu_ns).member("blocked_ns", sum.spent.blocked_ns);
  to.member("busy_samples", sum.busy_samples);
  to.member("busy_p50_ns", quantile(sum.busy, 0.5)).member("busy_p99_ns", quantile(sum.busy, 0.99));
  to.member("wait_samples", sum.wait_samples);
  to.member("wait_p50_ns", quantile(sum.waited, 0.5));
  to.member("wait_p99_ns", quantile(sum.waited, 0.99)).close('}');
}

void write_classes(json_text& to, const all_sums& all, double ns_per_tick) {
  to.key("classes").open('[');
  for (const auto& [name, sum] : all.classes) {
    to.open('{').member("class", name);
    write_members(to, class_numbers, sum);
    to.key("handlers").open('[');
    for (const auto& [handler, of_handler] : sum.handlers)
      write_handler(to, handler, of_handler, ns_per_tick);
    to.close(']').close('}');
  }
  to.close(']');
  to.key("edges").open('[');
  for (const auto& [key, messages] : all.edges) {
    to.open('{').member("from", key.first.first).member("to", key.first.second);
    to.member("handler", key.second).member("messages", messages).close('}');
  }
  to.close(']');
}

void write_worker(json_text& to, const worker_metrics& one, const thread_times::thread_sum& spent) {
  to.open('{');
  write_members(to, worker_numbers, one);
  to.member("busy_ns", spent.cpu_ns).member("blocked_ns", spent.blocked_ns);
  to.member("idle_ns", spent.idle_ns).close('}');
}

// Work that is no handler's: posted procedures, lazies, and the like.
void write_other_work(json_text& to, const thread_times& times) {
  std::map<std::string_view, spent_time> all;
  for (const auto& [name, spent] : times.parts()) {
    if (name.of_class.empty()) all[name.handler] += spent;
  }
  to.key("other_work").open('[');
  for (const auto& [name, spent] : all) {
    to.open('{').member("work", name).member("busy_ns", spent.cpu_ns);
    to.member("blocked_ns", spent.blocked_ns).close('}');
  }
  to.close(']');
}

void write_metrics(json_text& to, const runtime_metrics& now, const thread_times& times) {
  to.member("up_ns", now.up_ns).key("metrics").open('{');
  write_members(to, runtime_numbers, now);
  to.close('}');
  const auto spent_by = [&](unsigned worker) {
    const auto found = times.threads().find(worker);
    return found == times.threads().end() ? thread_times::thread_sum() : found->second;
  };
  thread_times::thread_sum all;
  for (const auto& [worker, spent] : times.threads()) all += spent, all.idle_ns += spent.idle_ns;
  write_worker(to.key("total"), now.total, all);
  to.key("workers").open('[');
  for (unsigned number = 0; const worker_metrics& one : now.workers)
    write_worker(to, one, spent_by(++number));
  write_worker(to.close(']').key("others"), now.others, spent_by(0));
  write_other_work(to, times);
}

void write_timers(json_text& to, tasks::timers& clock) {
  const tasks::timers::source_counts all = clock.count_by_source();
  to.key("timers").open('[');
  for (std::size_t i = 0; i < all.size(); ++i) {
    to.open('{').member("source", timer_source_names[i]);
    write_members(to, timer_numbers, all[i]);
    to.close('}');
  }
  to.close(']');
}

void write_times(json_text& to, const timed_sum& of, double ns_per_tick) {
  const auto in_ns = [&](double part) {
    return static_cast<std::uint64_t>(static_cast<double>(of.took.quantile(part)) * ns_per_tick);
  };
  to.member("samples", of.samples);
  to.member("p50_ns", in_ns(0.5)).member("p99_ns", in_ns(0.99));
}

void write_operations(json_text& to, const runtime_core& core, double ns_per_tick) {
  to.key("io").open('[');
  for (const auto& [name, all] : sum_up(reactor_of(core))) {
    to.open('{').member("operation", name);
    write_members(to, operation_numbers, all);
    write_times(to, all.timed, ns_per_tick);
    to.close('}');
  }
  to.close(']');
}

void write_lazies(json_text& to, const runtime_core& core, double ns_per_tick) {
  to.key("lazies").open('[');
  for (const auto& [name, all] : sum_up(core.jobs->counts())) {
    to.open('{').member("lazy", name);
    write_members(to, lazy_numbers, all);
    to.member("busy_ns", static_cast<std::uint64_t>(static_cast<double>(all.ticks) * ns_per_tick));
    write_times(to, all.timed, ns_per_tick);
    to.close('}');
  }
  to.close(']');
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

known_handlers::known_handlers(const runtime_core& of) {
  if (of.system->counts == nullptr) return;
  of.system->counts->for_each_thread([this](const actor::thread_counts& of_thread) {
    of_thread.for_each_handler([this](const actor::handler_count& one) {
      names_.try_emplace(one.method, observing::name_of(one.method));
    });
  });
}

std::string_view known_handlers::name_of(actor::message::handler method) const noexcept {
  const auto found = names_.find(method);
  return found == names_.end() ? std::string_view() : found->second;
}

actor_writer::actor_writer(const runtime_core& of)
    : core_(of), handlers_(of), parents_(*of.system) {
  tasks::for_each_running(*of.system, [this](const tasks::running_work& its) {
    if (its.actor != nullptr) running_[its.actor] = its.method;
  });
}

void actor_writer::write(json_text& to, const actor::seen_actor& one,
                         const actor::suspended_call* waits) {
  to.open('{').member("id", one.id).member("class", one.type->name);
  const std::string name = core_.system->names.find(one.id);
  if (!name.empty()) to.member("name", name);
  to.member("state", name_of(one.state)).member("mail", one.mail);
  const auto runs = running_.find(one.at);
  const std::string_view last = handlers_.name_of(runs == running_.end() ? one.last : runs->second);
  if (!last.empty()) to.member("last_handler", last);
  const std::uint64_t parent = parents_.find(one);
  if (parent != 0) to.member("parent", parent);
  if (waits != nullptr) write_call(to.key("waits"), *waits, core_);
  to.close('}');
}

// Fixed by the first look that is late enough to know it: sums of ticks must not fall when they are
// scaled again. Observers of two runtimes may fix it at the same time, to about the same.
double ns_per_tick_of(const runtime_core& core) noexcept {
  constexpr std::int64_t known_after_ns = 100'000'000;
  static constinit std::atomic<double> fixed{0};
  // order: relaxed  a number that stands for itself
  if (const double known = fixed.load(std::memory_order_relaxed); known != 0) return known;
  const observe::tick_scale now;
  const double ticks = static_cast<double>(now.ticks - core.observed_since.ticks);
  const std::int64_t ns = now.ns - core.observed_since.ns;
  const double scale = ticks <= 0 ? 1 : static_cast<double>(ns) / ticks;
  // order: relaxed  as above
  if (ns >= known_after_ns) fixed.store(scale, std::memory_order_relaxed);
  return scale;
}

const io::reactor* reactor_of(const runtime_core& core) noexcept {
  return static_cast<const io::reactor*>(core.io.taken());
}

void write_summary(json_text& to, runtime_core& core) {
  to.open('{');
  write_metrics(to, core.metrics(), *core.times);
  to.member("running", actor::running_handlers(*core.system));
  write_timers(to, *core.clock);
  write_operations(to, core, ns_per_tick_of(core));
  write_lazies(to, core, ns_per_tick_of(core));
  core.watch->list().write_all(to.key("warnings"));
  core.watch->list().write_counts(to.key("warning_counts"));
  if (core.system->counts != nullptr)
    write_classes(to, sum_up(*core.system->counts, *core.times), ns_per_tick_of(core));
  core.components->write(to);
  to.close('}');
}

namespace {

// While more turns are suspended, the lists do not say what actors wait for: a look at all of them
// would take too long, and the answer for a single actor says it.
constexpr std::int64_t suspended_max = 100'000;

// What those of the actors wait for that are suspended, by id: of each the call that has waited
// longest.
class waits_of {
 public:
  waits_of(runtime_core& core, const std::vector<actor::seen_actor>& page) {
    std::vector<std::uint64_t> ids;
    for (const actor::seen_actor& one : page) {
      if (one.state == actor::seen_state::suspended || one.type->reentrant) ids.push_back(one.id);
    }
    actor::actor_system& system = *core.system;
    if (ids.empty() || tasks::suspended_turns(system) > suspended_max) return;
    std::ranges::sort(ids);
    const actor::actor_system::gate_guard here(system);
    if (!here.let_in()) return;
    for (actor::suspended_call& one : actor::find_suspended(system, calls_max, ids).found) {
      const auto [known, is_new] = longest_.try_emplace(one.id, one);
      if (!is_new && since(one) < since(known->second)) known->second = std::move(one);
    }
  }
  const actor::suspended_call* find(std::uint64_t id) const noexcept {
    const auto found = longest_.find(id);
    return found == longest_.end() ? nullptr : &found->second;
  }

 private:
  static constexpr std::size_t calls_max = 10'000;
  // Calls that no look has seen yet have begun last.
  static std::uint32_t since(const actor::suspended_call& one) noexcept {
    return one.waits_for && one.waits_for->first_seen != 0 ? one.waits_for->first_seen : UINT32_MAX;
  }
  std::unordered_map<std::uint64_t, actor::suspended_call> longest_;
};

void write_page(json_text& to, runtime_core& core, const std::vector<actor::seen_actor>& page) {
  const waits_of waits(core, page);
  actor_writer actors(core);
  to.key("actors").open('[');
  for (const actor::seen_actor& one : page) actors.write(to, one, waits.find(one.id));
  to.close(']');
}

}  // namespace

void write_actors(json_text& to, runtime_core& core, std::uint64_t from, std::size_t most,
                  std::string_view of_class) {
  std::vector<actor::seen_actor> page;
  const std::uint64_t next =
      actor::scan_actors(*core.system, from, [&](const actor::seen_actor& one) {
        if (!of_class.empty() && one.type->name != of_class) return true;
        if (page.size() == most) return false;
        page.push_back(one);
        return true;
      });
  to.open('{');
  write_page(to, core, page);
  to.member("next", next).close('}');
}

void write_longest(json_text& to, runtime_core& core, std::size_t most, std::string_view of_class) {
  std::vector<actor::seen_actor> longest;
  const auto has_more = [](const actor::seen_actor& a, const actor::seen_actor& b) {
    return a.mail > b.mail;
  };
  actor::scan_actors(*core.system, 0, [&](const actor::seen_actor& one) {
    if (one.mail == 0 || (!of_class.empty() && one.type->name != of_class)) return true;
    longest.push_back(one);
    std::push_heap(longest.begin(), longest.end(), has_more);
    if (longest.size() <= most) return true;
    std::pop_heap(longest.begin(), longest.end(), has_more);
    longest.pop_back();
    return true;
  });
  std::sort(longest.begin(), longest.end(), has_more);
  to.open('{');
  write_page(to, core, longest);
  to.close('}');
}

}  // namespace troupe::observing
