// The entry of libFuzzer for what a peer sends to a node: tests/fuzz/run.py builds it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/cluster/cluster.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string how =
      troupe::test::cluster_failure({reinterpret_cast<const char*>(data), bytes});
  if (how.empty()) return 0;
  std::fprintf(stderr, "failure: %s\n", how.c_str());
  std::abort();
}
