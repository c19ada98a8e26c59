// work: what the contestants of nats/* have in common.
#pragma once

#include <cstdlib>
#include <string>

namespace nats_work {

constexpr const char* ask_subject = "bench.ask";
constexpr const char* send_subject = "bench.send";
constexpr const char* line = "some text of 32 bytes, as it is.";

// What with_nats.sh has started.
inline std::string server() {
  const char* const target = std::getenv("BENCH_NATS");
  if (target == nullptr) std::abort();
  return target;
}

}  // namespace nats_work
