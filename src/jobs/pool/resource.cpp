#include "troupe/jobs/resource.hpp"

#include <string>

#include "jobs/pool/job_pool.hpp"
#include "jobs/pool/memory_account.hpp"
#include "troupe/base/error.hpp"

namespace troupe::jobs {

memory_account* charge(std::size_t bytes) noexcept {
  job_pool* const pool = job_pool::current();
  if (pool == nullptr) return nullptr;
  pool->memory().charge(bytes);
  return &pool->memory();
}

void discharge(memory_account& account, std::size_t bytes) noexcept { account.discharge(bytes); }

std::size_t check_bytes(std::size_t bytes) {
  constexpr std::size_t most = std::size_t{1} << 47;  // the size of the address space
  if (bytes > most)
    throw usage_error("troupe: resource: " + std::to_string(bytes) +
                      " bytes are more than any process can have");
  return bytes;
}

}  // namespace troupe::jobs
