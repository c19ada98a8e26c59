#include "troupe/http/parser.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "http/h1/vectors.hpp"

namespace troupe::http {
namespace {

// Returns in words what the parser reads of these bytes: "head /path", "body [..]", "end" or
// "refused ..".
std::string read_all(parser& reading, std::string_view bytes,
                     const std::vector<std::size_t>& arrivals, bool ends = false) {
  std::string story, body, input;
  std::size_t given = 0, next = 0;
  const auto tell = [&](const std::string& event_text) {
    story += (story.empty() ? "" : "; ") + event_text;
  };
  for (;;) {
    const parser::step step = reading.next(input);
    body += step.body;
    if (step.what == parser::event::head) {
      const message_head& head = reading.head();
      tell(head.status != 0
               ? "head " + std::to_string(head.status)
               : "head " + std::string(head.method_name) + " " + std::string(head.path));
    }
    if (step.what == parser::event::end) {
      tell(body.empty() ? "end" : "end [" + body + "]");
      body.clear();
      for (const field field : reading.trailer())
        tell(std::string(field.name) + "=" + std::string(field.value));
    }
    if (step.what == parser::event::refused) {
      tell("refused " + std::to_string(status_of(reading.why())) + " " + text_of(reading.why()));
      return story;
    }
    input.erase(0, step.consumed);
    if (step.what != parser::event::need_more) continue;
    if (given == bytes.size()) break;
    const std::size_t upto = next < arrivals.size() ? arrivals[next++] : bytes.size();
    input.append(bytes.substr(given, upto - given));
    input.shrink_to_fit();  // moves the bytes elsewhere
    given = upto;
  }
  if (ends) {
    const parser::step last = reading.finish();
    tell(last.what == parser::event::end ? "finished [" + body + "]"
                                         : std::string("refused: ") + text_of(reading.why()));
  }
  return story;
}

std::string read_requests(std::string_view bytes, const std::vector<std::size_t>& arrivals = {}) {
  parser reading(side::requests);
  return read_all(reading, bytes, arrivals);
}

TEST(http_parser, refuses_a_chunk_by_its_announced_length) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const auto& [chunks, last] : {std::pair("a\r\n0123456789\r\n", "0\r\n\r\n"),
                                     std::pair("4\r\n0123\r\n6\r\n456789\r\n", "1\r\n")}) {
    parser reading(side::requests);
    for (int message = 0; message < 2; ++message) {
      ASSERT_EQ(reading.next(head).what, parser::event::head);
      if (message == 0) reading.limit_body(10);  // holds for this one message
      std::string_view input = chunks;
      while (!input.empty()) input.remove_prefix(reading.next(input).consumed);
      const auto end = reading.next(last).what;
      const bool too_much = message == 0 && std::string_view(last) == "1\r\n";
      EXPECT_EQ(end == parser::event::refused, too_much);
      EXPECT_EQ(reading.why(), too_much ? fault::body_too_large : fault::none);
      if (end != parser::event::end) break;
    }
  }
}

std::string in_words(const vector& expected) {
  return expected.wrong == fault::none
             ? std::string(expected.story)
             : std::string(expected.story) + (expected.story.empty() ? "" : "; ") + "refused " +
                   std::to_string(status_of(expected.wrong)) + " " + text_of(expected.wrong);
}

// A value over several lines has spaces for its line ends, in an answer (RFC 9112, 5.2).
struct folded_answer {
  const char* name;
  std::string_view bytes;
  const char* story;
};
constexpr std::string_view ok = "HTTP/1.1 200 OK\r\n", sized = "Content-Length: 2\r\n\r\nhi";
const folded_answer folded_answers[] = {
    {"with a space", "X: a\r\n b\r\n", "X=a   b; Content-Length=2; end [hi]"},
    {"with a tab", "X: a\r\n\tb\r\n", "X=a  \tb; Content-Length=2; end [hi]"},
    {"after the colon", "X:\r\n b\r\n", "X=b; Content-Length=2; end [hi]"},
    {"twice", "X: a\r\n b\r\n  c\r\n", "X=a   b    c; Content-Length=2; end [hi]"},
    {"behind white space", "X: a \r\n b \r\n", "X=a    b; Content-Length=2; end [hi]"},
    {"into nothing", "X: a\r\n \r\n", "X=a; Content-Length=2; end [hi]"},
    {"empty", "X:\r\n \r\n", "X=; Content-Length=2; end [hi]"},
    {"two values", "X: a\r\n b\r\nY: c\r\n\td\r\n",
     "X=a   b; Y=c  \td; Content-Length=2; end [hi]"},
    {"a line that looks like a field", "X: a\r\n Content-Length: 5\r\n",
     "X=a   Content-Length: 5; Content-Length=2; end [hi]"},
    {"the first line", " X: a\r\n", "refused"},
    {"with a LF", "X: a\n b\r\n", "refused"},
    {"with a CR", "X: a\r b\r\n", "refused"},
    {"a length over two lines", "Content-Length: 2\r\n 2\r\n", "refused"},
    {"a name", "X\r\n : a\r\n", "refused"},
};

std::string fields_of(const fields& all) {
  std::string story;
  for (const field field : all)
    story += std::string(field.name) + "=" + std::string(field.value) + "; ";
  return story;
}

std::string read_answer(std::string_view bytes, std::size_t split) {
  parser reading(side::responses);
  std::string story, body, input(bytes.substr(0, split));
  for (bool whole = false;;) {
    const parser::step step = reading.next(input);
    body += step.body;
    if (step.what == parser::event::refused) return "refused";
    if (step.what == parser::event::head) {
      EXPECT_EQ(reading.head().reason, "OK");
      story += fields_of(reading.head().fields);
    }
    if (step.what == parser::event::end)
      return story + "end [" + body + "]" + fields_of(reading.trailer());
    input.erase(0, step.consumed);
    if (step.what != parser::event::need_more) continue;
    if (std::exchange(whole, true)) return story + "more";
    input += bytes.substr(split);
    input.shrink_to_fit();  // moves the bytes elsewhere
  }
}

TEST(http_parser, folded_values_of_answers_are_unfolded) {
  for (const folded_answer& folded : folded_answers) {
    const std::string bytes = std::string(ok) + std::string(folded.bytes) + std::string(sized);
    for (std::size_t at = 1; at <= bytes.size(); ++at)
      ASSERT_EQ(read_answer(bytes, at), folded.story) << folded.name << ", split at " << at;
  }
}

TEST(http_parser, folded_trailers_and_framing_of_answers_are_unfolded) {
  const std::string chunks = "\r\n2\r\nhi\r\n0\r\nA: b\r\n c\r\n\r\n";
  const std::string coded = std::string(ok) + "Transfer-Encoding: chunked\r\n" + chunks;
  for (std::size_t at = 1; at <= coded.size(); ++at)
    ASSERT_EQ(read_answer(coded, at), "Transfer-Encoding=chunked; end [hi]A=b   c; ") << at;
  // Both are read as what they say, or not at all.
  const std::string folded = std::string(ok) + "Transfer-Encoding:\r\n chunked\r\n" + chunks,
                    length = std::string(ok) + "Content-Length:\r\n 2\r\n\r\nhi";
  for (std::size_t at = 1; at <= folded.size(); ++at)
    ASSERT_EQ(read_answer(folded, at), "Transfer-Encoding=chunked; end [hi]A=b   c; ") << at;
  for (std::size_t at = 1; at <= length.size(); ++at)
    ASSERT_EQ(read_answer(length, at), "Content-Length=2; end [hi]") << at;
}

TEST(http_parser, there_are_at_least_150_vectors) { EXPECT_GE(std::size(vectors), 150u); }

TEST(http_parser, vectors_whole) {
  for (const vector& tested : vectors)
    EXPECT_EQ(read_requests(tested.bytes), in_words(tested)) << tested.name;
}

TEST(http_parser, vectors_in_two_parts_split_anywhere) {
  for (const vector& tested : vectors) {
    for (std::size_t at = 1; at < tested.bytes.size(); ++at) {
      ASSERT_EQ(read_requests(tested.bytes, {at}), in_words(tested))
          << tested.name << ", split at " << at;
    }
  }
}

TEST(http_parser, vectors_byte_by_byte) {
  for (const vector& tested : vectors) {
    std::vector<std::size_t> each;
    for (std::size_t at = 1; at < tested.bytes.size(); ++at) each.push_back(at);
    EXPECT_EQ(read_requests(tested.bytes, each), in_words(tested)) << tested.name;
  }
}

// The result does not depend on how the bytes arrive, whatever they are.
TEST(http_parser, mutated_vectors_are_read_the_same_in_any_parts) {
  std::minstd_rand random(1);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random()) % bound; };
  const std::string_view strange(
      "\r\n \t:;,\0\x7f\xff"
      "0aG/",
      14);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(vectors[below(std::size(vectors))].bytes);
    for (std::size_t changes = 1 + below(3); changes > 0 && !bytes.empty(); --changes) {
      const std::size_t at = below(bytes.size());
      switch (below(4)) {
        case 0:
          bytes[at] = strange[below(strange.size())];
          break;
        case 1:
          bytes.erase(at, 1 + below(4));
          break;
        case 2:
          bytes.insert(at, 1, strange[below(strange.size())]);
          break;
        default:
          bytes.insert(at, bytes.substr(below(bytes.size()), below(20)));
      }
    }
    if (bytes.empty()) continue;
    const std::string whole = read_requests(bytes);
    std::vector<std::size_t> parts{1 + below(bytes.size())};
    while (parts.back() < bytes.size() && parts.size() < 6) {
      parts.push_back(parts.back() + 1 + below(bytes.size() - parts.back()));
    }
    ASSERT_EQ(read_requests(bytes, parts), whole) << bytes;
  }
}

TEST(http_parser, no_byte_below_space_is_taken_in_a_value_but_the_tab) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string request =
        "GET / HTTP/1.1\r\nHost: a\r\nX: a" + std::string(1, static_cast<char>(byte)) + "b\r\n\r\n";
    const bool taken = read_requests(request) == "head GET /; end";
    EXPECT_EQ(taken, byte == '\t' || (byte >= 32 && byte != 127)) << byte;
  }
}

TEST(http_parser, a_name_is_a_token) {
  const std::string_view tokens =
      "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (int byte = 0; byte < 256; ++byte) {
    if (byte == ':') continue;  // ends the name
    const std::string request =
        "GET / HTTP/1.1\r\nHost: a\r\na" + std::string(1, static_cast<char>(byte)) + "b: 1\r\n\r\n";
    const bool taken = read_requests(request) == "head GET /; end";
    EXPECT_EQ(taken, tokens.find(static_cast<char>(byte)) != std::string_view::npos && byte != 0)
        << byte;
  }
}

TEST(http_parser, a_target_has_printable_bytes_only) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string request =
        "GET /a" + std::string(1, static_cast<char>(byte)) + "b HTTP/1.1\r\nHost: a\r\n\r\n";
    const bool taken = read_requests(request).starts_with("head");
    EXPECT_EQ(taken, byte > 32 && byte < 127 && byte != '#') << byte;
  }
}

std::string request_of(std::size_t bytes) {
  std::string request = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  request.append(bytes - request.size() - 4, 'x');
  return request + "\r\n\r\n";
}

TEST(http_parser, a_head_as_large_as_may_be_and_one_byte_more) {
  EXPECT_EQ(read_requests(request_of(16 * 1024)), "head GET /; end");
  EXPECT_TRUE(read_requests(request_of(16 * 1024 + 1)).starts_with("refused 431"));
}

TEST(http_parser, as_many_fields_as_may_be_and_one_more) {
  const auto with = [](int fields) {
    std::string request = "GET / HTTP/1.1\r\nHost: a\r\n";
    for (int i = 1; i < fields; ++i) request += "X: 1\r\n";
    return read_requests(request + "\r\n");
  };
  EXPECT_EQ(with(100), "head GET /; end");
  EXPECT_TRUE(with(101).starts_with("refused 431"));
}

TEST(http_parser, a_target_as_long_as_may_be_and_one_byte_more) {
  const auto with = [](std::size_t bytes) {
    return read_requests("GET /" + std::string(bytes - 1, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n");
  };
  EXPECT_TRUE(with(8 * 1024).starts_with("head"));
  EXPECT_TRUE(with(8 * 1024 + 1).starts_with("refused 414"));
}

TEST(http_parser, chunk_extensions_are_bounded) {
  const auto with = [](std::size_t bytes) {
    return read_requests("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;" +
                         std::string(bytes, 'x') + "\r\nhello\r\n0\r\n\r\n");
  };
  EXPECT_EQ(with(1024 - 4), "head POST /; end [hello]");
  EXPECT_TRUE(with(1024 - 3).ends_with("the extensions of a chunk are too long"));
}

// One byte of each chunk belongs to an extension, or is a zero in front of the size.
TEST(http_parser, chunk_extensions_are_bounded_in_sum) {
  const auto with = [](std::size_t bytes, std::string_view of_each, std::string_view of_last,
                       std::size_t each_read) {
    std::string request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (std::size_t i = 0; i < bytes; ++i)
      request += (i % 2 == 0 ? "1" : "0a") + std::string(of_each) + "\r\n" +
                 (i % 2 == 0 ? "x" : "0123456789") + "\r\n";
    request += "0" + std::string(of_last) + "\r\n\r\n";
    parser_limits limits;
    limits.chunk_extension_bytes = 64;
    parser reading(side::requests, limits);
    std::string_view left = request;
    std::size_t there = std::min(each_read, left.size());
    for (;;) {
      const parser::step step = reading.next(left.substr(0, there));
      left.remove_prefix(step.consumed);
      there -= step.consumed;
      if (step.what == parser::event::refused) return std::string(text_of(reading.why()));
      if (step.what == parser::event::end) return std::string("whole");
      if (step.what == parser::event::need_more) {
        if (there == left.size()) return std::string("cut");
        there = std::min(there + each_read, left.size());
      }
    }
  };
  const std::string refused = "the extensions of all chunks together are too long";
  for (const std::size_t each_read : {1u, 7u, 1'000'000u}) {
    EXPECT_EQ(with(2000, "", "", each_read).substr(0, 5), refused.substr(0, 5))
        << "zeros in front of 1,000 sizes";
    EXPECT_EQ(with(128, "", "", each_read), "whole") << "64 zeros";
    EXPECT_EQ(with(128, "", ";x", each_read), refused);
    EXPECT_EQ(with(1, std::string(";") + std::string(63, 'x'), "", each_read), "whole");
    EXPECT_EQ(with(1, std::string(";") + std::string(64, 'x'), "", each_read), refused);
    EXPECT_EQ(with(1, "", std::string(";") + std::string(63, 'x'), each_read), "whole");
    EXPECT_EQ(with(1, "", std::string(";") + std::string(64, 'x'), each_read), refused);
  }
  // Any number of chunks is allowed when each line is as short as possible.
  std::string plain = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 1'000; ++i) plain += "1f\r\n0123456789abcdef0123456789abcde\r\n1\r\nx\r\n";
  EXPECT_EQ(read_requests(plain + "0\r\n\r\n").find("refused"), std::string::npos);
}

TEST(http_parser, what_the_head_says) {
  parser reading(side::requests);
  const std::string_view bytes =
      "POST http://b.example:81/a%20b?x=1?y HTTP/1.1\r\nHost: a\r\nX:  two words\t \r\nEmpty:\r\n"
      "Connection: x, Upgrade\r\nUpgrade: y\r\nExpect: 100-Continue\r\nContent-Length: "
      "3\r\n\r\nabc";
  ASSERT_EQ(reading.next(bytes).what, parser::event::head);
  const message_head& head = reading.head();
  EXPECT_EQ(head.method, method::post);
  EXPECT_EQ(head.path, "/a%20b");
  EXPECT_EQ(head.query, "x=1?y");
  EXPECT_EQ(head.host, "b.example:81");
  EXPECT_EQ(head.fields.size(), 7u);
  EXPECT_EQ(head.fields["x"], "two words");
  EXPECT_EQ(head.fields["empty"], "");
  EXPECT_TRUE(head.fields.has("EMPTY"));
  EXPECT_FALSE(head.fields.has("y"));
  EXPECT_EQ(head.length, 3u);
  EXPECT_TRUE(head.has_body && head.has_length && head.expects_continue && head.wants_upgrade &&
              head.keep_alive);
}

std::string read_response(std::string_view bytes, method asked = method::get) {
  std::string story;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    parser reading(side::responses);
    reading.answers(asked);
    std::vector<std::size_t> arrivals;
    if (at != 0) arrivals.push_back(at);
    std::string told = read_all(reading, bytes, arrivals, true);
    if (at != 0) {
      EXPECT_EQ(told, story) << "split at " << at;
    }
    story = std::move(told);
  }
  return story;
}

TEST(http_parser, responses) {
  EXPECT_EQ(read_response("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
            "head 200; end [hi]; finished []");
  EXPECT_EQ(read_response("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", method::head),
            "head 200; end; finished []");
  EXPECT_EQ(read_response("HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n"),
            "head 304; end; finished []");
  EXPECT_EQ(read_response("HTTP/1.1 204 \r\n\r\n"), "head 204; end; finished []");
  EXPECT_EQ(read_response("HTTP/1.1 200\r\n\r\nto the end"), "head 200; finished [to the end]");
  EXPECT_EQ(read_response("HTTP/1.0 200 OK\r\n\r\n"), "head 200; finished []");
  EXPECT_EQ(read_response("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: "
                          "chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\n"),
            "head 100; end; head 200; end [hi]; A=b; finished []");
  EXPECT_EQ(read_response("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi"),
            "head 200; refused: it ended in the middle");
  EXPECT_EQ(read_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhi"),
            "head 200; refused: it ended in the middle");
}

TEST(http_parser, responses_that_are_refused) {
  for (const char* bytes :
       {"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\nA: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
        "HTTP/1.1 200 OK\r\n A: b\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n"}) {
    parser reading(side::responses);
    EXPECT_TRUE(read_all(reading, bytes, {}).starts_with("refused")) << bytes;
  }
}

}  // namespace
}  // namespace troupe::http
