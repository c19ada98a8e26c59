// Unix datagrams arrive whole, in order and without loss, with the path of their sender. Each
// refusal has its own result.
#include <sys/stat.h>
#include <unistd.h>

#include "support/io.hpp"
#include "support/open_files.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class io_unix_datagram : public io_conformance {
 protected:
  std::string path(const char* name) const { return folder_ / name; }
  // Checks that the sockets' files are gone, too.
  void run(task<> what) const {
    io_conformance::run(std::move(what));
    EXPECT_NE(::access(path("a").c_str(), F_OK), 0);
    EXPECT_NE(::access(path("b").c_str(), F_OK), 0);
  }
  scratch folder_;
};

template <class Call>
std::errc error_of(Call call) {
  try {
    call();
    return {};
  } catch (const io_error& e) {
    return static_cast<std::errc>(e.code().value());
  }
}

TEST_P(io_unix_datagram, what_is_sent_comes_whole_with_its_sender) {
  for (const std::string& name :
       {path("a"), std::string("\0troupe.test.d.", 15) + std::to_string(::getpid())}) {
    auto use = [](std::string at, std::string own) -> task<> {
      auto here = unix_datagram::bind(at);
      auto named = unix_datagram::connect(at, own);
      auto nameless = unix_datagram::connect(at);
      std::array<char, 8> buffer;
      co_await named.send("one");
      const unix_message first = co_await here.receive(buffer);
      EXPECT_EQ(std::string_view(buffer.data(), first.bytes), "one");
      EXPECT_EQ(first.from, own);
      EXPECT_FALSE(first.truncated);
      EXPECT_TRUE(here.try_send("back", first.from));
      const unix_message back = co_await named.receive(buffer);
      EXPECT_EQ(std::string_view(buffer.data(), back.bytes), "back");
      EXPECT_EQ(back.from, at);
      co_await nameless.send("much too long");
      const unix_message cut = co_await here.receive(buffer);
      EXPECT_EQ(std::string_view(buffer.data(), cut.bytes), "much too");
      EXPECT_TRUE(cut.truncated);
      EXPECT_EQ(cut.from, "");
      co_await nameless.send("");
      const unix_message empty = co_await here.receive(buffer);
      EXPECT_EQ(empty.bytes, 0u);
    };
    run(use(name, path("b")));
  }
}

// Sends more than the system keeps for a receiver that does not read.
TEST_P(io_unix_datagram, who_sends_much_waits_for_room_and_loses_nothing) {
  constexpr int count = 300;
  int right = 0;
  auto use = [](std::string at, int& matching) -> task<> {
    auto here = unix_datagram::bind(at);
    auto sends = [](std::string to) -> task<> {
      auto peer = unix_datagram::connect(to);
      for (int i = 0; i < count; ++i) {
        const std::string number = std::to_string(i);
        co_await peer.send(number).timeout(20s);
      }
    };
    auto receives = [](unix_datagram& from, int& each) -> task<> {
      co_await sleep_for(5ms);  // by then the queue is full
      std::array<char, 8> buffer;
      for (int i = 0; i < count; ++i) {
        const unix_message came = co_await from.receive(buffer).timeout(20s);
        each += std::string_view(buffer.data(), came.bytes) == std::to_string(i) ? 1 : 0;
      }
    };
    co_await when_all(sends(at), receives(here, matching));
  };
  run(use(path("a"), right));
  EXPECT_EQ(right, count);
}

TEST_P(io_unix_datagram, each_refusal_has_its_own_answer) {
  auto use = [](std::string at, std::string other) -> task<> {
    EXPECT_THROW(unix_datagram::bind(""), option_error);
    EXPECT_THROW(unix_datagram::connect(std::string(108, 'x')), option_error);
    EXPECT_EQ(error_of([&] { unix_datagram::connect(at); }), std::errc::no_such_file_or_directory);
    auto here = unix_datagram::bind(at);
    EXPECT_EQ(error_of([&] { unix_datagram::bind(at); }), std::errc::address_in_use);
    EXPECT_EQ(error_of([&] { static_cast<void>(here.try_send("x", other)); }),
              std::errc::no_such_file_or_directory);
    auto peer = unix_datagram::connect(at, other);
    // While no task receives, the queue becomes full. A sender that is not connected is told so,
    // and a connected one waits.
    auto stranger = unix_datagram::bind(other + "c");
    bool full = false;
    for (int i = 0; i < 10'000 && !full; ++i) full = !stranger.try_send("x", at);
    EXPECT_TRUE(full);
    bool late = false;
    try {
      co_await peer.send("x").timeout(2ms);
    } catch (const timed_out&) {
      late = true;
    }
    EXPECT_TRUE(late);
    std::array<char, 4> buffer;
    bool nothing = false;
    try {
      co_await peer.receive(buffer).timeout(2ms);
    } catch (const timed_out&) {
      nothing = true;
    }
    EXPECT_TRUE(nothing);
    here.close();
    std::errc gone{};
    try {
      co_await peer.send("x").timeout(20s);
    } catch (const io_error& e) {
      gone = static_cast<std::errc>(e.code().value());
    }
    EXPECT_EQ(gone, std::errc::connection_refused);
    EXPECT_EQ(error_of([&] { unix_datagram::bind(at); }), std::errc{}) << "the one before has gone";
  };
  run(use(path("a"), path("b")));
}

TEST_P(io_unix_datagram, closing_ends_a_wait_and_a_weak_one_keeps_nobody) {
  bool was_cancelled = false;
  auto use = [](std::string at, std::string other, bool& ended) -> task<> {
    auto here = unix_datagram::bind(at);
    auto waits = [](unix_datagram& on, bool& over) -> task<> {
      std::array<char, 4> buffer;
      try {
        co_await on.receive(buffer);
      } catch (const cancelled&) {
        over = true;
      }
    };
    auto closes = [](unix_datagram& on) -> task<> {
      co_await sleep_for(1ms);
      on.close();
    };
    co_await when_all(waits(here, ended), closes(here));
    auto hears = [](std::string name) -> task<> {
      unix_datagram_options weak;
      weak.weak = true;
      auto for_ever = unix_datagram::bind(name, weak);
      std::array<char, 4> buffer;
      co_await for_ever.receive(buffer);
    };
    co_await hears(other);
  };
  run(use(path("a"), path("b"), was_cancelled));
  EXPECT_TRUE(was_cancelled);
}

}  // namespace

TROUPE_IO_TEST_EACH(io_unix_datagram);

}  // namespace troupe::test
