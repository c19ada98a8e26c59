// The errors of TLS.
#include <gtest/gtest.h>

#include "troupe/tls/error.hpp"
#include "verdicts/table.hpp"

namespace troupe::test {
namespace {

TEST(verdicts, of_tls) {
  expect_verdicts({
      {"tls_error",
       "certificate",
       made<tls_error>(tls_failure::certificate, "read", "a", "x"),
       {peer, none, never}},
      {"tls_error",
       "refused_by_peer",
       made<tls_error>(tls_failure::refused_by_peer, "read", "a", "x"),
       {peer, unknown, never}},
      {"tls_error",
       "protocol",
       made<tls_error>(tls_failure::protocol, "read", "a", "x"),
       {peer, unknown, never}},
      {"tls_error",
       "truncated",
       made<tls_error>(tls_failure::truncated, "read", "a", "x"),
       {peer, unknown, later}},
      {"tls_error",
       "plain_http",
       made<tls_error>(tls_failure::plain_http, "read", "a", "x"),
       {peer, none, never}},
  });
}

}  // namespace
}  // namespace troupe::test
