// The errors of durable actors.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "troupe/durable/codec.hpp"
#include "troupe/durable/error.hpp"
#include "verdicts/table.hpp"

namespace troupe::test {
namespace {

TEST(verdicts, of_durable_actors) {
  expect_verdicts({
      {"durable::handler_failed",
       "",
       made<durable::handler_failed>("type", "x"),
       {us, none, never}},
      {"durable::schema_error", "", made<durable::schema_error>("x"), {us, none, never}},
      {"durable::unknown_method", "", made<durable::unknown_method>("x"), {caller, none, never}},
      {"durable::id_mismatch", "", made<durable::id_mismatch>("x"), {caller, none, never}},
      {"durable::store_full", "", made<durable::store_full>("x"), {us, none, later}},
      {"durable::store_taken", "", made<durable::store_taken>("x"), {us, none, never}},
      {"durable::decode_error", "", made<durable::decode_error>("x"), {peer, none, never}},
      {"durable::shard_moved",
       "not stored",
       made<durable::shard_moved>(std::vector<std::uint32_t>{1}, "x"),
       {upstream, none, later}},
      {"durable::shard_moved",
       "stored",
       made<durable::shard_moved>(std::vector<std::uint32_t>{1}, "x", true),
       {upstream, done, later}},
  });
}

}  // namespace
}  // namespace troupe::test
