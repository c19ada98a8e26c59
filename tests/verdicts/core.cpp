// The errors of the core, but those of I/O and of databases.
#include <gtest/gtest.h>

#include <chrono>

#include "troupe/kit/circuit_breaker.hpp"
#include "troupe/protocol/connection.hpp"
#include "troupe/streams/sources.hpp"
#include "troupe/troupe.hpp"
#include "verdicts/table.hpp"

namespace troupe::test {
namespace {

TEST(verdicts, of_the_core) {
  expect_verdicts({
      {"error", "", made<error>("x"), {us, unknown, never}},
      {"option_error", "", made<option_error>("x"), {caller, none, never}},
      {"usage_error", "", made<usage_error>("x"), {caller, none, never}},
      {"deadline_error", "", made<deadline_error>("x"), {us, unknown, never}},
      {"broken_promise", "", made<broken_promise>("x"), {us, unknown, never}},
      {"timed_out", "", made<timed_out>("x"), {upstream, unknown, later}},
      {"cancelled", "", made<cancelled>("x"), {caller, unknown, never}},
      {"actor_stopped", "", made<actor_stopped>("x"), {us, unknown, never}},
      {"mailbox_full", "", made<mailbox_full>("x"), {us, none, later}},
      {"channel_closed", "", made<channel_closed>("x"), {caller, none, never}},
      {"deadlock", "", made<deadlock>("x"), {us, none, never}},
      {"unguarded_error", "", made<unguarded_error>("x"), {us, unknown, never}},
      {"foreign_context_error", "", made<foreign_context_error>("x"), {us, none, never}},
      {"expectation_failed", "", made<expectation_failed>("x"), {us, unknown, never}},
      {"stalled", "", made<stalled>("x"), {us, unknown, never}},
      {"group_empty", "", made<group_empty>("x"), {us, none, later}},
      {"pool_closed", "", made<pool_closed>("x"), {caller, none, never}},
      {"frame_too_long", "", made<frame_too_long>("x"), {peer, none, never}},
      {"frame_cut", "", made<frame_cut>("x"), {peer, unknown, later}},
      {"line_too_long", "", made<line_too_long>(10), {peer, none, never}},
      {"try_later", "", made<try_later>("x", std::chrono::seconds(3)), {upstream, none, later}},
      {"circuit_open",
       "",
       made<circuit_open>("x", std::chrono::seconds(3)),
       {upstream, none, later}},
  });
}

}  // namespace
}  // namespace troupe::test
