// The errors of I/O.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>

#include "troupe/base/literal.hpp"
#include "troupe/io/error.hpp"
#include "verdicts/table.hpp"

namespace troupe::test {
namespace {

std::shared_ptr<const error> failed(literal operation, int number) {
  return made<io_error>(operation, "a", number);
}

TEST(verdicts, of_io) {
  expect_verdicts({
      {"io_error",
       "ECONNREFUSED, connect",
       failed("connect", ECONNREFUSED),
       {upstream, none, later}},
      {"io_error", "ECONNREFUSED", failed("read", ECONNREFUSED), {upstream, unknown, later}},
      {"io_error",
       "EHOSTUNREACH, connect",
       failed("connect", EHOSTUNREACH),
       {upstream, none, later}},
      {"io_error", "EHOSTUNREACH", failed("read", EHOSTUNREACH), {upstream, unknown, later}},
      {"io_error", "EHOSTDOWN, connect", failed("connect", EHOSTDOWN), {upstream, none, later}},
      {"io_error", "EHOSTDOWN", failed("read", EHOSTDOWN), {upstream, unknown, later}},
      {"io_error", "ENETUNREACH, connect", failed("connect", ENETUNREACH), {upstream, none, later}},
      {"io_error", "ENETUNREACH", failed("read", ENETUNREACH), {upstream, unknown, later}},
      {"io_error", "ENETDOWN, connect", failed("connect", ENETDOWN), {upstream, none, later}},
      {"io_error", "ENETDOWN", failed("read", ENETDOWN), {upstream, unknown, later}},
      {"io_error", "ECONNRESET, connect", failed("connect", ECONNRESET), {upstream, none, later}},
      {"io_error", "ECONNRESET", failed("read", ECONNRESET), {peer, unknown, later}},
      {"io_error",
       "ECONNABORTED, connect",
       failed("connect", ECONNABORTED),
       {upstream, none, later}},
      {"io_error", "ECONNABORTED", failed("read", ECONNABORTED), {peer, unknown, later}},
      {"io_error", "EPIPE, connect", failed("connect", EPIPE), {upstream, none, later}},
      {"io_error", "EPIPE", failed("read", EPIPE), {peer, unknown, later}},
      {"io_error", "ETIMEDOUT, connect", failed("connect", ETIMEDOUT), {upstream, none, later}},
      {"io_error", "ETIMEDOUT", failed("read", ETIMEDOUT), {peer, unknown, later}},
      {"io_error", "EAGAIN", failed("open", EAGAIN), {us, none, later}},
      {"io_error", "EMFILE", failed("open", EMFILE), {us, none, later}},
      {"io_error", "ENFILE", failed("open", ENFILE), {us, none, later}},
      {"io_error", "ENOBUFS", failed("open", ENOBUFS), {us, none, later}},
      {"io_error", "ENOMEM", failed("open", ENOMEM), {us, none, later}},
      {"io_error", "ENOSPC", failed("write", ENOSPC), {us, unknown, later}},
      {"io_error", "EDQUOT", failed("write", EDQUOT), {us, unknown, later}},
      {"io_error", "EACCES", failed("open", EACCES), {caller, none, never}},
      {"io_error", "EPERM", failed("open", EPERM), {caller, none, never}},
      {"io_error", "EROFS", failed("open", EROFS), {caller, none, never}},
      {"io_error", "ENOENT", failed("open", ENOENT), {caller, none, never}},
      {"io_error", "ENOTDIR", failed("open", ENOTDIR), {caller, none, never}},
      {"io_error", "EISDIR", failed("open", EISDIR), {caller, none, never}},
      {"io_error", "EEXIST", failed("open", EEXIST), {caller, none, never}},
      {"io_error", "ENOTEMPTY", failed("open", ENOTEMPTY), {caller, none, never}},
      {"io_error", "ENAMETOOLONG", failed("open", ENAMETOOLONG), {caller, none, never}},
      {"io_error", "ELOOP", failed("open", ELOOP), {caller, none, never}},
      {"io_error", "EXDEV", failed("open", EXDEV), {caller, none, never}},
      {"io_error", "EADDRINUSE", failed("open", EADDRINUSE), {caller, none, never}},
      {"io_error", "EADDRNOTAVAIL", failed("open", EADDRNOTAVAIL), {caller, none, never}},
      {"io_error", "EIO", failed("read", EIO), {us, unknown, never}},
      {"io_error", "EBADF", failed("read", EBADF), {us, unknown, never}},
      {"end_of_stream",
       "",
       made<end_of_stream>("read", "a", std::size_t{1}),
       {peer, unknown, later}},
      {"end_of_file", "", made<end_of_file>("read", "a", std::size_t{1}), {caller, unknown, never}},
  });
}

}  // namespace
}  // namespace troupe::test
