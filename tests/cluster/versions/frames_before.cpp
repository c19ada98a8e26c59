// What a node of a released version sends to others is read by this one, and read by it: the bytes
// of each kind of frame are kept. `0.1.frames` was written by version 0.1 with
// TROUPE_WRITE_FIXTURE=FILE in the environment of this test; a new version adds a file, and changes
// none.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/core/frames.hpp"
#include "durable/memory/shard_scope.hpp"
#include "support/scratch.hpp"
#include "troupe/durable/codec.hpp"
#include "troupe/durable/storage.hpp"

namespace troupe::test {
namespace {

using namespace cluster::parts;
using durable::message_id;
using durable::stored_message;
using durable::parts::cycle_question;

constexpr std::string_view trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

stored_message a_message() {
  stored_message made;
  made.order = 7;
  made.shard = 1'023;
  made.id = message_id{1, UINT64_MAX};
  made.named = true;
  made.from = durable::origin::nested;
  made.to = {"Account", std::string("a key\0with a zero byte", 22)};
  made.asker = message_id{3, 4};
  made.method = "transfer";
  made.signature = 0xFEDC'BA98'7654'3210;
  made.arguments = {std::byte{0}, std::byte{255}};
  made.failures = 2;
  return made;
}
cycle_question a_question() {
  cycle_question made;
  made.to = {"Account", "ada"};
  made.ask = message_id{1, 2};
  made.other = message_id{3, 4};
  made.nodes_left = 15;
  return made;
}

request_frame a_request(request_frame::target to, std::string_view arguments) {
  request_frame made;
  made.signature = 0x0123'4567'89AB'CDEF;
  made.remaining_us = 9'999'999;
  made.kind = "Account";
  made.key = "ada";
  made.method = "transfer";
  made.trace = trace;
  made.to = to;
  made.arguments = arguments;
  return made;
}

std::string text_of(const bytes& from) { return std::string(as_text(from)); }

// Each kind of frame, by its name.
std::map<std::string, std::string> frames() {
  std::map<std::string, std::string> all;
  const std::string message = text_of(durable::encode(a_message()));
  const std::string question = text_of(durable::encode(a_question()));
  using enum request_frame::target;
  all["request.shard"] = write_request(a_request(shard, "arguments"));
  all["request.member"] = write_request(a_request(member, ""));
  all["request.durable"] = write_request(a_request(durable, message));
  all["request.circle"] = write_request(a_request(cycle, question));
  all["request.empty"] = write_request(request_frame());
  for (int kind = 0; kind <= static_cast<int>(answer_kind::deadlock); ++kind) {
    answer_frame made;
    made.kind = static_cast<answer_kind>(kind);
    made.type = made.kind == answer_kind::exception ? "std::runtime_error" : "";
    made.bytes = "bytes";
    all["answer." + std::to_string(kind)] = write_answer(made);
  }
  return all;
}

std::string in_hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string made;
  for (const char one : bytes) {
    const auto byte = static_cast<unsigned char>(one);
    made += digits[byte >> 4];
    made += digits[byte & 15];
  }
  return made;
}
std::string of_hex(std::string_view text) {
  std::string made;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    made += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
  return made;
}

void expect_same(const request_frame& got, const request_frame& sent, const std::string& name) {
  EXPECT_EQ(got.signature, sent.signature) << name;
  EXPECT_EQ(got.remaining_us, sent.remaining_us) << name;
  EXPECT_EQ(got.kind, sent.kind) << name;
  EXPECT_EQ(got.key, sent.key) << name;
  EXPECT_EQ(got.method, sent.method) << name;
  EXPECT_EQ(got.trace, sent.trace) << name;
  EXPECT_EQ(got.to, sent.to) << name;
  EXPECT_EQ(got.arguments, sent.arguments) << name;
}

void expect_read(const std::string& name, const std::string& kept) {
  if (name.starts_with("answer.")) {
    const auto got = read_answer(kept);
    ASSERT_TRUE(got.has_value()) << name;
    EXPECT_EQ(static_cast<int>(got->kind), std::stoi(name.substr(7))) << name;
    EXPECT_EQ(got->type, got->kind == answer_kind::exception ? "std::runtime_error" : "") << name;
    EXPECT_EQ(got->bytes, "bytes") << name;
    return;
  }
  const auto got = read_request(kept);
  ASSERT_TRUE(got.has_value()) << name;
  if (name == "request.empty") return expect_same(*got, request_frame(), name);
  expect_same(*got, a_request(got->to, got->arguments), name);
  if (name == "request.shard") {
    EXPECT_EQ(got->arguments, "arguments");
  }
  if (name == "request.durable") {
    const auto message = durable::decode<stored_message>(as_bytes(got->arguments));
    EXPECT_EQ(durable::encode(message), durable::encode(a_message()));
    EXPECT_EQ(message.to.key, a_message().to.key);
  }
  if (name == "request.circle") {
    const auto question = durable::decode<cycle_question>(as_bytes(got->arguments));
    EXPECT_EQ(durable::encode(question), durable::encode(a_question()));
  }
}

TEST(frames_before, those_of_each_version_are_read_and_still_sent) {
  const std::map<std::string, std::string> now = frames();
  if (const char* const target = std::getenv("TROUPE_WRITE_FIXTURE")) {
    std::ofstream file(target);
    for (const auto& [name, bytes] : now) file << name << ' ' << in_hex(bytes) << '\n';
    return;
  }
  std::size_t files = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(source_folder() / "tests" / "cluster" / "versions")) {
    if (file.path().extension() != ".frames") continue;
    ++files;
    std::ifstream lines(file.path());
    std::map<std::string, std::string> kept;
    for (std::string name, hex; lines >> name >> hex;) kept[name] = of_hex(hex);
    EXPECT_GE(kept.size(), 17u) << file.path();
    for (const auto& [name, bytes] : kept) {
      expect_read(name, bytes);
      ASSERT_TRUE(now.contains(name)) << name;
      // An older node understands it: it is what that node would have sent.
      EXPECT_EQ(in_hex(now.at(name)), in_hex(bytes)) << name;
    }
  }
  EXPECT_GE(files, 1u);
}

}  // namespace
}  // namespace troupe::test
