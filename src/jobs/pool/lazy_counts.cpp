#include "jobs/pool/lazy_counts.hpp"

#include <new>
#include <utility>

#include "observe/ticks.hpp"
#include "troupe/jobs/job.hpp"

namespace troupe::jobs {

thread_lazies::~thread_lazies() {
  // order: relaxed  no other thread uses it any longer
  for (lazy_count* lazy = first_.load(std::memory_order_relaxed); lazy != nullptr;)
    delete std::exchange(lazy, lazy->next);
}

lazy_count* thread_lazies::of(const char* name) noexcept {
  if (recent_ != nullptr && recent_->name == name) return recent_;
  // order: relaxed  the thread's own
  lazy_count* const first = first_.load(std::memory_order_relaxed);
  lazy_count* lazy = first;
  while (lazy != nullptr && lazy->name != name) lazy = lazy->next;
  if (lazy == nullptr) {
    lazy = new (std::nothrow) lazy_count(name);
    if (lazy == nullptr) return nullptr;
    lazy->next = first;
    first_.store(lazy, std::memory_order_release);  // order: release  pairs with for_each_class
  }
  return recent_ = lazy;
}

void lazy_counts::set_stolen(bool yes) noexcept {
  if (thread_lazies* const own = here()) own->next_is_stolen = yes;
}

counted_run::counted_run(lazy_counts* counts, const job& job) noexcept {
  if (counts == nullptr || job.is_proxy_job) return;
  thread_lazies* const own = counts->here();
  lazy_ = own == nullptr ? nullptr : own->of(job.name);
  if (lazy_ == nullptr) return;
  if (std::exchange(own->next_is_stolen, false)) lazy_->stolen.add(1);
  if (lazy_->stride.samples(lazy_->computed.add(1))) began_ = observe::now_ticks();
}

counted_run::~counted_run() {
  if (began_ == 0) return;
  const std::uint64_t took = observe::now_ticks() - began_, stands_for = lazy_->stride.get();
  lazy_->samples.add(1);
  lazy_->took.add(took, stands_for);
  lazy_->busy_ticks.add(took * stands_for);
  lazy_->stride.taken(began_);
}

}  // namespace troupe::jobs
