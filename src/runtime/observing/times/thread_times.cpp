#include "runtime/observing/times/thread_times.hpp"

#include <algorithm>

#include "actor/scan/actor_scan.hpp"
#include "base/invariant.hpp"
#include "base/threads/thread_clock.hpp"

namespace troupe::observing {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t pause_ns = 4 * ns_per_ms, quiet_pause_ns_max = 100 * ns_per_ms;

std::uint64_t since(std::int64_t before, std::int64_t now) noexcept {
  return now > before ? static_cast<std::uint64_t>(now - before) : 0;
}

// A thread that has used nearly all of the time cannot have slept: the kernel need not be asked.
bool has_slept(std::uint64_t cpu_ns, std::uint64_t wall_ns, int thread) noexcept {
  return cpu_ns < wall_ns / 10 * 9 && base::is_blocked(thread);
}

}  // namespace

std::int64_t thread_times::look(std::int64_t now_ns) {
  if (now_ns < next_ns_) return next_ns_;
  now_.clear();
  tasks::for_each_thread(system_,
                         [this](const tasks::running_work& work) { now_.push_back(work); });
  ++looks_;
  ++quiet_looks_;
  for (const tasks::running_work& work : now_) look_at(work, now_ns);
  std::erase_if(seen_, [this](const auto& entry) { return entry.second.look != looks_; });
  return next_ns_ = now_ns + next_pause();
}

// Random, so that no rhythm of the program hides a handler.
std::int64_t thread_times::next_pause() {
  const std::int64_t mean =
      std::min(quiet_pause_ns_max, pause_ns * (1 + std::int64_t{quiet_looks_} / 8));
  return mean / 2 + std::uniform_int_distribution<std::int64_t>(0, mean)(random_);
}

void thread_times::look_at(const tasks::running_work& work, std::int64_t now_ns) {
  const std::int64_t cpu_ns = base::cpu_ns_of(work.system_thread);
  if (cpu_ns < 0) return;
  const auto [at, is_new] = seen_.try_emplace(work.system_thread, now_ns, cpu_ns, looks_);
  seen_thread& before = at->second;
  const std::uint64_t wall = since(before.wall_ns, now_ns), cpu = since(before.cpu_ns, cpu_ns);
  before = {now_ns, cpu_ns, looks_};
  thread_sum& all = threads_[work.worker];
  [[maybe_unused]] const thread_sum sum_before = all;
  all.cpu_ns += cpu;
  all.unassigned_ns += cpu;
  if (work.method != nullptr || cpu != 0) quiet_looks_ = 0;
  if (work.method == nullptr) {
    all.idle_ns += wall;
  } else if (has_slept(cpu, wall, work.system_thread)) {
    all.blocked_ns += wall;
    part_of(work).blocked_ns += wall;
  } else {
    part_of(work).cpu_ns += std::exchange(all.unassigned_ns, 0);
  }
  TROUPE_INVARIANT(all.cpu_ns >= sum_before.cpu_ns && all.blocked_ns >= sum_before.blocked_ns &&
                       all.idle_ns >= sum_before.idle_ns,
                   "H1");
  TROUPE_INVARIANT(cpu_ns_of_parts(work.worker) + all.unassigned_ns == all.cpu_ns, "H2");
}

std::uint64_t thread_times::cpu_ns_of_parts(unsigned worker) const {
  std::uint64_t sum = 0;
  for (auto part = parts_.lower_bound({worker, {}, {}});
       part != parts_.end() && part->first.worker == worker; ++part)
    sum += part->second.cpu_ns;
  return sum;
}

// An actor that has ended meanwhile was of the class that ran this handler last.
spent_time& thread_times::part_of(const tasks::running_work& work) {
  const std::string_view handler =
      work.name != nullptr && work.actor == nullptr
          ? work.name
          : work.method(nullptr, nullptr, sched::message_act::describe);
  std::string_view of_class;
  if (work.actor != nullptr) {
    std::string_view& known = class_of_[work.method];
    if (const actor::cell_type* const type = actor::find_type(work.actor)) known = type->name;
    of_class = known;
  }
  return parts_[{work.worker, of_class, handler}];
}

}  // namespace troupe::observing
