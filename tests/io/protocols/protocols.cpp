// Protocol classes: when each callback is called, that its result is sent, and what happens to
// errors and memory.
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "support/counted.hpp"
#include "support/io.hpp"
#include "support/open_files.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using lines = std::span<const std::string_view>;

class io_protocols : public io_conformance {
 protected:
  // Runs a server of P and a task that is its client. The server is stopped when the client has
  // ended.
  template <class P, class... Args>
  static task<> serving(runtime& rt, protocol_options how, auto client, Args... args) {
    std::stop_source end;
    how.stop = end.get_token();
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    rt.spawn(serve_protocol<P>(std::move(listener), how, args...));
    co_await client(at);
    end.request_stop();
  }
  template <class P, class Client, class... Args>
  void serve(const protocol_options& how, Client client, Args... args) {
    const int before = open_files();
    {
      runtime rt(options());
      rt.spawn(serving<P>(rt, how, client, args...));
      rt.run();
    }
    EXPECT_EQ(open_files(), before);
    EXPECT_EQ(live.load(), 0);
  }
  static task<std::string> all_of(tcp_stream& from) {
    std::string all;
    std::array<char, 3'000> part;
    for (;;) {
      const std::size_t bytes = co_await from.read(part);
      if (bytes == 0) co_return all;
      all.append(part.data(), bytes);
    }
  }
  // Writes beside the task that reads: a peer that answers at once may stop reading until its
  // answer is read.
  static task<> say(std::shared_ptr<tcp_stream> to, std::string said, bool is_all) {
    try {
      co_await to->write_all(std::move(said));
      if (is_all) to->shutdown_write();
    } catch (const io_error&) {
      // The task that reads finds out.
    }
  }
  static task<std::string> answer(endpoint at, std::string said) {
    tcp_stream connected = co_await tcp_stream::connect(at);
    auto peer = std::make_shared<tcp_stream>(std::move(connected));
    spawn(say(peer, std::move(said), true));
    std::string all = co_await all_of(*peer);
    co_return all;
  }
};

struct echoes : counted {
  std::span<const std::byte> data_received(std::span<const std::byte> bytes) { return bytes; }
};

TEST_P(io_protocols, what_data_received_returns_is_sent) {
  auto client = [](endpoint at) -> task<> {
    tcp_stream connected = co_await tcp_stream::connect(at);
    auto peer = std::make_shared<tcp_stream>(std::move(connected));
    for (const std::size_t size : {1u, 100u, 2'048u, 30'000u, 1u}) {
      const std::string said(size, 'e');
      spawn(say(peer, said, false));
      std::string back(size, '\0');
      co_await peer->read_exact(std::span<char>(back));
      EXPECT_TRUE(said == back);
    }
  };
  serve<echoes>({}, client);
}

struct shouts : counted {
  static constexpr std::string_view initial_bytes = "first\n";
  std::string connection_made(connection& by) {
    EXPECT_EQ(&this_context(), &by.memory());
    return "made\n";
  }
  std::pmr::string lines_received(lines all) {
    std::pmr::string text(&this_context());
    text += std::to_string(all.size());
    for (const std::string_view one : all) (text += ' ') += one;
    text += '\n';
    return text;
  }
};

TEST_P(io_protocols, lines_come_whole_however_they_are_cut) {
  auto client = [](endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    std::array<char, 11> greeting;
    co_await peer.read_exact(greeting);
    EXPECT_EQ(std::string_view(greeting.data(), greeting.size()), "first\nmade\n");
    for (const char c : std::string_view("one\r\n")) co_await peer.write_all(std::string(1, c));
    std::array<char, 6> one;
    co_await peer.read_exact(one);
    EXPECT_EQ(std::string_view(one.data(), one.size()), "1 one\n");
    co_await peer.write_all("\n");
    std::array<char, 3> empty;
    co_await peer.read_exact(empty);
    EXPECT_EQ(std::string_view(empty.data(), empty.size()), "1 \n");
    co_await peer.write_all("not ended");
    peer.shutdown_write();
    const std::string rest = co_await all_of(peer);
    EXPECT_EQ(rest, "");
  };
  serve<shouts>({}, client);
}

TEST_P(io_protocols, a_line_may_be_as_long_as_the_limit_however_its_end_is_cut) {
  protocol_options narrow;
  narrow.line_bytes_max = 4;
  auto client = [](endpoint at) -> task<> {
    for (const std::string_view end : {"\n", "\r\n"}) {
      tcp_stream peer = co_await tcp_stream::connect(at);
      std::array<char, 11> greeting;
      co_await peer.read_exact(greeting);
      co_await peer.write_all("four");
      std::array<char, 7> back{};
      try {
        for (const char c : end) {
          co_await sleep_for(2ms);
          co_await peer.write_all(std::string(1, c));
        }
        co_await peer.read_exact(back);
      } catch (const error& e) {
        ADD_FAILURE() << e.what();
      }
      EXPECT_EQ(std::string_view(back.data(), back.size()), "1 four\n");
    }
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all("fours\n");
    const std::string none = co_await all_of(peer);
    EXPECT_EQ(none, "first\nmade\n");
  };
  serve<shouts>(narrow, client);
}

TEST_P(io_protocols, the_lines_before_one_that_is_too_long_are_answered) {
  protocol_options narrow;
  narrow.line_bytes_max = 4;
  auto client = [](endpoint at) -> task<> {
    for (const std::string_view said : {"one\ntwo\ntoo long\nnone\n", "one\ntwo\ntoo long"}) {
      tcp_stream peer = co_await tcp_stream::connect(at);
      co_await peer.write_all(said);
      std::string all = co_await all_of(peer);
      // The lines may come in one call or in two.
      std::erase_if(all, [](char c) { return c == '\n' || (c >= '0' && c <= '9'); });
      EXPECT_EQ(all, "firstmade one two");
    }
  };
  serve<shouts>(narrow, client);
}

struct answers_at_length {
  static constexpr std::size_t bytes = 1'000'000;
  explicit answers_at_length(std::atomic<int>* of) : sent(of) {}
  std::string data_received(std::string_view) { return std::string(bytes, 'x'); }
  void send_complete() { ++*sent; }
  std::atomic<int>* sent;
};

// This holds, too, for a peer that keeps sending: closing the connection at once would reset it.
TEST_P(io_protocols, what_was_sent_before_the_stop_is_read) {
  std::atomic<int> sent{0};
  auto program = [&](runtime& rt) -> task<> {
    protocol_options how;
    std::stop_source end;
    how.stop = end.get_token();
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tcp_stream peer = co_await tcp_stream::connect(listener.local());
    rt.spawn(serve_protocol<answers_at_length>(std::move(listener), how, &sent));
    co_await peer.write_all("x");
    for (int i = 0; i < 100 && sent == 0; ++i) co_await sleep_for(1ms);
    end.request_stop();
    co_await sleep_for(5ms);
    std::size_t got = 0;
    try {
      co_await peer.write_all("y");
      co_await sleep_for(5ms);
      std::array<char, 4096> part;
      for (std::size_t bytes = 1; bytes != 0; got += bytes) bytes = co_await peer.read(part);
    } catch (const io_error& e) {
      ADD_FAILURE() << e.what();
    }
    EXPECT_EQ(got, answers_at_length::bytes);
  };
  runtime rt(options());
  rt.spawn(program(rt));
  rt.run();
}

// The lines come in order, however many each call gets.
struct repeats : counted {
  std::string lines_received(lines all) {
    std::string text;
    for (const std::string_view one : all) text += std::string(one) + ";";
    return text;
  }
};

TEST_P(io_protocols, no_line_is_lost_or_split) {
  auto client = [](endpoint at) -> task<> {
    std::string said, wanted;
    for (int i = 0; i < 3'000; ++i) {
      said += std::to_string(i) + (i % 3 == 0 ? "\r\n" : "\n");
      wanted += std::to_string(i) + ";";
    }
    const std::string back = co_await answer(at, said);
    EXPECT_TRUE(back == wanted) << back.size();
  };
  serve<repeats>({}, client);
}

struct seen {
  std::vector<std::string> errors;
  int closed = 0;
  std::mutex mutex;
};

struct tells : counted {
  explicit tells(seen* to) : told(to) {}
  void lines_received(connection& by, lines all) {
    if (all.front() == "throw") throw std::runtime_error("thrown by a callback");
    by.send("never mind\n");
    by.send("bye\n");
    by.close();
  }
  void error(std::exception_ptr what) {
    const std::lock_guard lock(told->mutex);
    try {
      std::rethrow_exception(what);
    } catch (const std::exception& e) {
      told->errors.emplace_back(e.what());
    }
  }
  void connection_closed() {
    const std::lock_guard lock(told->mutex);
    ++told->closed;
  }
  seen* told;
};

TEST_P(io_protocols, an_exception_goes_to_error_and_ends_the_connection) {
  seen told;
  auto client = [](endpoint at) -> task<> {
    const std::string thrown = co_await answer(at, "throw\n");
    EXPECT_EQ(thrown, "");
    const std::string said = co_await answer(at, "hello\nmore\nand more that nobody reads");
    EXPECT_EQ(said, "never mind\nbye\n");
    const std::string long_line = co_await answer(at, std::string(70'000, 'x'));
    EXPECT_EQ(long_line, "");
  };
  auto tolerant = [&client](endpoint at) -> task<> {
    try {
      co_await client(at);
    } catch (const io_error& e) {
      // The server does not read all of the longest line.
      EXPECT_TRUE(e.code() == std::errc::connection_reset || e.code() == std::errc::broken_pipe)
          << e.what();
    }
  };
  serve<tells>({}, tolerant, &told);
  EXPECT_EQ(told.closed, 3);
  EXPECT_EQ(told.errors.size(), 2u);
  if (told.errors.size() == 2) {
    EXPECT_EQ(told.errors[0], "thrown by a callback");
    EXPECT_NE(told.errors[1].find("line_bytes_max"), std::string::npos);
  }
}

// The connection ends either because the callback closes it, or because the server's stop comes
// while the callback runs.
struct ends_late : tells {
  using tells::tells;
  task<std::string> data_received(connection& by, std::string_view said) {
    if (said == "c") by.close();
    co_await sleep_for(50ms);
    co_return "bye\n";
  }
  void lines_received(connection&, lines) = delete;
};

TEST_P(io_protocols, a_peer_that_stays_is_waited_for_once_and_is_no_error) {
  if (threaded()) GTEST_SKIP() << "needs the simulated policy: takes seconds that are not virtual";
  for (const bool by_stop : {false, true}) {
    seen told;
    auto program = [&](runtime& rt) -> task<> {
      protocol_options how;
      std::stop_source end;
      how.stop = end.get_token();
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      tcp_stream peer = co_await tcp_stream::connect(listener.local());
      rt.spawn(serve_protocol<ends_late>(std::move(listener), how, &told));
      co_await peer.write_all(by_stop ? "s" : "c");
      co_await sleep_for(10ms);
      if (by_stop) end.request_stop();
      const std::string said = co_await all_of(peer);
      EXPECT_EQ(said, "bye\n");
      co_await sleep_for(3s);  // sleeps: longer than the server waits for the peer
      EXPECT_EQ(told.closed, 1);
      end.request_stop();
    };
    runtime rt(options());
    rt.spawn(program(rt));
    rt.run();
    EXPECT_TRUE(told.errors.empty());
  }
}

struct throws_again : counted {
  void data_received(std::string_view) { throw std::runtime_error("first"); }
  void error(std::exception_ptr) { throw std::runtime_error("second"); }
};
struct throws_once : counted {
  void data_received(std::string_view) { throw std::runtime_error("only"); }
};

TEST_P(io_protocols, what_nobody_takes_is_a_failure_of_the_program) {
  auto client = [](endpoint at) -> task<> {
    try {
      static_cast<void>(co_await answer(at, "x"));
    } catch (const io_error&) {
    }
  };
  const auto failure = [&]<class P>(P*) {
    try {
      serve<P>({}, client);
    } catch (const std::runtime_error& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(failure(static_cast<throws_again*>(nullptr)), "second");
  EXPECT_EQ(failure(static_cast<throws_once*>(nullptr)), "only");
  EXPECT_EQ(live.load(), 0);
}

struct sends_files : counted {
  explicit sends_files(std::string from) : path(std::move(from)) {}
  file_to_send connection_made() { return {.path = path, .before = "<", .after = ">"}; }
  std::optional<file_to_send> send_complete() {
    if (++sent > 2) return std::nullopt;
    return file_to_send{.path = path, .offset = 3, .bytes = 4};
  }
  std::string path;
  int sent = 0;
};

TEST_P(io_protocols, files_and_ranges_of_them_are_sent) {
  const scratch folder;
  auto client = [](endpoint at) -> task<> {
    const std::string all = co_await answer(at, "");
    EXPECT_EQ(all, "<0123456789>34563456");
  };
  serve<sends_files>({}, client, folder.put("digits", "0123456789"));
}

struct sends_folder : counted {
  explicit sends_folder(std::string from) : path(std::move(from)) {}
  file_to_send connection_made() { return {.path = path}; }
  std::string path;
};

// A folder can be opened but not read. The peer has no part in this failure.
TEST_P(io_protocols, a_folder_that_is_to_be_sent_is_a_failure) {
  const scratch folder;
  auto client = [](endpoint at) -> task<> { static_cast<void>(co_await answer(at, "")); };
  const std::string path = folder / "";
  std::string failure;
  try {
    serve<sends_folder>({}, client, path);
  } catch (const io_error& e) {
    failure = e.what();
  }
  EXPECT_NE(failure.find(path), std::string::npos) << failure;
}

struct counts_each {
  static inline std::atomic<int> now{0}, most{0}, all{0};
  counts_each() {
    ++all;
    const int open = ++now;
    for (int seen = most.load(); seen < open && !most.compare_exchange_weak(seen, open);) {
    }
  }
  ~counts_each() { --now; }
  std::string_view data_received(std::string_view text) { return text; }
};

TEST_P(io_protocols, no_more_connections_are_accepted_than_allowed) {
  counts_each::most = counts_each::all = 0;
  std::atomic<int> done{0};
  auto one = [&done](endpoint at) -> task<> {
    const std::string said = co_await answer(at, "hello");
    EXPECT_EQ(said, "hello");
    ++done;
  };
  auto client = [&](endpoint at) -> task<> {
    std::vector<future<>> all;
    for (int i = 0; i < 30; ++i) all.push_back(spawn(one(at)));
    for (future<>& each : all) co_await std::move(each);
  };
  protocol_options few;
  few.connections_max = 3;
  serve<counts_each>(few, client);
  EXPECT_EQ(done.load(), 30);
  EXPECT_EQ(counts_each::all.load(), 30);
  EXPECT_LE(counts_each::most.load(), 3);
  EXPECT_EQ(counts_each::now.load(), 0);
}

struct slow_coroutines : counted {
  task<std::string> data_received(connection& by, std::string_view text) {
    std::pmr::string kept(text, &by.memory());
    co_await sleep_for(100us);
    kept += "!";
    co_return std::string(kept);
  }
};

TEST_P(io_protocols, callbacks_may_be_coroutines) {
  auto client = [](endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    for (int i = 0; i < 5; ++i) {
      co_await peer.write_all("a text that is longer than a string holds by itself");
      std::string all;
      while (!all.ends_with('f')) {
        std::array<char, 100> part;
        const std::size_t bytes = co_await peer.read(part);
        for (const char c : std::string_view(part.data(), bytes))
          all += c == '!' ? "" : std::string(1, c);
      }
    }
  };
  serve<slow_coroutines>({}, client);
}

struct idle_one : counted {
  explicit idle_one(seen* to) : told(to) {}
  void connection_closed() {
    const std::lock_guard lock(told->mutex);
    ++told->closed;
  }
  seen* told;
};

struct remembering : counted {
  std::string_view data_received(connection& from, std::span<const std::byte> came) {
    auto copy = from.memory().make<std::pmr::string>(reinterpret_cast<const char*>(came.data()),
                                                     came.size());
    return *copy;
  }
};

TEST_P(io_protocols, a_connection_that_waits_has_no_heap) {
  const std::int64_t before = count_contexts().active;
  auto client = [before](endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    std::string all;
    for (int round = 0; round < 3; ++round) {
      // Seen at least once: a connection that was just accepted may still begin.
      bool waits = false;
      for (int looks = 0; !waits && looks < 1'000; ++looks) {
        waits = count_contexts().active == before;
        if (!waits) co_await sleep_for(1ms);
      }
      EXPECT_TRUE(waits);
      co_await peer.write_all("once more");
      std::array<char, 9> answer{};
      co_await peer.read_exact(answer);
      all.append(answer.data(), answer.size());
    }
    EXPECT_EQ(all, "once moreonce moreonce more");
  };
  serve<remembering>({}, client);
}

TEST_P(io_protocols, a_silent_peer_is_ended_and_no_failure) {
  seen told;
  auto client = [](endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    std::array<char, 1> none;
    const std::size_t bytes = co_await peer.read(none);
    EXPECT_EQ(bytes, 0u);
  };
  protocol_options hasty;
  hasty.idle_max = 5ms;
  serve<idle_one>(hasty, client, &told);
  EXPECT_EQ(told.closed, 1);
}

struct sends_much {
  sends_much(std::string path_of, bool by_file, std::size_t count)
      : path(std::move(path_of)), file(by_file), bytes(count) {}
  std::optional<file_to_send> connection_made(connection& by) {
    if (!file) by.send(std::string(bytes, 'x'));
    if (!file) return std::nullopt;
    return file_to_send{.path = path};
  }
  std::string send_complete(connection& by) {
    by.close();
    return "";
  }
  std::string path;
  bool file;
  std::size_t bytes;
};

// The limit is for a peer that takes nothing. Taking everything lasts twice as long as the limit.
// The system takes the bytes in parts of some megabytes, and each part lasts a tenth of the limit.
TEST_P(io_protocols, a_peer_that_takes_little_at_a_time_gets_all) {
  const scratch folder;
  const bool real = GetParam().by != io_backend::simulated;  // a simulated system has less space
  const std::size_t bytes_sent = real ? 64'000'000 : 2'000'000;
  const std::string path = folder.put("much", std::string(bytes_sent, 'x'));
  for (const bool by_file : {false, true}) {
    std::size_t got = 0;
    auto client = [&got](endpoint at) -> task<> {
      tcp_stream peer = co_await tcp_stream::connect(at);
      std::string part(256 * 1024, '\0');
      try {
        for (std::size_t bytes = 1; bytes != 0; got += bytes) {
          co_await sleep_for(3ms);
          bytes = co_await peer.read(std::span<char>(part));
        }
      } catch (const io_error&) {
      }
    };
    protocol_options hasty;
    hasty.stall_max = real ? (slow ? 2'000ms : 500ms) : 15ms;
    serve<sends_much>(hasty, client, path, by_file, bytes_sent);
    EXPECT_EQ(got, bytes_sent) << by_file;
  }
}

// Sends for as long as its peer reads, and never needs more memory than one callback takes.
struct generates {
  explicit generates(std::atomic<std::size_t>* of) : most(of) {}
  std::string_view connection_made(connection& by) { return more(by); }
  std::string_view send_complete(connection& by) { return more(by); }
  std::string_view more(connection& by) {
    auto* const text = static_cast<char*>(this_context().allocate(3'000, 1));
    std::memset(text, 'a' + ++calls % 26, 3'000);
    if (by.memory().bytes() > most->load()) most->store(by.memory().bytes());
    return {text, 3'000};
  }
  std::atomic<std::size_t>* most;
  int calls = 0;
};

TEST_P(io_protocols, a_connection_stays_as_small_as_its_greatest_callback) {
  std::atomic<std::size_t> most{0};
  constexpr auto wanted = static_cast<std::size_t>(fewer(3'000'000, 10));
  auto client = [](endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    std::array<char, 20'000> part;
    for (std::size_t all = 0; all < wanted;) {
      const std::size_t bytes = co_await peer.read(part);
      EXPECT_NE(bytes, 0u);
      if (bytes == 0) break;
      all += bytes;
    }
  };
  // A test before this one may have left an exception that keeps its context.
  const auto active_before = count_contexts().active;
  serve<generates>({}, client, &most);
  EXPECT_LE(most.load(), 4'096u + 16'384u);
  EXPECT_EQ(count_contexts().active, active_before);
}

struct asks : counted {
  static constexpr std::string_view initial_bytes = "one\ntwo\n";
  void lines_received(connection& by, lines all) {
    for (const std::string_view one : all) answers.emplace_back(one);
    if (answers.size() == 2) by.close();
  }
  std::vector<std::string> answers;
};
struct answers_lines : counted {
  std::string lines_received(lines all) {
    std::string text;
    for (const std::string_view one : all) text += "<" + std::string(one) + ">\n";
    return text;
  }
};

TEST_P(io_protocols, a_client_is_a_protocol_as_well) {
  auto client = [](endpoint at) -> task<> {
    const asks done = co_await connect_protocol<asks>(at);
    EXPECT_EQ(done.answers, (std::vector<std::string>{"<one>", "<two>"}));
  };
  serve<answers_lines>({}, client);
}

TEST_P(io_protocols, streams_of_other_kinds_have_protocols_too) {
  const std::string name =
      std::string("\0troupe-protocols-", 18) + std::to_string(::getpid()) + name_of(GetParam());
  auto program = [&name](runtime& rt) -> task<> {
    std::stop_source end;
    protocol_options how;
    how.stop = end.get_token();
    rt.spawn(serve_protocol<answers_lines>(unix_listener::listen(name), how));
    asks mine;
    co_await run_protocol(unix_stream::connect(name), mine);
    EXPECT_EQ(mine.answers.size(), 2u);
    end.request_stop();
  };
  runtime rt(options());
  rt.spawn(program(rt));
  rt.run();
  EXPECT_EQ(live.load(), 0);
}

// The runtime ends while connections are open.
TEST_P(io_protocols, connections_go_with_the_runtime) {
  const int before = open_files();
  seen told;
  {
    auto program = [&told](runtime& rt) -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      const endpoint at = listener.local();
      rt.spawn(serve_protocol<idle_one>(std::move(listener), protocol_options(), &told));
      tcp_stream one = co_await tcp_stream::connect(at);
      co_await sleep_for(5ms);
      rt.stop();
      std::array<char, 1> none;
      co_await one.read(none);
    };
    runtime rt(options());
    rt.spawn(program(rt));
    rt.run();
  }
  EXPECT_EQ(told.closed, 1);
  EXPECT_EQ(live.load(), 0);
  EXPECT_EQ(open_files(), before);
}

}  // namespace

TROUPE_IO_TEST_EACH(io_protocols);

}  // namespace troupe::test
