// The entry of libFuzzer for what proxies say: tests/fuzz/run.py builds it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/behind_proxy/proxies.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string how =
      troupe::test::proxies_difference({reinterpret_cast<const char*>(data), bytes});
  if (how.empty()) return 0;
  std::fprintf(stderr, "difference: %s\n", how.c_str());
  std::abort();
}
