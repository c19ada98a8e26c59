// Bytes come out at the other end whole and in order, in both directions at once; and how a
// connection ends.
#include <new>

#include "tls/support.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class tls_transfer : public tls_conformance {};
class tls_damage : public tls_conformance {};

TEST_P(tls_transfer, much_goes_both_ways_at_once) {
  auto exchange = []() -> task<> {
    tls_pair pair = co_await make_good_pair();
    const std::string up = some_bytes(static_cast<std::size_t>(fewer(700'000, 10))),
                      down = some_bytes(static_cast<std::size_t>(fewer(900'001, 10)));
    auto all = when_all(send_and_end(pair.client, up), send_and_end(pair.server, down),
                        read_to_the_end(pair.client), read_to_the_end(pair.server));
    auto [one, two, at_client, at_server] = co_await std::move(all);
    EXPECT_TRUE(at_server == up);
    EXPECT_TRUE(at_client == down);
  };
  run(exchange());
}

// The reader and the writer are two actors, which may run on two threads.
TEST_P(tls_transfer, two_actors_share_a_connection) {
  runtime rt(options());
  auto exchange = [](runtime& runs) -> task<> {
    tls_pair pair = co_await make_good_pair();
    const std::string bytes = some_bytes(static_cast<std::size_t>(fewer(400'000, 10)));
    auto at_client = runs.spawn(read_to_the_end(pair.client));
    auto at_server = runs.spawn(read_to_the_end(pair.server));
    auto up = runs.spawn(send_and_end(pair.client, bytes));
    auto down = runs.spawn(send_and_end(pair.server, bytes));
    const std::string one = co_await std::move(at_client), two = co_await std::move(at_server);
    co_await std::move(up);
    co_await std::move(down);
    EXPECT_TRUE(one == bytes);
    EXPECT_TRUE(two == bytes);
  };
  rt.spawn(exchange(rt));
  rt.run();
}

TEST_P(tls_transfer, sizes_of_every_kind) {
  auto exchange = []() -> task<> {
    tls_pair pair = co_await make_good_pair();
    for (const std::size_t size :
         {0u, 1u, 2u, 1023u, 1024u, 1025u, 16'383u, 16'384u, 16'385u, 50'000u}) {
      const std::string sent = some_bytes(size);
      std::string got(size, '\0');
      auto reads = [](tls_stream& from, std::string& to) -> task<> {
        co_await from.read_exact(std::span<char>(to));
      };
      auto both = when_all(send_bytes(pair.client, sent), reads(pair.server, got));
      co_await std::move(both);
      EXPECT_TRUE(got == sent) << size;
    }
    // write() takes at most one record.
    const std::string much = some_bytes(50'000);
    std::string got(16'384, '\0');
    auto writes = [](tls_stream& to, std::string_view bytes) -> task<std::size_t> {
      co_return co_await to.write(bytes);
    };
    auto reads = [](tls_stream& from, std::string& to) -> task<> {
      co_await from.read_exact(std::span<char>(to));
    };
    auto both = when_all(writes(pair.client, much), reads(pair.server, got));
    auto [taken, done] = co_await std::move(both);
    EXPECT_EQ(taken, 16'384u);
    EXPECT_TRUE(much.starts_with(got));
    std::array<char, 1> none;
    const std::size_t nothing = co_await pair.server.read(std::span<char>(none.data(), 0));
    EXPECT_EQ(nothing, 0u);
  };
  run(exchange());
}

TEST_P(tls_transfer, an_end_that_was_declared_is_one_and_another_is_not) {
  auto ends = []() -> task<> {
    const tls_context trust = tls_context::client(trusting());
    for (const tls_version most : {tls_version::v1_2, tls_version::v1_3}) {
      tls_options self = showing(good_identity());
      self.max_version = most;
      const tls_context server = tls_context::server(self);
      {
        tls_pair pair = co_await make_connected_pair(trust, server);
        co_await send_and_end(pair.client, "all");
        const std::string all = co_await read_to_the_end(pair.server);
        EXPECT_EQ(all, "all");
        std::array<char, 4> buffer;
        const std::size_t again = co_await pair.server.read(buffer);
        EXPECT_EQ(again, 0u);
        auto more = [](tls_stream& from, std::span<char> to) -> task<> {
          co_await from.read_exact(to);
        };
        const std::string whole = co_await outcome_of(more(pair.server, buffer));
        EXPECT_EQ(whole, "end_of_stream");
        // The other direction is still open.
        auto both = when_all(send_and_end(pair.server, "back"), read_to_the_end(pair.client));
        auto [sent, back] = co_await std::move(both);
        EXPECT_EQ(back, "back");
        for (tls_stream* one : {&pair.client, &pair.server}) {
          const std::string late = co_await outcome_of(send_bytes(*one, "late"));
          EXPECT_EQ(late, "usage_error");
          co_await one->shutdown();
        }
      }
      {
        tls_pair pair = co_await make_connected_pair(trust, server);
        co_await send_bytes(pair.client, "part");
        pair.client.close();
        std::array<char, 4> buffer;
        co_await pair.server.read_exact(buffer);
        auto more = [](tls_stream& from) -> task<> { co_await read_to_the_end(from); };
        for (int i = 0; i < 2; ++i) {
          const std::string cut = co_await outcome_of(more(pair.server));
          EXPECT_EQ(cut, "truncated");
        }
        const std::string also = co_await outcome_of(send_bytes(pair.server, "x"));
        EXPECT_EQ(also, "truncated");
      }
    }
  };
  run(ends());
}

// The test changes the bytes on the wire between the two ends.
TEST_P(tls_transfer, damage_on_the_way_is_found) {
  auto damage = []() -> task<> {
    enum class harm { flip, cut, inject };
    for (const harm what : {harm::flip, harm::cut, harm::inject}) {
      stream_pair one = co_await make_pair(), two = co_await make_pair();
      tls_stream client =
          tls_stream::client(tls_context::client(trusting()), std::move(one.client), "good.test");
      tls_stream server =
          tls_stream::server(tls_context::server(showing(good_identity())), std::move(two.client));
      // Bytes for the client pass unharmed. Bytes for the server pass unharmed until the test asks
      // for damage.
      auto relay = [](tcp_stream& from, tcp_stream& to, const bool& now, harm how) -> task<> {
        std::array<char, 1000> buffer;
        const std::string forged = std::string("\x17\x03\x03\0\x20", 5) + std::string(32, 'x');
        for (bool done = false;;) {
          std::size_t bytes = co_await from.read(buffer);
          if (bytes == 0) break;
          const bool harms = now && !std::exchange(done, now);
          if (harms && how == harm::flip)
            buffer[bytes - 1] = static_cast<char>(buffer[bytes - 1] ^ 1);
          if (harms && how == harm::cut) bytes -= 1;
          if (harms && how == harm::inject) co_await to.write_all(forged);
          co_await to.write_all(std::string_view(buffer.data(), bytes));
          if (harms && how == harm::cut) break;
        }
        to.shutdown_write();
      };
      bool now = false;
      const bool never = false;
      auto talk = [](tls_stream& from, tls_stream& to, bool& harmed) -> task<std::string> {
        auto shaking = when_all(shake(from), shake(to));
        co_await std::move(shaking);
        std::array<char, 4> buffer;
        co_await from.write_all("good");
        co_await to.read_exact(buffer);
        harmed = true;
        co_await from.write_all("gone");
        auto more = [](tls_stream& of) -> task<> { co_await read_to_the_end(of); };
        std::string how = co_await outcome_of(more(to));
        from.close();
        to.close();
        co_return how;
      };
      auto all =
          when_all(talk(client, server, now), outcome_of(relay(one.server, two.server, now, what)),
                   outcome_of(relay(two.server, one.server, never, what)));
      auto [how, there, back] = co_await std::move(all);
      EXPECT_EQ(how, what == harm::cut ? "truncated" : "protocol");
    }
  };
  run(damage());
}

// One byte of the handshake is changed on the way. (In virtual time, because a length that is too
// great makes both sides wait.)
TEST_P(tls_damage, a_handshake_with_a_changed_byte_comes_to_nothing) {
  auto damage = []() -> task<> {
    const tls_context trust = tls_context::client(trusting()),
                      self = tls_context::server(showing(good_identity()));
    for (std::size_t place = 0; place < 1200; place += slow ? 101 : 23) {
      for (const bool up : {true, false}) {
        stream_pair one = co_await make_pair(), two = co_await make_pair();
        tls_stream client = tls_stream::client(trust, std::move(one.client), "good.test");
        tls_stream server = tls_stream::server(self, std::move(two.client));
        bool harmed = false;
        auto relay = [](tcp_stream& from, tcp_stream& to, std::size_t at, bool& done) -> task<> {
          std::array<char, 500> buffer;
          for (std::size_t passed = 0;;) {
            const std::size_t bytes = co_await from.read(buffer);
            if (bytes == 0) break;
            if (at >= passed && at < passed + bytes) {
              buffer[at - passed] = static_cast<char>(buffer[at - passed] ^ 0x41);
              done = true;
            }
            passed += bytes;
            co_await to.write_all(std::string_view(buffer.data(), bytes));
          }
          to.shutdown_write();
        };
        auto side = [](tls_stream& own) -> task<std::string> {
          auto shakes = [](tls_stream& of) -> task<> {
            co_await of.handshake().timeout(1s);
            std::array<char, 1> byte;
            co_await of.shutdown().timeout(1s);
            co_await of.read(byte).timeout(1s);
          };
          std::string how = co_await outcome_of(shakes(own));
          own.close();
          co_return how;
        };
        constexpr std::size_t nowhere = SIZE_MAX;
        auto all =
            when_all(side(client), side(server),
                     outcome_of(relay(one.server, two.server, up ? place : nowhere, harmed)),
                     outcome_of(relay(two.server, one.server, up ? nowhere : place, harmed)));
        auto [at_client, at_server, there, back] = co_await std::move(all);
        EXPECT_EQ(at_client == "ok" && at_server == "ok", !harmed)
            << place << (up ? " up: " : " down: ") << at_client << ", " << at_server;
        EXPECT_NE(at_client, "cancelled");
        EXPECT_NE(at_server, "cancelled");
      }
    }
  };
  run(damage());
}

TEST_P(tls_transfer, limits_of_time_and_tokens_end_what_waits) {
  auto limits = []() -> task<> {
    tls_pair pair = co_await make_good_pair();
    std::array<char, 4> buffer;
    auto reads = [](tls_stream& from, std::span<char> to, std::chrono::nanoseconds span) -> task<> {
      co_await from.read(to).timeout(span);
    };
    auto reads_until = [](tls_stream& from, std::span<char> to, std::stop_token token) -> task<> {
      co_await from.read(to).stop(token);
    };
    for (const auto span : {0ms, 10ms}) {
      const std::string late = co_await outcome_of(reads(pair.server, buffer, span));
      EXPECT_EQ(late, "timed_out");
    }
    std::stop_source source;
    auto stops = [](std::stop_source asks) -> task<> {
      co_await yield();
      asks.request_stop();
    };
    auto both =
        when_all(outcome_of(reads_until(pair.server, buffer, source.get_token())), stops(source));
    auto [stopped, done] = co_await std::move(both);
    EXPECT_EQ(stopped, "cancelled");
    // No byte was lost by that.
    co_await pair.client.write_all("here");
    co_await pair.server.read_exact(buffer);
    EXPECT_EQ(std::string_view(buffer.data(), 4), "here");
    // A write to a peer that does not read waits. When it is given up, the next write first sends
    // the rest of its record, so that the peer can read everything.
    auto writes = [](tls_stream& to) -> task<> {
      co_await to.write_all(std::string(20'000'000, 'x')).timeout(20ms);
    };
    const std::string full = co_await outcome_of(writes(pair.client));
    EXPECT_EQ(full, "timed_out");
    auto all = when_all(send_and_end(pair.client, "end"), read_to_the_end(pair.server));
    auto [sent, got] = co_await std::move(all);
    EXPECT_TRUE(got.ends_with("xend"));
  };
  run(limits());
}

TEST_P(tls_transfer, a_handshake_can_be_ended_at_any_step) {
  auto end_it = []() -> task<> {
    const tls_context trust = tls_context::client(trusting()),
                      self = tls_context::server(showing(good_identity()));
    for (int steps = 0; steps < 12; ++steps) {
      tls_pair pair = co_await make_tls_pair(trust, self);
      std::stop_source source;
      auto shakes = [](tls_stream& one, std::stop_token token) -> task<> {
        co_await one.handshake().stop(token);
        co_await one.handshake();  // the handshake is already done
      };
      auto stops = [](std::stop_source asks, int turns) -> task<> {
        for (int i = 0; i < turns; ++i) co_await yield();
        asks.request_stop();
      };
      auto closes = [](task<std::string> one, tls_stream& of) -> task<std::string> {
        const std::string how = co_await std::move(one);
        if (how != "ok") of.close();
        co_return how;
      };
      auto all =
          when_all(closes(outcome_of(shakes(pair.client, source.get_token())), pair.client),
                   closes(outcome_of(shake(pair.server)), pair.server), stops(source, steps));
      auto [client, server, done] = co_await std::move(all);
      EXPECT_TRUE(client == "ok" || client == "cancelled") << client;
      EXPECT_TRUE(server == "ok" || server == "truncated" || server == "io_error") << server;
    }
  };
  run(end_it());
}

TEST_P(tls_transfer, closing_ends_what_is_under_way) {
  auto close_it = []() -> task<> {
    tls_pair pair = co_await make_good_pair();
    auto reads = [](tls_stream& from) -> task<> { co_await read_to_the_end(from); };
    auto goes = [](tls_stream& one) -> task<> {
      co_await yield();
      one = tls_stream();
    };
    auto both = when_all(outcome_of(reads(pair.client)), goes(pair.client));
    auto [how, done] = co_await std::move(both);
    EXPECT_EQ(how, "cancelled");
    EXPECT_FALSE(pair.client.is_open());
  };
  run(close_it());
}

TEST_P(tls_transfer, a_second_read_or_write_is_refused) {
  auto twice = []() -> task<> {
    tls_pair pair = co_await make_good_pair();
    auto reads = [](tls_stream& from) -> task<> { co_await read_to_the_end(from); };
    auto ends = [](tls_stream& one) -> task<> {
      co_await yield();
      co_await one.shutdown();
    };
    auto both =
        when_all(outcome_of(reads(pair.client)), outcome_of(reads(pair.client)), ends(pair.server));
    auto [one, two, done] = co_await std::move(both);
    EXPECT_EQ(one + two, "okusage_error");
  };
  run(twice());
}

// A write that the system takes at once counts against the turn's share, too.
TEST_P(tls_transfer, who_is_never_kept_waiting_lets_others_in) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: a simulated peer that does not read keeps its writer waiting";
  constexpr int writes = 300, others_turns = 3;
  int turns = 0;
  bool heard_of = false;
  auto other = [&]() -> task<> {
    for (; turns < others_turns; ++turns) co_await yield();
  };
  auto writer = [&](runtime& rt) -> task<> {
    tls_pair pair = co_await make_good_pair();
    co_await yield();
    rt.spawn(other());
    for (int i = 0; i < writes; ++i) {
      co_await pair.client.write_all("tick");
      heard_of = heard_of || turns == others_turns;
    }
  };
  runtime_options alone = options();
  alone.workers = 1;
  runtime rt(alone);
  rt.spawn(writer(rt));
  rt.run();
  EXPECT_TRUE(heard_of);
}

TEST_P(tls_transfer, over_pipes_and_sockets_of_the_unix_domain) {
  auto exchange = []() -> task<> {
    const tls_context trust = tls_context::client(trusting()),
                      self = tls_context::server(showing(good_identity()));
    auto there = pipe_stream::make(), back = pipe_stream::make();
    tls_pair pair;
    pair.client =
        tls_stream::client(trust, std::move(back.first), std::move(there.second), "good.test");
    pair.server = tls_stream::server(self, std::move(there.first), std::move(back.second));
    auto shaking = when_all(shake(pair.client), shake(pair.server));
    co_await std::move(shaking);
    const std::string bytes = some_bytes(200'000);
    auto both = when_all(send_and_end(pair.client, bytes), read_to_the_end(pair.server));
    auto [sent, got] = co_await std::move(both);
    EXPECT_TRUE(got == bytes);

    const std::string path = std::string("\0troupe tls ", 12) + running_test();
    auto listener = unix_listener::listen(path);
    tls_pair local;
    local.client = tls_stream::client(trust, unix_stream::connect(path), "good.test");
    local.server = tls_stream::server(self, co_await listener.accept());
    auto again = when_all(shake(local.client), shake(local.server));
    co_await std::move(again);
    auto also = when_all(send_and_end(local.server, bytes), read_to_the_end(local.client));
    auto [sent_too, got_too] = co_await std::move(also);
    EXPECT_TRUE(got_too == bytes);
  };
  run(exchange());
}

TEST_P(tls_transfer, the_end_of_the_program_ends_what_is_under_way) {
  const int before = open_files();
  {
    runtime rt(options());
    auto waits = [](runtime& runs) -> task<> {
      tls_pair pair = co_await make_good_pair();
      auto reads = [](tls_stream& from) -> task<> { co_await read_to_the_end(from); };
      auto writes = [](tls_stream& to) -> task<> {
        co_await to.write_all(std::string(20'000'000, 'x'));
      };
      auto stops = [](runtime& of) -> task<> {
        co_await sleep_for(5ms);
        of.stop(stop_mode::discard);
      };
      auto all = when_all(reads(pair.client), writes(pair.client), stops(runs));
      co_await std::move(all);
    };
    rt.spawn(waits(rt));
    rt.run();
  }
  EXPECT_EQ(open_files(), before);
}

TROUPE_TLS_TEST_EACH(tls_transfer);
INSTANTIATE_TEST_SUITE_P(
    backends, tls_damage,
    ::testing::Values(io_setting{{policy::simulated, 1, 1}, io_backend::simulated},
                      io_setting{{policy::simulated, 1, 2}, io_backend::simulated}),
    [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
