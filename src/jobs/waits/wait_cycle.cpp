#include "jobs/waits/wait_cycle.hpp"

#include <algorithm>
#include <vector>

namespace troupe::jobs {
namespace {

constexpr std::size_t links_named = 100;

// Whether the thread will keep waiting. A thread that was refused its wait leaves.
bool stays(const waiting_thread& thread) noexcept {
  // order: relaxed  under the mutex
  if (thread.refused.load(std::memory_order_relaxed)) return false;
  // order: acquire  as job::is_done
  return thread.at.awaited != nullptr
             ? !thread.at.awaited->is_done()
             : thread.at.all != nullptr && !thread.at.ended->load(std::memory_order_acquire);
}

bool has_fork_frames(const waiting_thread& thread, const fork_tree* tree) noexcept {
  const frame* at = thread.at.top;
  while (at != nullptr && (at = at->forks_below) != nullptr && at->forks != tree) at = at->below;
  return at != nullptr;
}

// The threads that the search has reached, as a queue.
class search {
 public:
  explicit search(waiting_thread& self) noexcept : number_(++searches), last_(&self) {
    reach(self, nullptr);
  }
  // False when the search has reached that thread before.
  bool reach(waiting_thread& thread, waiting_thread* from) noexcept {
    if (thread.reached_in == number_) return false;
    thread.reached_in = number_;
    thread.reached_from = from;
    thread.next_reached = nullptr;
    last_->next_reached = from == nullptr ? nullptr : &thread;
    last_ = &thread;
    return true;
  }

 private:
  static inline std::uint64_t searches = 0;  // guarded by the mutex
  const std::uint64_t number_;
  waiting_thread* last_;
};

std::string name_of(const job* job) { return job == nullptr ? "a fork" : job->name; }

// Adds the names of the jobs and forks above `wanted` on the thread's stack.
void name_above(std::vector<std::string>& names, const waiting_thread& on,
                const waiting_thread::place& wanted) {
  std::vector<std::string> above;
  for (const frame* at = on.at.top; at != nullptr; at = at->below) {
    if (wanted.awaited != nullptr ? at->runs == wanted.awaited : at->forks == wanted.all) break;
    above.push_back(name_of(at->runs));
    if (above.size() > 2 * links_named) above.erase(above.begin(), above.begin() + links_named);
  }
  names.insert(names.end(), above.rbegin(), above.rend());
}

}  // namespace

waiting_thread* find_cycle(waiting_thread& self, const waiting_thread_list& waiting) noexcept {
  search reached(self);
  for (waiting_thread* from = &self; from != nullptr; from = from->next_reached) {
    if (!stays(*from)) continue;
    if (const job* const job = from->at.awaited) {
      // order: relaxed  a thread that runs a job stored this before it took the mutex
      waiting_thread* const runs = job->run_by.load(std::memory_order_relaxed);
      if (runs == &self) return from;
      if (runs != nullptr) reached.reach(*runs, from);
      continue;
    }
    for (waiting_thread& thread : waiting) {
      if (!has_fork_frames(thread, from->at.all)) continue;
      if (&thread == &self) return from;
      reached.reach(thread, from);
    }
  }
  return nullptr;
}

std::string name_cycle(const waiting_thread& last, const waiting_thread& first) {
  std::vector<const waiting_thread*> cycle;
  for (const waiting_thread* at = &last; at != nullptr; at = at->reached_from) cycle.push_back(at);
  std::reverse(cycle.begin(), cycle.end());  // from self on
  std::rotate(cycle.begin(), std::find(cycle.begin(), cycle.end(), &first), cycle.end());
  std::vector<std::string> names{name_of(first.at.awaited)};
  for (std::size_t i = 0; i != cycle.size() && names.size() < links_named; ++i) {
    const waiting_thread& next = *cycle[i + 1 == cycle.size() ? 0 : i + 1];
    name_above(names, next, cycle[i]->at);
    names.push_back(name_of(next.at.awaited));
  }
  if (names.size() > links_named) names.resize(links_named);
  std::string chain;
  for (const std::string& name : names) chain += (chain.empty() ? "" : " wants ") + name;
  return chain;
}

}  // namespace troupe::jobs
