// interposed: the C library's functions that start, await and end processes, make pipes and handle
// signals. A test can let one of them fail. And calls of membarrier are counted. The definitions
// are this program's own, so that the library, which is linked into it, calls them.
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe::test {

enum class call {
  pipe2,
  fcntl,
  posix_spawnp,
  pidfd_open,
  pidfd_send_signal,
  waitid,
  sigaction,
  eventfd,
  open
};
inline constexpr call all_calls[] = {
    call::pipe2,  call::fcntl,     call::posix_spawnp, call::pidfd_open, call::pidfd_send_signal,
    call::waitid, call::sigaction, call::eventfd,      call::open};
inline const char* name_of(call one) {
  constexpr const char* names[] = {
      "pipe2",  "fcntl",     "posix_spawnp", "pidfd_open", "pidfd_send_signal",
      "waitid", "sigaction", "eventfd",      "open"};
  return names[static_cast<int>(one)];
}

// While it exists the nth call of this kind (from 0) fails with `fault`. Only one may exist at a
// time.
class failing {
 public:
  failing(call kind, int nth, int fault);
  ~failing();
  failing(const failing&) = delete;
  failing& operator=(const failing&) = delete;
  // Returns true if there was such a call.
  bool came() const;
};

// How often the program has interrupted its threads so far.
inline std::atomic<std::uint64_t> membarriers{0};
// Whether the system refuses further ones.
inline std::atomic<bool> refuses_membarrier{false};

}  // namespace troupe::test
