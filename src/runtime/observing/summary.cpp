#include "runtime/observing/summary.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actor/counting/actor_scan.hpp"
#include "actor/counting/message_counts.hpp"
#include "actor/turn/running_handlers.hpp"
#include "io/reactor/reactor.hpp"
#include "jobs/pool/job_pool.hpp"
#include "observe/ticks.hpp"
#include "runtime/observing/relations.hpp"
#include "runtime/runtime_core.hpp"
#include "task/running/running.hpp"

namespace troupe::observing {
namespace {

using actor::message_act;

// The counts of all threads together. A handler that is told and asked has two functions, but one
// name.
struct handler_sum {
  std::uint64_t messages = 0, resumed = 0, failures = 0;
  std::uint64_t busy_samples = 0, wait_samples = 0;
  observe::value_counts busy, waited;
  spent_time spent;
};
struct class_sum {
  std::uint64_t spawned = 0, ended = 0, suspended = 0, resumed = 0;
  std::map<std::string_view, handler_sum> handlers;
};
using edge_key = std::pair<std::pair<std::string_view, std::string_view>, std::string_view>;
struct all_sums {
  std::map<std::string_view, class_sum> classes;
  std::map<edge_key, std::uint64_t> edges;
};

std::string_view name_of(actor::message::handler method) {
  return method(nullptr, nullptr, message_act::describe);
}

all_sums sum_up(const actor::message_counts& counts, const thread_times& times) {
  all_sums all;
  counts.for_each_thread([&](const actor::thread_counts& of_thread) {
    of_thread.for_each_class([&](const actor::class_count& one) {
      class_sum& to = all.classes[one.type->name];
      to.spawned += one.spawned.get();
      to.ended += one.ended.get();
      to.suspended += one.suspended.get();
      to.resumed += one.resumed.get();
    });
    of_thread.for_each_handler([&](const actor::handler_count& one) {
      handler_sum& to = all.classes[one.type->name].handlers[name_of(one.method)];
      to.messages += one.messages.get();
      to.resumed += one.resumed.get();
      to.failures += one.failures.get();
      to.busy_samples += one.busy_samples.get();
      to.wait_samples += one.wait_samples.get();
      one.busy.add_to(to.busy);
      one.waited.add_to(to.waited);
    });
    of_thread.for_each_edge([&](const actor::edge_count& one) {
      const std::string_view from = one.from == nullptr ? "outside" : one.from->name;
      all.edges[{{from, one.to->name}, name_of(one.method)}] += one.messages.get();
    });
  });
  for (const auto& [name, spent] : times.parts()) {
    const auto found = all.classes.find(name.of_class);
    if (found == all.classes.end()) continue;  // other work
    found->second.handlers[name.handler].spent += spent;
  }
  return all;
}

// Other threads may lower a count before this one reads what they raised.
std::uint64_t difference(std::uint64_t more, std::uint64_t less) {
  return more > less ? more - less : 0;
}

void write_handler(json_text& to, std::string_view name, const handler_sum& sum,
                   double ns_per_tick) {
  const auto in_ns = [&](double ticks) { return static_cast<std::uint64_t>(ticks * ns_per_tick); };
  const auto quantile = [&](const observe::value_counts& of, double part) {
    return in_ns(static_cast<double>(of.quantile(part)));
  };
  to.open('{').member("handler", name);
  to.member("messages", sum.messages).member("resumed", sum.resumed);
  to.member("failures", sum.failures);
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
    to.member("alive", difference(sum.spawned, sum.ended));
    to.member("spawned", sum.spawned).member("ended", sum.ended);
    to.member("suspended", difference(sum.suspended, sum.resumed));
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
  to.open('{').member("turns", one.turns).member("messages", one.messages);
  to.member("spawned", one.spawned).member("ended", one.ended).member("lazies", one.lazies);
  to.member("steals", one.steals).member("stolen", one.stolen).member("parks", one.parks);
  to.member("woken", one.woken).member("queued", one.queued);
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
  to.member("actors", now.actors).member("suspended", now.suspended);
  to.member("dead_letters", now.dead_letters).member("failures", now.failures);
  to.member("failures_dropped", now.failures_dropped).member("failures_kept", now.failures_kept);
  to.member("errors_dropped", now.errors_dropped);
  to.member("failure_bytes", now.failure_bytes).member("lazies_dropped", now.lazies_dropped);
  to.member("lazies_queued", now.lazies_queued).member("resource_bytes", now.resource_bytes);
  to.member("resource_bytes_peak", now.resource_bytes_peak).member("io_waits", now.io_waits);
  to.member("io_in_flight", now.io_in_flight).member("io_open", now.io_open);
  to.member("timers_armed", now.timers_armed).member("blocking_calls", now.blocking_calls);
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
  constexpr std::string_view names[tasks::timer_sources] = {
      "sleep", "after", "every", "timeout", "io_timeout", "deadline", "runtime"};
  const tasks::timers::source_counts all = clock.count_by_source();
  to.key("timers").open('[');
  for (std::size_t i = 0; i < all.size(); ++i) {
    to.open('{').member("source", names[i]).member("armed", all[i].armed);
    to.member("expired", all[i].expired).member("cancelled", all[i].cancelled).close('}');
  }
  to.close(']');
}

// What was timed of one kind of work.
struct timed_sum {
  std::uint64_t samples = 0;
  observe::value_counts took;
  void write(json_text& to, double ns_per_tick) const {
    const auto in_ns = [&](double part) {
      return static_cast<std::uint64_t>(static_cast<double>(took.quantile(part)) * ns_per_tick);
    };
    to.member("samples", samples);
    to.member("p50_ns", in_ns(0.5)).member("p99_ns", in_ns(0.99));
  }
};

void write_operations(json_text& to, const runtime_core& core, double ns_per_tick) {
  struct sum {
    std::uint64_t operations = 0, bytes = 0, errors = 0, cancelled = 0;
    timed_sum timed;
  };
  std::map<std::string_view, sum> kinds;
  const auto* const reactor = static_cast<const io::reactor*>(core.io.taken());
  if (reactor != nullptr && reactor->counted != nullptr) {
    reactor->counted->for_each_thread([&](const io::thread_operations& of_thread) {
      of_thread.for_each_kind([&](io::action what, const io::operation_count& one) {
        sum& all = kinds[io::name_of(what)];
        all.operations += one.done.get();
        all.bytes += one.bytes.get();
        all.errors += one.errors.get();
        all.cancelled += one.cancelled.get();
        all.timed.samples += one.samples.get();
        one.took.add_to(all.timed.took);
      });
    });
  }
  to.key("io").open('[');
  for (const auto& [name, all] : kinds) {
    to.open('{').member("operation", name).member("done", all.operations);
    to.member("bytes", all.bytes).member("errors", all.errors).member("cancelled", all.cancelled);
    all.timed.write(to, ns_per_tick);
    to.close('}');
  }
  to.close(']');
}

void write_lazies(json_text& to, const runtime_core& core, double ns_per_tick) {
  struct sum {
    std::uint64_t computed = 0, stolen = 0, ticks = 0;
    timed_sum timed;
  };
  std::map<std::string_view, sum> classes;
  if (const jobs::lazy_counts* const counts = core.jobs->counts()) {
    counts->for_each_thread([&](const jobs::thread_lazies& of_thread) {
      of_thread.for_each_class([&](const jobs::lazy_count& one) {
        sum& all = classes[one.name];
        all.computed += one.computed.get();
        all.stolen += one.stolen.get();
        all.ticks += one.busy_ticks.get();
        all.timed.samples += one.samples.get();
        one.took.add_to(all.timed.took);
      });
    });
  }
  to.key("lazies").open('[');
  for (const auto& [name, all] : classes) {
    to.open('{').member("lazy", name).member("computed", all.computed);
    to.member("stolen", all.stolen);
    to.member("busy_ns", static_cast<std::uint64_t>(static_cast<double>(all.ticks) * ns_per_tick));
    all.timed.write(to, ns_per_tick);
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

double ns_per_tick_of(const runtime_core& core) noexcept {
  const observe::tick_scale now;
  const double ticks = static_cast<double>(now.ticks - core.observed_since.ticks);
  return ticks <= 0 ? 1 : static_cast<double>(now.ns - core.observed_since.ns) / ticks;
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
