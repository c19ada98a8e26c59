// The entry of libFuzzer for frames of HTTP/2: tests/fuzz/run.py builds it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/frames.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string how =
      troupe::test::frames_difference({reinterpret_cast<const char*>(data), bytes});
  if (how.empty()) return 0;
  std::fprintf(stderr, "difference: %s\n", how.c_str());
  std::abort();
}
