// The errors of clusters.
#include <gtest/gtest.h>

#include "troupe/cluster/calls.hpp"
#include "troupe/cluster/error.hpp"
#include "verdicts/table.hpp"

namespace troupe::test {
namespace {

TEST(verdicts, of_clusters) {
  expect_verdicts({
      {"cluster::error",
       "unreachable",
       made<cluster::error>(cluster::failure::unreachable, "x"),
       {upstream, none, later}},
      {"cluster::error",
       "lost",
       made<cluster::error>(cluster::failure::lost, "x"),
       {upstream, unknown, later}},
      {"cluster::error",
       "unknown_method",
       made<cluster::error>(cluster::failure::unknown_method, "x"),
       {caller, none, never}},
      {"cluster::error",
       "too_large",
       made<cluster::error>(cluster::failure::too_large, "x"),
       {caller, none, never}},
      {"cluster::error",
       "full",
       made<cluster::error>(cluster::failure::full, "x"),
       {upstream, none, later}},
      {"cluster::error",
       "malformed",
       made<cluster::error>(cluster::failure::malformed, "x"),
       {peer, unknown, never}},
      {"cluster::error",
       "stopped",
       made<cluster::error>(cluster::failure::stopped, "x"),
       {us, none, never}},
      {"cluster::error",
       "denied",
       made<cluster::error>(cluster::failure::denied, "x"),
       {caller, none, never}},
      {"cluster::remote_exception",
       "",
       made<cluster::remote_exception>("type", "x"),
       {upstream, unknown, never}},
      {"cluster::parts::answer_too_late",
       "",
       made<cluster::parts::answer_too_late>(),
       {upstream, unknown, later}},
  });
}

}  // namespace
}  // namespace troupe::test
