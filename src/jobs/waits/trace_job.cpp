#include "jobs/waits/trace_job.hpp"

#include "observe/kinds.hpp"

namespace troupe::jobs {
namespace {

constinit std::atomic<std::uint32_t> numbers{0};

}  // namespace

std::uint32_t number_in_trace(job& one) noexcept {
  // order: relaxed (all)  a number says nothing about other memory
  std::uint32_t known = one.number.load(std::memory_order_relaxed);
  if (known != 0) return known;
  const std::uint32_t mine = numbers.fetch_add(1, std::memory_order_relaxed) + 1;
  return one.number.compare_exchange_strong(known, mine, std::memory_order_relaxed) ? mine : known;
}

void record_job(observe::event kind, job& one, bool was_queued) noexcept {
  observe::record(kind, one.name,
                  observe::lazy_event{number_in_trace(one), one.line, was_queued}.packed());
}

}  // namespace troupe::jobs
