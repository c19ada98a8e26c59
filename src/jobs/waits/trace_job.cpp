#include "jobs/waits/trace_job.hpp"

#include "observe/kinds.hpp"

namespace troupe::jobs {
namespace {

constinit std::atomic<std::uint32_t> numbers{0};

}  // namespace

std::uint32_t number_in_trace(job& job) noexcept {
  // order: relaxed (all)  a number publishes no other memory
  std::uint32_t known = job.number.load(std::memory_order_relaxed);
  if (known != 0) return known;
  const std::uint32_t mine = numbers.fetch_add(1, std::memory_order_relaxed) + 1;
  return job.number.compare_exchange_strong(known, mine, std::memory_order_relaxed) ? mine : known;
}

void record_job(observe::event kind, job& job, bool was_queued) noexcept {
  observe::record(kind, job.name,
                  observe::lazy_event{number_in_trace(job), job.line, was_queued}.packed());
}

}  // namespace troupe::jobs
