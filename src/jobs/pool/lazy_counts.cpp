#include "jobs/pool/lazy_counts.hpp"

#include <new>
#include <utility>

#include "observe/ticks.hpp"
#include "troupe/jobs/job.hpp"

namespace troupe::jobs {

thread_lazies::~thread_lazies() {
  // order: relaxed  no other thread uses it any longer
  for (lazy_count* one = first_.load(std::memory_order_relaxed); one != nullptr;)
    delete std::exchange(one, one->next);
}

lazy_count* thread_lazies::of(const char* name) noexcept {
  if (recent_ != nullptr && recent_->name == name) return recent_;
  // order: relaxed  the thread's own
  lazy_count* const first = first_.load(std::memory_order_relaxed);
  lazy_count* one = first;
  while (one != nullptr && one->name != name) one = one->next;
  if (one == nullptr) {
    one = new (std::nothrow) lazy_count(name);
    if (one == nullptr) return nullptr;
    one->next = first;
    first_.store(one, std::memory_order_release);  // order: release  pairs with for_each_class
  }
  return recent_ = one;
}

void lazy_counts::set_stolen(bool yes) noexcept {
  if (thread_lazies* const own = here()) own->next_is_stolen = yes;
}

counted_run::counted_run(lazy_counts* counts, const job& of) noexcept {
  if (counts == nullptr || of.is_proxy_job) return;
  thread_lazies* const own = counts->here();
  its_ = own == nullptr ? nullptr : own->of(of.name);
  if (its_ == nullptr) return;
  if (std::exchange(own->next_is_stolen, false)) its_->stolen.add(1);
  if (its_->stride.samples(its_->computed.add(1))) began_ = observe::now_ticks();
}

counted_run::~counted_run() {
  if (began_ == 0) return;
  const std::uint64_t took = observe::now_ticks() - began_, stands_for = its_->stride.get();
  its_->samples.add(1);
  its_->took.add(took, stands_for);
  its_->busy_ticks.add(took * stands_for);
  its_->stride.taken(began_);
}

}  // namespace troupe::jobs
