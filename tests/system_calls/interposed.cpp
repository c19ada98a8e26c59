#include "interposed.hpp"

#include <dlfcn.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdarg>

namespace troupe::test {
namespace {

std::atomic<int> kind{-1}, left{0}, fault{0};

bool fails(call one) {
  if (kind.load() != static_cast<int>(one) || left.fetch_sub(1) != 0) return false;
  errno = fault.load();
  return true;
}

template <class Call>
Call* next(const char* name) {
  return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

failing::failing(call one, int nth, int number) {
  left = nth;
  fault = number;
  kind = static_cast<int>(one);
}
failing::~failing() { kind = -1; }
bool failing::came() const { return left.load() < 0; }

}  // namespace troupe::test

using troupe::test::call;
using troupe::test::fails;

extern "C" {

int pipe2(int* ends, int flags) noexcept {
  static auto* const real = troupe::test::next<int(int*, int)>("pipe2");
  return fails(call::pipe2) ? -1 : real(ends, flags);
}

int fcntl(int fd, int what, ...) {
  static auto* const real = troupe::test::next<int(int, int, ...)>("fcntl");
  std::va_list more;
  va_start(more, what);
  void* const argument = va_arg(more, void*);
  va_end(more);
  return fails(call::fcntl) ? -1 : real(fd, what, argument);
}

int open(const char* path, int flags, ...) {
  static auto* const real = troupe::test::next<int(const char*, int, ...)>("open");
  std::va_list more;
  va_start(more, flags);
  const unsigned permissions = va_arg(more, unsigned);
  va_end(more);
  return fails(call::open) ? -1 : real(path, flags, permissions);
}

int posix_spawnp(pid_t* made, const char* program, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const arguments[],
                 char* const environment[]) {
  static auto* const real =
      troupe::test::next<int(pid_t*, const char*, const posix_spawn_file_actions_t*,
                             const posix_spawnattr_t*, char* const*, char* const*)>("posix_spawnp");
  return fails(call::posix_spawnp)
             ? errno
             : real(made, program, actions, attributes, arguments, environment);
}

long syscall(long number, ...) noexcept {
  static auto* const real = troupe::test::next<long(long, ...)>("syscall");
  std::va_list more;
  va_start(more, number);
  long arguments[6];
  for (long& one : arguments) one = va_arg(more, long);
  va_end(more);
  if (number == SYS_membarrier && arguments[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
    ++troupe::test::membarriers;
    if (troupe::test::refuses_membarrier) {
      errno = EPERM;
      return -1;
    }
  }
  if (number == SYS_pidfd_open && fails(call::pidfd_open)) return -1;
  if (number == SYS_pidfd_send_signal && fails(call::pidfd_send_signal)) return -1;
  return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
              arguments[5]);
}

int waitid(idtype_t type, id_t id, siginfo_t* how, int options) {
  static auto* const real = troupe::test::next<int(idtype_t, id_t, siginfo_t*, int)>("waitid");
  return fails(call::waitid) ? -1 : real(type, id, how, options);
}

int sigaction(int signal, const struct sigaction* to, struct sigaction* before) noexcept {
  static auto* const real =
      troupe::test::next<int(int, const struct sigaction*, struct sigaction*)>("sigaction");
  return fails(call::sigaction) ? -1 : real(signal, to, before);
}

int eventfd(unsigned count, int flags) noexcept {
  static auto* const real = troupe::test::next<int(unsigned, int)>("eventfd");
  return fails(call::eventfd) ? -1 : real(count, flags);
}

}  // extern "C"
