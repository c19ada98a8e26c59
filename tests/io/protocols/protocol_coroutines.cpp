// Callbacks of protocol classes that are coroutines: their arguments stay until they have ended,
// although each suspends before it reads them. AddressSanitizer finds what was freed too early,
// because contexts are poisoned.
#include <atomic>
#include <chrono>
#include <stdexcept>

#include "support/counted.hpp"
#include "support/io.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using lines = std::span<const std::string_view>;
using bytes = std::span<const std::byte>;

std::string_view text_of(bytes of) { return {reinterpret_cast<const char*>(of.data()), of.size()}; }

class io_protocol_coroutines : public io_conformance {
 protected:
  // Writes beside the task that reads: a peer that answers at once may stop reading until its
  // answer is read.
  static task<> say(tcp_stream& to, std::vector<std::string> pieces) {
    try {
      for (const std::string& piece : pieces) {
        co_await to.write_all(piece);
        co_await sleep_for(1ms);
      }
      to.shutdown_write();
    } catch (const io_error&) {  // the server has ended first
    }
  }
  // Sends these pieces to a server of P, and notes what comes back until the connection ends.
  template <class P, class... Args>
  static task<> served(runtime& rt, std::vector<std::string> pieces, std::string& answer,
                       protocol_options how, Args... args) {
    std::stop_source end;
    how.stop = end.get_token();
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    rt.spawn(serve_protocol<P>(std::move(listener), how, args...));
    tcp_stream peer = co_await tcp_stream::connect(at);
    future<> saying = rt.spawn(say(peer, std::move(pieces)));
    std::array<char, 1'000> part;
    try {
      for (;;) {
        const std::size_t got = co_await peer.read(part);
        if (got == 0) break;
        answer.append(part.data(), got);
      }
    } catch (const io_error&) {
      answer += "[reset]";
    }
    co_await std::move(saying);
    end.request_stop();
  }
  template <class P, class... Args>
  std::string answer_to(std::vector<std::string> pieces, Args... args) {
    std::string answer;
    {
      runtime rt(options());
      rt.spawn(served<P>(rt, std::move(pieces), answer, protocol_options(), args...));
      rt.run();
    }
    EXPECT_EQ(live.load(), 0);
    EXPECT_EQ(count_contexts().active, 0);
    return answer;
  }
};

// Allocates in the context, so that memory that was freed too early would be written over.
std::string_view into(context& memory, std::string_view text) {
  auto* const copy = static_cast<char*>(memory.allocate(text.size(), 1));
  return {copy, text.copy(copy, text.size())};
}

struct by_lines : counted {
  task<std::string> lines_received(connection& by, lines all) {
    co_await sleep_for(1us);
    std::pmr::string text(&by.memory());
    for (const std::string_view one : all) {
      static_cast<void>(into(by.memory(), "0123456789abcdef0123456789abcdef"));
      co_await sleep_for(1us);
      ((text += '<') += one) += '>';
    }
    co_return std::string(text);
  }
};

TEST_P(io_protocol_coroutines, the_lines_stay) {
  EXPECT_EQ(answer_to<by_lines>({"one\ntwo\r\nthree\n"}), "<one><two><three>");
  EXPECT_EQ(answer_to<by_lines>({"on", "e\nt", "wo\r", "\nthree\nfour"}), "<one><two><three>");
  const std::string much(9'000, 'm');
  std::string wanted;
  for (int i = 0; i < 4; ++i) wanted += "<" + much + ">";
  EXPECT_EQ(
      answer_to<by_lines>({much + "\n" + much.substr(1), "m\n" + much + "\r\n" + much + "\n"}),
      wanted);
}

struct by_references : counted {
  task<std::string> lines_received(const lines& all) {
    co_await sleep_for(1us);
    std::string text;
    for (const std::string_view& one : all) text += "<" + std::string(one) + ">";
    co_return text;
  }
};
struct bytes_by_reference : counted {
  task<std::string> data_received(const bytes& came) {
    co_await sleep_for(1us);
    co_return std::string(text_of(came));
  }
};
struct text_by_reference : counted {
  task<std::string> data_received(connection&, const std::string_view& came) {
    co_await sleep_for(1us);
    co_return std::string(came);
  }
};
struct bytes_by_value : counted {
  // Returns a view of the bytes where they came.
  task<bytes> data_received(bytes came) {
    co_await sleep_for(1us);
    co_return came;
  }
};

TEST_P(io_protocol_coroutines, what_is_taken_by_reference_stays) {
  EXPECT_EQ(answer_to<by_references>({"one\ntw", "o\n"}), "<one><two>");
  const std::string much(20'000, 'x');
  for (const std::string& said : {std::string("short"), much}) {
    EXPECT_EQ(answer_to<bytes_by_reference>({said}), said);
    EXPECT_EQ(answer_to<text_by_reference>({said}), said);
    EXPECT_EQ(answer_to<bytes_by_value>({said, said}), said + said);
  }
}

// Each kind of callback as a coroutine, with views of the context as results.
struct all_of_them : counted {
  explicit all_of_them(std::string* to) : told(to) {}
  task<std::string_view> connection_made(connection& by) {
    co_await sleep_for(1us);
    co_return into(by.memory(), "made ");
  }
  task<std::optional<std::string_view>> data_received(connection& by, std::string_view came) {
    co_await sleep_for(1us);
    by.send(" and ");
    co_return std::optional<std::string_view>(into(by.memory(), came));
  }
  task<std::pmr::string> send_complete(connection& by) {
    co_await sleep_for(1us);
    const bool last = sent++ == 2;
    if (last) by.close();
    co_return std::pmr::string(sent == 2 ? "sent " : "", &by.memory());
  }
  task<std::string> connection_closed(connection& by) {
    co_await sleep_for(1us);
    *told += into(by.memory(), "closed ");
    co_return std::string("dropped");
  }
  int sent = 0;
  std::string* told;
};

TEST_P(io_protocol_coroutines, every_callback_may_be_one) {
  std::string told;
  // one byte, so that it cannot come in parts
  EXPECT_EQ(answer_to<all_of_them>({"s"}, &told), "made s and sent ");
  EXPECT_EQ(told, "closed ");
}

// An error whose text lies in the connection's context.
struct kept_error : std::exception {
  kept_error(context& in, std::string_view why) : text(into(in, std::string(why) + '\0')) {}
  const char* what() const noexcept override { return text.data(); }
  std::string_view text;
};
constexpr std::string_view why =
    "a text that is longer than a string holds by itself, and so lies in the context";

struct fails_and_hears : counted {
  explicit fails_and_hears(std::string* to) : told(to) {}
  task<std::string> data_received(connection& by, std::string_view came) {
    co_await sleep_for(1us);
    throw kept_error(by.memory(), std::string(why) + std::string(came));
  }
  task<std::string> error(connection& by, const std::exception_ptr& what) {
    co_await sleep_for(1us);
    static_cast<void>(into(by.memory(), why));
    try {
      std::rethrow_exception(what);
    } catch (const std::exception& e) {
      *told += e.what();
    }
    co_return std::string("dropped");
  }
  task<> connection_closed() {
    co_await sleep_for(1us);
    *told += " closed";
  }
  std::string* told;
};
struct fails_by_value : fails_and_hears {
  using fails_and_hears::fails_and_hears;
  task<> error(std::exception_ptr what) {
    co_await sleep_for(1us);
    try {
      std::rethrow_exception(what);
    } catch (const std::exception& e) {
      *told += e.what();
    }
  }
};

TEST_P(io_protocol_coroutines, error_gets_what_was_thrown_in_the_context) {
  std::string told;
  answer_to<fails_and_hears>({"!"}, &told);
  EXPECT_EQ(told, std::string(why) + "! closed");
  told.clear();
  answer_to<fails_by_value>({"!"}, &told);
  EXPECT_EQ(told, std::string(why) + "! closed");
}

struct fails : counted {
  task<std::string> lines_received(connection& by, lines all) {
    co_await sleep_for(1us);
    throw kept_error(by.memory(), std::string(why) + std::string(all.front()));
  }
};
struct fails_in_error : counted {
  task<> lines_received(lines all) {
    co_await sleep_for(1us);
    throw std::runtime_error(std::string(all.front()));
  }
  task<> error(connection& by, std::exception_ptr) {
    co_await sleep_for(1us);
    throw kept_error(by.memory(), why);
  }
};
struct fails_in_closed : counted {
  task<> connection_closed(connection& by) {
    co_await sleep_for(1us);
    throw kept_error(by.memory(), why);
  }
};

// Returns what the run of a program throws.
template <class Program>
std::string thrown_by(const runtime_options& how, Program program) {
  runtime rt(how);
  rt.spawn(program(rt));
  try {
    rt.run();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing";
}

TEST_P(io_protocol_coroutines, what_they_throw_in_the_context_can_be_read_by_who_runs_the_program) {
  std::string ignored;
  const auto with = [&]<class P>(std::type_identity<P>) {
    return thrown_by(options(), [&](runtime& rt) {
      return served<P>(rt, {"one\n"}, ignored, protocol_options());
    });
  };
  EXPECT_EQ(with(std::type_identity<fails>()), std::string(why) + "one");
  EXPECT_EQ(with(std::type_identity<fails_in_error>()), why);
  EXPECT_EQ(with(std::type_identity<fails_in_closed>()), why);
  EXPECT_EQ(count_contexts().active, 0);
}

// The program ends while each callback waits for an event that never comes.
struct stays : counted {
  stays(int in, std::shared_ptr<event> to) : where(in), begun(std::move(to)) {}
  task<> stay(connection& by, std::string_view given) {
    std::pmr::string kept(given, &by.memory());
    kept += why;
    begun->set();
    event never;
    co_await never.wait();
  }
  task<std::string> connection_made(connection& by) {
    if (where == 0) co_await stay(by, "made");
    co_return std::string();
  }
  task<std::string> lines_received(connection& by, const lines& all) {
    if (where == 1) co_await stay(by, all.front());
    if (where == 3) throw kept_error(by.memory(), why);
    if (where == 4) by.close();
    co_return std::string("sent");
  }
  task<std::string> send_complete(connection& by) {
    if (where == 2) co_await stay(by, "sent");
    co_return std::string();
  }
  task<> error(connection& by, const std::exception_ptr& what) {
    if (where == 3) co_await stay(by, "error");
    EXPECT_NE(what, nullptr);
  }
  task<> connection_closed(connection& by) {
    if (where == 4) co_await stay(by, "closed");
  }
  const int where;
  std::shared_ptr<event> begun;
};

TEST_P(io_protocol_coroutines, each_may_be_stopped_in_flight) {
  for (int where = 0; where < 5; ++where) {
    {
      runtime rt(options());
      auto begun = std::make_shared<event>();
      auto client = [](runtime& in, int in_which, std::shared_ptr<event> stopping) -> task<> {
        auto listener = tcp_listener::listen(endpoint::loopback(0));
        const endpoint at = listener.local();
        in.spawn(
            serve_protocol<stays>(std::move(listener), protocol_options(), in_which, stopping));
        tcp_stream peer = co_await tcp_stream::connect(at);
        co_await peer.write_all("one\ntwo\n");
        co_await stopping->wait();
        in.stop();
        event never;
        co_await never.wait();
      };
      rt.spawn(client(rt, where, begun));
      rt.run();
      EXPECT_TRUE(begun->is_set()) << where;
    }
    EXPECT_EQ(live.load(), 0) << where;
    EXPECT_EQ(count_contexts().active, 0) << where;
  }
}

}  // namespace

TROUPE_IO_TEST_EACH(io_protocol_coroutines);

}  // namespace troupe::test
