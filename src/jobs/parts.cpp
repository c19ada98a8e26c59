#include "troupe/jobs/parts.hpp"

#include "jobs/job_pool.hpp"

namespace troupe::jobs {

work<> run_parts(const part_body& body, std::size_t first, std::size_t last) {
  if (last - first == 1) {
    body.run_part(first);
    co_return;
  }
  const std::size_t middle = first + (last - first) / 2;
  co_await fork(run_parts(body, first, middle), run_parts(body, middle, last));
}

std::size_t grain_by_workers(std::size_t count) noexcept {
  constexpr std::size_t parts_a_worker = 32;
  const job_pool* const pool = job_pool::current();
  const std::size_t parts = parts_a_worker * (pool == nullptr ? 1 : pool->workers());
  return std::max<std::size_t>((count + parts - 1) / parts, 1);
}

}  // namespace troupe::jobs
