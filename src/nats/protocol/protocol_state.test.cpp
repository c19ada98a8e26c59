// nats::protocol_state: the commands that it sends for calls and for received messages, within one
// connection and over its end; and the rules for subjects and headers.
#include "nats/protocol/protocol_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "nats/protocol/subject.hpp"
#include "troupe/nats/error.hpp"

namespace troupe::nats {
namespace {

using kind = happened::kind;

std::string sent(protocol_state& by) {
  std::string bytes;
  by.take(bytes);
  return bytes;
}
// What the last of these bytes means.
happened feed(protocol_state& to, std::string_view bytes) {
  parser reads({});
  happened last;
  while (!bytes.empty()) {
    const parser::step step = reads.next(bytes);
    last = to.receive(step.outcome, reads);
    if (step.outcome == parser::event::broken) break;
    bytes.remove_prefix(step.consumed);
  }
  return last;
}

TEST(nats_protocol_state, subscribes_publishes_and_takes_messages) {
  protocol_state talk;
  talk.name_inbox("abc");
  talk.begin({});
  EXPECT_EQ(talk.subscribe("a.*", "", 0), 2u);
  EXPECT_EQ(talk.subscribe("b.>", "workers", 3), 3u);
  headers head;
  head.add("Kind", "x");
  talk.publish("a.b", "", nullptr, "hello");
  talk.publish("a.b", "r", &head, "hi");
  EXPECT_EQ(sent(talk),
            "SUB a.* 2\r\nSUB b.> workers 3\r\nUNSUB 3 3\r\nPUB a.b 5\r\nhello\r\n"
            "HPUB a.b r 21 23\r\nNATS/1.0\r\nKind: x\r\n\r\nhi\r\n");
  const happened got = feed(talk, "HMSG a.b 2 back 21 23\r\nNATS/1.0\r\nKind: x\r\n\r\nhi\r\n");
  EXPECT_EQ(got.outcome, kind::message);
  EXPECT_EQ(got.number, 2u);
  EXPECT_EQ(got.message.reply, "back");
  EXPECT_EQ(got.message.payload, "hi");
  EXPECT_EQ(got.message.head.get("Kind"), "x");
  EXPECT_EQ(got.message.head.get("kind"), std::nullopt);
  talk.unsubscribe(2);
  EXPECT_EQ(sent(talk), "UNSUB 2\r\n");
  EXPECT_EQ(feed(talk, "MSG a.b 2 0\r\n\r\n").outcome, kind::nothing);
  EXPECT_EQ(feed(talk, "MSG a.b 77 0\r\n\r\n").outcome, kind::nothing);
}

TEST(nats_protocol_state, joins_what_is_published_to_a_subject_before_it_is_taken) {
  constexpr std::size_t bytes_max = 20;
  protocol_state talk;
  talk.name_inbox("abc");
  talk.begin({});
  EXPECT_FALSE(talk.would_join("a", 5, bytes_max));
  talk.publish_joined("a", "B:", {"1", "one"}, bytes_max);
  EXPECT_TRUE(talk.would_join("a", 5, bytes_max));
  EXPECT_FALSE(talk.would_join("b", 5, bytes_max));
  talk.publish_joined("b", "B:", {"2", "other"}, bytes_max);
  talk.publish_joined("a", "B:", {"3", "three"}, bytes_max);
  EXPECT_EQ(talk.waiting(), 6u + 6 + 8);
  // Ten bytes more would be too many.
  EXPECT_FALSE(talk.would_join("a", 10, bytes_max));
  talk.publish_joined("a", "B:", {"4", "123456789"}, bytes_max);
  EXPECT_EQ(sent(talk),
            "PUB a 12\r\nB:1one3three\r\nPUB a 12\r\nB:4123456789\r\n"
            "PUB b 8\r\nB:2other\r\n");
  EXPECT_EQ(talk.waiting(), 0u);
  EXPECT_FALSE(talk.would_join("a", 1, bytes_max));
}

TEST(nats_protocol_state, what_is_joined_keeps_its_place_among_messages_to_its_subject) {
  constexpr std::size_t bytes_max = 100;
  protocol_state talk;
  talk.name_inbox("abc");
  talk.begin({});
  talk.publish_joined("a", "B", {"1"}, bytes_max);
  talk.publish("a", "", nullptr, "2");
  talk.publish_joined("a", "B", {"3"}, bytes_max);
  talk.request(7, "a", nullptr, "4");
  talk.publish_joined("a", "B", {"5"}, bytes_max);
  talk.ping(8);
  EXPECT_EQ(sent(talk),
            "PUB a 2\r\nB1\r\nPUB a 1\r\n2\r\nSUB _INBOX.abc.* 1\r\nPUB a 2\r\nB3\r\n"
            "PUB a _INBOX.abc.7 1\r\n4\r\nPUB a 2\r\nB5\r\nPING\r\n");
  // Without a connection it waits for the next.
  talk.publish_joined("a", "B", {"6"}, bytes_max);
  talk.end();
  talk.publish_joined("a", "B", {"7"}, bytes_max);
  talk.begin({});
  EXPECT_EQ(sent(talk), "SUB _INBOX.abc.* 1\r\nPUB a 2\r\nB6\r\nPUB a 2\r\nB7\r\n");
}

TEST(nats_protocol_state, ends_a_subscription_after_its_messages_over_connections) {
  protocol_state talk;
  talk.name_inbox("abc");
  talk.begin({});
  talk.subscribe("a", "", 3);
  EXPECT_FALSE(feed(talk, "MSG a 2 0\r\n\r\n").last);
  talk.end();
  EXPECT_EQ(sent(talk), "");
  talk.begin({});
  EXPECT_EQ(sent(talk), "SUB a 2\r\nUNSUB 2 2\r\n");
  EXPECT_FALSE(feed(talk, "MSG a 2 0\r\n\r\n").last);
  EXPECT_TRUE(feed(talk, "MSG a 2 0\r\n\r\n").last);
  EXPECT_EQ(feed(talk, "MSG a 2 0\r\n\r\n").outcome, kind::nothing);
  talk.end();
  talk.begin({});
  EXPECT_EQ(sent(talk), "");
}

// Whoever sees a request knows its reply subject, and those of no other one.
TEST(nats_protocol_state, reply_subjects_cannot_be_guessed) {
  kit::secret_source secrets;
  protocol_state talk;
  talk.name_inbox("abc", "_INBOX_shop", &secrets);
  talk.begin({});
  talk.request(1, "svc", nullptr, "1");
  talk.request(2, "svc", nullptr, "2");
  const std::string text = sent(talk);
  std::vector<std::string> tokens;
  for (const std::string number : {"1", "2"}) {
    const std::string lead = "PUB svc _INBOX_shop.abc." + number + "-";
    const std::size_t at = text.find(lead);
    ASSERT_NE(at, std::string::npos) << text;
    tokens.push_back(text.substr(at + lead.size(), 22));
    EXPECT_EQ(text[at + lead.size() + 22], ' ') << text;
  }
  EXPECT_NE(tokens[0], tokens[1]);
  const auto answer = [](const std::string& subject) {
    return "MSG _INBOX_shop.abc." + subject + " 1 0\r\n\r\n";
  };
  for (const std::string& guess : {std::string("2"), std::string("2-"), "2-" + tokens[0],
                                   "2" + tokens[1], "2-" + tokens[1] + "x", "3-" + tokens[1]})
    EXPECT_EQ(feed(talk, answer(guess)).outcome, kind::nothing) << guess;
  EXPECT_EQ(feed(talk, answer("2-" + tokens[1])).number, 2u);
  EXPECT_EQ(feed(talk, answer("2-" + tokens[1])).outcome, kind::nothing);
}

TEST(nats_protocol_state, answers_come_once_to_the_request_they_belong_to) {
  protocol_state talk;
  talk.name_inbox("abc");
  talk.begin({});
  constexpr std::uint64_t first = 1, second = 2, third = 3;
  talk.request(first, "svc", nullptr, "1");
  talk.request(second, "svc", nullptr, "2");
  EXPECT_EQ(sent(talk),
            "SUB _INBOX.abc.* 1\r\nPUB svc _INBOX.abc.1 1\r\n1\r\nPUB svc _INBOX.abc.2 1\r\n2\r\n");
  const happened got = feed(talk, "MSG _INBOX.abc.2 1 2\r\nok\r\n");
  EXPECT_EQ(got.outcome, kind::answer);
  EXPECT_EQ(got.number, second);
  EXPECT_EQ(feed(talk, "MSG _INBOX.abc.2 1 2\r\nok\r\n").outcome, kind::nothing);
  for (const char* const other : {"_INBOX.abc.3", "_INBOX.abc.", "_INBOX.abc.1x", "_INBOX.b.1"})
    EXPECT_EQ(feed(talk, "MSG " + std::string(other) + " 1 0\r\n\r\n").outcome, kind::nothing);
  const happened none = feed(talk, "HMSG _INBOX.abc.1 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n");
  EXPECT_EQ(none.number, first);
  EXPECT_EQ(none.message.head.status(), 503);
  talk.request(third, "svc", nullptr, "3");
  talk.cancel(third);
  EXPECT_EQ(feed(talk, "MSG _INBOX.abc.3 1 0\r\n\r\n").outcome, kind::nothing);
}

TEST(nats_protocol_state, tells_which_requests_were_lost_and_sends_the_others_later) {
  protocol_state talk;
  talk.name_inbox("abc");
  talk.begin({});
  constexpr std::uint64_t first = 1, second = 2, third = 3;
  talk.request(first, "svc", nullptr, "1");
  sent(talk);
  talk.request(second, "svc", nullptr, "2");
  talk.subscribe("late", "", 0);
  talk.publish("news", "", nullptr, "PUB is no command here\r\nPING\r\n");
  constexpr std::uint64_t asked = 10, asked_later = 11;
  talk.ping(asked);
  feed(talk, "PING\r\n");
  const protocol_state::losses lost = talk.end();
  EXPECT_EQ(lost.requests, std::vector{first});
  EXPECT_EQ(lost.pings, std::vector{asked});
  talk.request(third, "svc", nullptr, "3");
  talk.ping(asked_later);
  talk.begin({});
  EXPECT_EQ(sent(talk),
            "SUB _INBOX.abc.* 1\r\nSUB late 2\r\nPUB svc _INBOX.abc.2 1\r\n2\r\n"
            "PUB news 30\r\nPUB is no command here\r\nPING\r\n\r\n"
            "PUB svc _INBOX.abc.3 1\r\n3\r\nPING\r\n");
  EXPECT_EQ(feed(talk, "PONG\r\n").number, asked_later);
  const protocol_state::losses more = talk.end();
  EXPECT_EQ(more.requests.size(), 2u);
  EXPECT_TRUE(std::ranges::find(more.requests, second) != more.requests.end());
  EXPECT_TRUE(std::ranges::find(more.requests, third) != more.requests.end());
}

TEST(nats_protocol_state, pongs_belong_to_pings_in_their_order) {
  protocol_state talk;
  talk.name_inbox("abc");
  talk.ping(0);  // without a connection there is nothing to keep alive
  talk.begin({});
  EXPECT_EQ(sent(talk), "");
  constexpr std::uint64_t flush = 5;
  talk.ping(flush);
  talk.ping(0);
  EXPECT_EQ(sent(talk), "PING\r\nPING\r\n");
  EXPECT_EQ(talk.unanswered(), 1u);
  EXPECT_EQ(feed(talk, "PONG\r\n").number, flush);
  EXPECT_EQ(talk.unanswered(), 1u);
  EXPECT_EQ(feed(talk, "PONG\r\n").outcome, kind::pong);
  EXPECT_EQ(talk.unanswered(), 0u);
  EXPECT_EQ(feed(talk, "PONG\r\n").outcome, kind::nothing);
  feed(talk, "PING\r\n");
  EXPECT_EQ(sent(talk), "PONG\r\n");
  std::string flood;
  for (int i = 0; i < 1'000; ++i) flood += "PING\r\n";
  EXPECT_EQ(feed(talk, flood).outcome, kind::nothing);
  EXPECT_EQ(feed(talk, "PING\r\n").outcome, kind::broken);
}

TEST(nats_protocol_state, a_subscription_that_stops_takes_what_still_comes) {
  protocol_state talk;
  talk.name_inbox("abc");
  talk.begin({});
  const auto sid = talk.subscribe("a", "", 0);
  talk.stop_delivery(sid);
  talk.stop_delivery(sid);
  EXPECT_EQ(sent(talk), "SUB a 2\r\nUNSUB 2\r\n");
  EXPECT_EQ(feed(talk, "MSG a 2 0\r\n\r\n").outcome, kind::message);
  talk.end();
  talk.begin({});
  EXPECT_EQ(sent(talk), "");  // it does not begin again
  talk.unsubscribe(sid);
  EXPECT_EQ(sent(talk), "");
  EXPECT_EQ(feed(talk, "MSG a 2 0\r\n\r\n").outcome, kind::nothing);
}

TEST(nats_protocol_state, refusals_name_what_they_refuse) {
  protocol_state talk;
  talk.name_inbox("abc");
  talk.begin({});
  const auto sid = talk.subscribe("a.b", "", 0);
  talk.subscribe("c", "", 0);
  constexpr std::uint64_t asked = 7;
  talk.request(asked, "svc", nullptr, "");
  sent(talk);
  const happened read = feed(talk, "-ERR 'Permissions Violation for Subscription to \"a.b\"'\r\n");
  EXPECT_EQ(read.outcome, kind::denied_read);
  EXPECT_EQ(read.numbers, std::vector{sid});
  const happened send = feed(talk, "-ERR 'Permissions Violation for Publish to \"svc\"'\r\n");
  EXPECT_EQ(send.outcome, kind::denied_send);
  EXPECT_EQ(send.numbers, std::vector{asked});
  EXPECT_EQ(feed(talk, "-ERR 'Permissions Violation for Publish to \"svc\"'\r\n").outcome,
            kind::refused);
  EXPECT_EQ(feed(talk, "-ERR 'Permissions Violation for Subscription to \"'\r\n").outcome,
            kind::refused);
  const happened other = feed(talk, "-ERR 'Stale Connection'\r\n");
  EXPECT_EQ(other.outcome, kind::refused);
  EXPECT_EQ(other.text, "Stale Connection");
}

TEST(nats_protocol_state, takes_what_the_server_tells_of_itself) {
  protocol_state talk;
  talk.name_inbox("abc");
  talk.begin({});
  EXPECT_EQ(feed(talk, "INFO {\"max_payload\":17,\"connect_urls\":[\"h:1\"],\"x\":{}}\r\n").outcome,
            kind::info);
  EXPECT_EQ(talk.about().max_payload, 17u);
  EXPECT_EQ(talk.about().connect_urls, std::vector<std::string>{"h:1"});
  for (const char* const bad : {"", "{", "[]", "{\"max_payload\":-1}", "{\"nonce\":1}"})
    EXPECT_EQ(feed(talk, "INFO " + std::string(bad) + "\r\n").outcome, kind::broken) << bad;
}

TEST(nats_subjects, have_rules) {
  for (const char* const good : {"a", "a.b.c", "a*b", "a>", "_INBOX.x.1", "$SYS.x", "ö.ü"}) {
    EXPECT_EQ(misfit_to_publish(good), nullptr) << good;
    EXPECT_EQ(misfit_to_subscribe(good), nullptr) << good;
  }
  for (const char* const wild : {"*", ">", "a.*", "*.a", "a.*.b", "a.>"}) {
    EXPECT_NE(misfit_to_publish(wild), nullptr) << wild;
    EXPECT_EQ(misfit_to_subscribe(wild), nullptr) << wild;
  }
  for (const char* const bad : {"", ".", "a.", ".a", "a..b", "a b", "a\tb", "a\r\nPUB b 0\r\n\r\n",
                                "a\nb", ">.a", "a.>.b", "\x7f"})
    EXPECT_NE(misfit_to_subscribe(bad), nullptr) << bad;
  EXPECT_NE(misfit_to_publish(std::string_view("a\0b", 3)), nullptr);
  EXPECT_EQ(misfit_to_publish(std::string(subject_bytes_max, 'x')), nullptr);
  EXPECT_NE(misfit_to_publish(std::string(subject_bytes_max + 1, 'x')), nullptr);
  EXPECT_EQ(misfit_of_queue(""), nullptr);
  EXPECT_NE(misfit_of_queue("a b"), nullptr);
  try {
    check_to_publish("a\r\nb");
    ADD_FAILURE();
  } catch (const error& failed) {
    EXPECT_EQ(failed.kind(), failure::bad_subject);
    EXPECT_NE(std::string(failed.what()).find("a??b"), std::string::npos) << failed.what();
  }
}

TEST(nats_headers, refuse_what_would_become_another_line) {
  headers head;
  for (const char* const name : {"", "a b", "a:b", "a\r\n", "ä"})
    EXPECT_THROW(head.add(name, "x"), error) << name;
  for (const char* const value : {"a\r\nB: c", "a\n", "\r"})
    EXPECT_THROW(head.set("Name", value), error) << value;
  EXPECT_TRUE(head.empty());
  head.add("Name", "one");
  head.add("Name", "two");
  EXPECT_EQ(head.get("Name"), "one");
  std::string block;
  head.append_to(block);
  EXPECT_EQ(block, "NATS/1.0\r\nName: one\r\nName: two\r\n\r\n");
  EXPECT_EQ(block.size(), head.block_bytes());
  head.set("Name", *head.get("Name"));
  EXPECT_EQ(head.size(), 1u);
}

TEST(nats_headers, of_others_are_read_as_far_as_they_are_headers) {
  const headers good = headers::parse("NATS/1.0 408 Request Timeout\r\nA:1\r\nB:  x y \r\n\r\n");
  EXPECT_EQ(good.status(), 408);
  EXPECT_EQ(good.description(), "Request Timeout");
  EXPECT_EQ(good.get("B"), "x y");
  EXPECT_FALSE(good.is_damaged());
  const headers part =
      headers::parse("NATS/1.0\r\nA: 1\r\nnonsense\r\n: x\r\nB: a\rb\r\nC: 3\r\n\r\n");
  EXPECT_TRUE(part.is_damaged());
  EXPECT_EQ(part.size(), 2u);
  for (const char* const bad : {"", "HTTP/1.0\r\n\r\n", "NATS/1.0", "NATS/1.0 5\r\n\r\n",
                                "NATS/1.0\r\n", "NATS/1.0\r\nA: 1\r\n", "NATS/1.0\r\n\r\n\r\n"})
    EXPECT_TRUE(headers::parse(bad).is_damaged()) << bad;
}

}  // namespace
}  // namespace troupe::nats
