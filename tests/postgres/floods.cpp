// postgres::connection against a server that sends without end: it takes no more memory than its
// limits allow, keeps no turn busy, and says why it gives the connection up.
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>

#include "postgres/fixture.hpp"
#include "support/resident.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}
std::string message(char type, const std::string& body) {
  return type + number(static_cast<std::uint32_t>(body.size() + 4)) + body;
}
std::string text(std::string_view words) { return std::string(words) + '\0'; }

std::string report(const std::string& name, const std::string& value) {
  return message('S', text(name) + text(value));
}
// libpq looks at all former reports for each: few long ones take memory and not time.
std::string new_report(std::uint64_t i) {
  return report("setting_" + std::to_string(i), std::string(20'000, 'x'));
}
std::string notice(std::uint64_t i) {
  return message('N', "S" + text("NOTICE") + "C" + text("00000") + "M" +
                          text("number " + std::to_string(i)) + '\0');
}
std::string notification(std::uint64_t i) {
  return message('A', number(7) + text("news") + text("number " + std::to_string(i)));
}
std::string part_of_row(std::uint64_t i) {
  constexpr std::uint32_t endless = 100'000'000;
  if (i == 0) return 'D' + number(endless) + std::string("\0\1", 2) + number(endless - 10);
  return std::string(100, 'x');
}

std::string greeting() {
  return message('R', number(0)) + report("client_encoding", "UTF8") +
         report("server_version", "15.0") + message('K', number(7) + number(8)) + message('Z', "I");
}

// `greeted`: it answers like a PostgreSQL server until the first statement comes.
struct flood {
  const char* name;
  std::function<std::string(std::uint64_t)> next;
  bool greeted;
  const char* wants;  // how the call fails; null: it does not, and its caller gives up
};
const flood floods[] = {
    {"reports before the greeting", &new_report, false, "sends without end"},
    {"notices before the greeting", &notice, false, "sends without end"},
    {"reports", &new_report, true, "more bytes without a result"},
    {"a row without end", &part_of_row, true, "more bytes without a result"},
    {"notices", &notice, true, nullptr},
    {"notifications", &notification, true, nullptr},
};

// Ends when its client has closed the connection.
task<> serve(unix_listener listener, const flood& sends) {
  unix_stream peer = co_await listener.accept();
  try {
    std::array<char, 4'096> came{};
    static_cast<void>(co_await peer.read(came));
    const std::string begin = sends.greeted ? greeting() : message('R', number(0));
    co_await peer.write_all(begin);
    if (sends.greeted) static_cast<void>(co_await peer.read(came));
    if (sends.next(0).front() == 'D') {  // the answers before the first row
      const std::string zero_one("\0\1", 2), zero("\0\0", 2);
      co_await peer.write_all(message('1', "") + message('2', "") +
                              message('T', zero_one + text("t") + number(0) + zero + number(25) +
                                               "\377\377" + number(0xFFFFFFFF) + zero));
    }
    for (std::uint64_t i = 0;;) {
      std::string piece;
      while (piece.size() < 60'000) piece += sends.next(i++);
      co_await peer.write_all(piece);
    }
  } catch (const io_error&) {  // the client has closed the connection
  }
}

task<std::string> failure_of(postgres::connection db, std::chrono::milliseconds at_most) {
  try {
    auto asks = db.query<std::string>("SELECT 1");
    static_cast<void>(co_await std::move(asks).timeout(at_most));
  } catch (const timed_out&) {
    co_return "given up";
  } catch (const database::error& failed) {
    co_return failed.what();
  }
  co_return "none";
}

class postgres_floods : public conformance {};

// Greets its clients, and ends each connection at its first statement.
task<> end_each(unix_listener listener, std::shared_ptr<int> connections) {
  for (;;) {
    unix_stream peer = co_await listener.accept();
    ++*connections;
    try {
      std::array<char, 4'096> came{};
      static_cast<void>(co_await peer.read(came));
      co_await peer.write_all(greeting());
      static_cast<void>(co_await peer.read(came));
    } catch (const io_error&) {  // the client was faster
    }
  }
}

// A waiting statement moves to the next connection at most twice.
TEST_P(postgres_floods, connections_that_end_one_after_the_other_are_bounded) {
  const scratch folder;
  std::string failed;
  const auto connections = std::make_shared<int>(0);
  const auto test = [&](unix_listener listener, postgres::connection db) -> task<> {
    auto first = when_any(end_each(std::move(listener), connections), failure_of(db, 60'000ms));
    failed = std::get<1>(co_await std::move(first));
  };
  runtime rt(options());
  future<> done = rt.spawn(test(unix_listener::listen(folder / ".s.PGSQL.5432"),
                                postgres::connection(rt, "user=x host=" + (folder / ""))));
  rt.run();
  done.get();
  EXPECT_NE(failed.find("the connection was lost; the statement has done nothing"),
            std::string::npos)
      << failed;
  EXPECT_EQ(*connections, 3);
}

TEST_P(postgres_floods, are_bounded_and_end) {
  postgres::options chosen;
  chosen.bytes_max = 4 * 1024 * 1024;
  chosen.cancel_timeout = 20ms;
  for (const flood& sends : floods) {
    SCOPED_TRACE(sends.name);
    const scratch folder;
    std::string failed;
    const auto test = [&](unix_listener listener, postgres::connection db) -> task<> {
      auto both = when_all(serve(std::move(listener), sends),
                           failure_of(db, sends.wants == nullptr ? 200ms : 60'000ms));
      failed = std::get<1>(co_await std::move(both).timeout(120s));
    };
    const std::size_t before = resident_bytes();
    runtime rt(options());
    future<> done =
        rt.spawn(test(unix_listener::listen(folder / ".s.PGSQL.5432"),
                      postgres::connection(rt, "user=x host=" + (folder / ""), chosen)));
    rt.run();
    done.get();
    EXPECT_NE(failed.find(sends.wants == nullptr ? "given up" : sends.wants), std::string::npos)
        << failed;
    // libpq needs a multiple of the bytes that it keeps; AddressSanitizer keeps what was freed.
    EXPECT_LT(resident_bytes(), before + std::size_t{slow ? 768u : 256u} * 1024 * 1024);
  }
}

TROUPE_TEST_EACH(postgres_floods, each_thread_policy);

}  // namespace
}  // namespace troupe::test
