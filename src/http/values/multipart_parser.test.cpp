#include "troupe/http/values/multipart.hpp"

#include <gtest/gtest.h>

#include "troupe/http/values/status_error.hpp"

namespace troupe::http {
namespace {

// The parts as text, when the body comes in pieces of some bytes; or the error.
std::string read(std::string_view body, std::size_t piece = 1'000'000,
                 const multipart_limits& limits = {}, std::string_view boundary = "AaB") {
  using event = multipart_parser::event;
  std::string all, input;
  try {
    multipart_parser parser(boundary, limits);
    for (;;) {
      const multipart_parser::step step = parser.next(input);
      if (step.what == event::part) {
        all += "<" + parser.part().name + "|" + parser.part().type;
        if (parser.part().is_file) all += "|" + parser.part().file_name;
        all += "|";
      }
      all += step.data;
      if (step.what == event::part_end) all += ">";
      input.erase(0, step.consumed);
      if (step.what == event::end && body.empty()) break;
      if (step.what != event::need_more && step.what != event::end) continue;
      if (step.consumed != 0) continue;
      if (body.empty()) {
        parser.check_end();
        break;
      }
      input += body.substr(0, piece);
      body.remove_prefix(std::min(piece, body.size()));
    }
  } catch (const status_error& e) {
    return std::to_string(e.status()) + " " + std::string(e.detail());
  }
  return all;
}

std::string field(std::string_view name, std::string_view value) {
  return "--AaB\r\nContent-Disposition: form-data; name=\"" + std::string(name) + "\"\r\n\r\n" +
         std::string(value) + "\r\n";
}

TEST(http_multipart, in_pieces_of_any_length_is_the_same) {
  const std::string body =
      field("a", "1") + field("b", "") + field("c", "\r\n--Aa\r\n-\r\n--AaX\r\r\n--\r") +
      "--AaB \t\r\ncontent-type: text/plain; charset=utf-8\r\nX-Other: 1\r\n"
      "CONTENT-DISPOSITION:form-data ; filename=\"C:\\\\x\\\\a \\\"b\\\".txt\" ;name=f\r\n\r\n"
      "data--AaB\r\n\r\n--AaB--\r\nan epilogue\r\n--AaB\r\n";
  const std::string wanted =
      "<a||1><b||><c||\r\n--Aa\r\n-\r\n--AaX\r\r\n--\r><f|text/plain; charset=utf-8|a \"b\".txt|"
      "data--AaB\r\n>";
  EXPECT_EQ(read(body), wanted);
  EXPECT_EQ(read("\r\n" + body), wanted);
  for (std::size_t piece = 1; piece < 60; ++piece) EXPECT_EQ(read(body, piece), wanted) << piece;
}

TEST(http_multipart, without_parts) {
  EXPECT_EQ(read("--AaB--"), "");
  EXPECT_EQ(read("--AaB--\r\n"), "");
}

// RFC 2046, 5.1.1: text before the first boundary is ignored.
TEST(http_multipart, with_a_preamble) {
  for (const std::string preamble : {"\r\n", "\r\n\r\n", "This is a message in MIME.\r\n",
                                     "--Aa\r\n--A\r\n", "x--AaB\r\n", "\r\r\n-\r\n--\r\n"}) {
    EXPECT_EQ(read(preamble + "--AaB--"), "") << preamble;
    EXPECT_EQ(read(preamble + field("a", "1") + "--AaB--"), read(field("a", "1") + "--AaB--"))
        << preamble;
  }
}

TEST(http_multipart, names_of_files_are_the_last_component) {
  const auto name_of = [](std::string_view file) {
    const std::string got =
        read("--AaB\r\nContent-Disposition: form-data; name=\"\"; filename=" + std::string(file) +
             "\r\n\r\n\r\n--AaB--");
    return got.substr(0, 3) == "<||" ? got.substr(3, got.size() - 5) : got;
  };
  EXPECT_EQ(name_of("\"../../etc/passwd\""), "passwd");
  EXPECT_EQ(name_of("\"C:\\\\a\\\\b.txt\""), "b.txt");
  EXPECT_EQ(name_of("\"C:\\dir\\y.txt\""), "y.txt");
  EXPECT_EQ(name_of("\"a\\b\""), "b");
  EXPECT_EQ(name_of("\"..\""), "");
  EXPECT_EQ(name_of("\"a/.\""), "");
  EXPECT_EQ(name_of("\"\""), "");
  EXPECT_EQ(name_of("a.txt"), "a.txt");
  EXPECT_EQ(name_of("\"a;b=\\\"c\""), "a;b=\"c");
  EXPECT_EQ(name_of("\"a"), "");
}

TEST(http_multipart, that_is_malformed_is_refused) {
  const std::string begin = "400 multipart/form-data: ";
  const auto part = [&](std::string_view lines) {
    return read("--AaB\r\n" + std::string(lines) + "\r\n\r\n1\r\n--AaB--");
  };
  EXPECT_EQ(read(""), begin + "the body ends before its last boundary");
  EXPECT_EQ(read("--AaB\r\n"), begin + "the body ends before its last boundary");
  EXPECT_EQ(read(field("a", "1")), begin + "the body ends before its last boundary");
  EXPECT_EQ(read(field("a", "1") + "--AaB-"), begin + "the body ends before its last boundary");
  EXPECT_EQ(read("x--AaB--"), begin + "the body ends before its last boundary");
  EXPECT_EQ(read("--AaBx--"), begin + "there is something behind a boundary");
  EXPECT_EQ(read("--AaB\nContent"), begin + "there is something behind a boundary");
  EXPECT_EQ(part("Content-Type: a/b"), begin + "a part has no Content-Disposition");
  EXPECT_EQ(read("--AaB\r\n\r\n1\r\n--AaB--"), begin + "a part has no Content-Disposition");
  EXPECT_EQ(part("Content-Disposition: form-data"), begin + "a part has no name");
  EXPECT_EQ(part("Content-Disposition: attachment; name=a"), begin + "a part has no name");
  EXPECT_EQ(
      part("Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b"),
      begin + "a part has two fields Content-Disposition");
  EXPECT_EQ(part("Content Disposition: a"), begin + "a field of a part is malformed");
  EXPECT_EQ(part("Content-Disposition: form-data; name=a\r\n folded"),
            begin + "a field of a part is malformed");
  EXPECT_EQ(part("Content-Disposition: form-data; name=\"a\nb\""),
            begin + "a field of a part has a control byte");
  EXPECT_EQ(part("Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64"),
            begin + "a part has a Content-Transfer-Encoding, which RFC 7578 has no more");
}

TEST(http_multipart, boundaries) {
  const std::string most(70, 'b');
  EXPECT_EQ(read("--" + most + "--", 1, {}, most), "");
  for (const std::string& bad : {std::string(), most + "b", std::string("a "), std::string("a\r"),
                                 std::string("\xc3\xa4"), std::string("a\"")})
    EXPECT_EQ(read("", 1, {}, bad).substr(0, 3), "400") << bad;
}

TEST(http_multipart, limits) {
  const std::string two = field("a", "1") + field("b", "2") + "--AaB--";
  EXPECT_EQ(read(two, 7, {.parts = 2}), "<a||1><b||2>");
  EXPECT_EQ(read(two, 7, {.parts = 1}), "413 multipart/form-data: there are more than 1 parts");
  const std::string line = "Content-Disposition: form-data; name=\"a\"\r\n\r\n";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{1'000}}) {
    EXPECT_EQ(read(two, piece, {.head_bytes = line.size()}), "<a||1><b||2>");
    EXPECT_EQ(read(two, piece, {.head_bytes = line.size() - 1}),
              "413 multipart/form-data: the head of a part has more than " +
                  std::to_string(line.size() - 1) + " bytes");
  }
  const std::string spaces = "--AaB" + std::string(10, ' ') + "\r\n";
  EXPECT_EQ(read(spaces, 1, {.head_bytes = 9}),
            "400 multipart/form-data: there are too many spaces behind a boundary");
}

}  // namespace
}  // namespace troupe::http
