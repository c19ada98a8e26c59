// message_calls: recvfrom and sendto for the small messages of a server, inlined into their caller.
//
// The kernel's path through these calls is longer than the processor's stack of return addresses.
// Therefore each function that returns after such a call is a mispredicted branch. These calls, and
// the functions that lead to them, are inline where a reactor makes thousands of them a second
// (io/echo_64, Zen 4: 3 %).
// Rejected: the C library's functions, which are cancellation points: with several threads, that
// costs two locked instructions for each call (2 %); its syscall(), which is one more function that
// returns. Sanitizers see only the C library's functions, which builds with a sanitizer use.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "troupe/base/platform.hpp"

namespace troupe::io {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline std::ptrdiff_t receive_from(int fd, void* data, std::size_t bytes, int flags, sockaddr* peer,
                                   socklen_t* peer_bytes) noexcept {
  const std::ptrdiff_t part = ::recvfrom(fd, data, bytes, flags, peer, peer_bytes);
  return part < 0 ? -errno : part;
}
inline std::ptrdiff_t send_to(int fd, const void* data, std::size_t bytes, int flags,
                              const sockaddr* to, socklen_t to_bytes) noexcept {
  const std::ptrdiff_t part = ::sendto(fd, data, bytes, flags, to, to_bytes);
  return part < 0 ? -errno : part;
}
#else
// Returns -errno on failure.
TROUPE_INLINE std::ptrdiff_t system_call(long number, int fd, const void* data, std::size_t bytes,
                                         int flags, const void* address,
                                         std::size_t address_word) noexcept {
#if defined(__x86_64__) && defined(__LP64__)
  std::ptrdiff_t result = number;
  register long fourth asm("r10") = flags;
  register const void* fifth asm("r8") = address;
  register std::size_t sixth asm("r9") = address_word;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(static_cast<long>(fd)), "S"(data), "d"(bytes), "r"(fourth), "r"(fifth),
                 "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
#else
  const std::ptrdiff_t result = ::syscall(number, fd, data, bytes, flags, address, address_word);
  return result < 0 ? -errno : result;
#endif
}
TROUPE_INLINE std::ptrdiff_t receive_from(int fd, void* data, std::size_t bytes, int flags,
                                          sockaddr* peer, socklen_t* peer_bytes) noexcept {
  return system_call(SYS_recvfrom, fd, data, bytes, flags, peer,
                     reinterpret_cast<std::size_t>(peer_bytes));
}
TROUPE_INLINE std::ptrdiff_t send_to(int fd, const void* data, std::size_t bytes, int flags,
                                     const sockaddr* to, socklen_t to_bytes) noexcept {
  return system_call(SYS_sendto, fd, data, bytes, flags, to, to_bytes);
}
#endif

}  // namespace troupe::io
