// The errors of NATS.
#include <gtest/gtest.h>

#include "troupe/nats/error.hpp"
#include "verdicts/table.hpp"

namespace troupe::test {
namespace {

TEST(verdicts, of_nats) {
  expect_verdicts({
      {"nats::error",
       "unreachable",
       made<nats::error>(nats::failure::unreachable, "x"),
       {upstream, none, later}},
      {"nats::error",
       "denied",
       made<nats::error>(nats::failure::denied, "x"),
       {caller, none, never}},
      {"nats::error", "lost", made<nats::error>(nats::failure::lost, "x"), {upstream, none, later}},
      {"nats::error",
       "no_responders",
       made<nats::error>(nats::failure::no_responders, "x"),
       {upstream, none, later}},
      {"nats::error",
       "closed",
       made<nats::error>(nats::failure::closed, "x"),
       {caller, none, never}},
      {"nats::error",
       "bad_subject",
       made<nats::error>(nats::failure::bad_subject, "x"),
       {caller, none, never}},
      {"nats::error",
       "too_large",
       made<nats::error>(nats::failure::too_large, "x"),
       {caller, none, never}},
      {"nats::error",
       "too_much_kept",
       made<nats::error>(nats::failure::too_much_kept, "x"),
       {caller, none, never}},
      {"nats::error",
       "refused",
       made<nats::error>(nats::failure::refused, "x"),
       {upstream, none, never}},
      {"nats::error",
       "lost, may have run",
       made<nats::error>(nats::failure::lost, "x", true),
       {upstream, unknown, later}},
      {"nats::stream_error",
       "400",
       made<nats::stream_error>("x", 400, 10071),
       {caller, none, never}},
      {"nats::stream_error",
       "503",
       made<nats::stream_error>("x", 503, 10008),
       {upstream, none, later}},
      {"nats::stream_error",
       "500",
       made<nats::stream_error>("x", 500, 10000),
       {upstream, none, never}},
  });
}

}  // namespace
}  // namespace troupe::test
