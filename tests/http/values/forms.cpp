// Forms of both encodings, with files in memory and on the disk.
#include "troupe/http/values/form.hpp"

#include <filesystem>

#include "support/http.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using http::form_limits;
using http::request;
using http::response;
using http::router;

class http_forms : public http_conformance {};

// Answers with all that the form has.
router some_routes(const form_limits& limits = {}) {
  router routes;
  routes.post("/",
              [limits](request& asked) -> task<response> {
                http::form got = co_await http::read_form(asked, limits);
                std::string all;
                for (const auto& [name, value] : got.fields())
                  all += "<" + name + "|" + value + ">";
                for (http::form_file& one : got.files()) {
                  std::string bytes(one.text());
                  if (!one.in_memory()) {
                    bytes.resize(one.size());
                    co_await one.content().read_exact_at(0, bytes);
                  }
                  all += (one.in_memory() ? "[" : "{") + one.name() + "|" + one.file_name() + "|" +
                         one.type() + "|" + std::to_string(one.size()) + "|" + bytes.substr(0, 20);
                }
                co_return response::text(all);
              },
              {.body_bytes = 100'000'000});
  routes.post("/typed", [](request& asked) -> task<response> {
    http::form got = co_await http::read_form(asked);
    const auto id = got.get<int>("id");
    const auto all = got.get<std::vector<int>>("id");
    const int sum = id + static_cast<int>(all.size()) + got.get("other", 100);
    static_cast<void>(got.file("picture"));
    co_return response::text(std::to_string(sum));
  });
  routes.post("/plain", [](const request& asked) {
    return response::text(http::parse_form(asked.body()).get<std::string>("a"));
  });
  return routes;
}

constexpr std::string_view urlencoded = "application/x-www-form-urlencoded";
constexpr std::string_view multipart = "multipart/form-data; boundary=\"x y\"";

std::string post(std::string_view target, std::string_view body, std::string_view type) {
  return "POST " + std::string(target) + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" +
         "Content-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}
std::string part(std::string_view more, std::string_view content) {
  return "--x y\r\nContent-Disposition: form-data; " + std::string(more) + "\r\n\r\n" +
         std::string(content) + "\r\n";
}
std::string status_and_body(const std::string& answer) {
  return answer.substr(9, 3) + " " + answer.substr(answer.find("\r\n\r\n") + 4);
}

TEST_P(http_forms, urlencoded) {
  const auto ask = [&](std::string_view body, const form_limits& limits = {}) {
    return status_and_body(answer_to(some_routes(limits), post("/", body, urlencoded)));
  };
  EXPECT_EQ(ask("a=1&b=%20%2B+%26&&a=&c&=d&e=f=g"), "200 <a|1><b| + &><a|><c|><|d><e|f=g>");
  EXPECT_EQ(ask(""), "200 ");
  EXPECT_EQ(ask("a=%zz"), "400 form field 'a' is not encoded correctly\n");
  EXPECT_EQ(ask("%0=1"), "400 the name of a form field is not encoded correctly\n");
  EXPECT_EQ(ask("a=1&b=2", {.fields = 2}), "200 <a|1><b|2>");
  EXPECT_EQ(ask("a=1&b=2&c=3", {.fields = 2}), "413 form: more than 2 fields\n");
  EXPECT_EQ(ask("a=%31%32", {.field_bytes = 2}), "200 <a|12>");
  EXPECT_EQ(ask("a=%31%32%33", {.field_bytes = 2}), "413 form field 'a': more than 2 bytes\n");
  EXPECT_EQ(ask("a=1&b=2", {.memory_bytes = 4}), "200 <a|1><b|2>");
  EXPECT_EQ(ask("a=1&b=23", {.memory_bytes = 4}), "413 form: more than 4 bytes in memory\n");
  const std::string plain = answer_to(some_routes(), post("/plain", "a=%41", urlencoded));
  EXPECT_EQ(status_and_body(plain), "200 A");
}

TEST_P(http_forms, multipart) {
  const std::string large(200'000, 'L');
  const std::string body = part("name=\"a\"", "1") +
                           part("name=\"f\"; filename=\"s.txt\"\r\nContent-Type: text/plain", "s") +
                           part("name=\"f\"; filename=\"l\"", large) + "--x y--\r\n";
  EXPECT_EQ(status_and_body(answer_to(some_routes(), post("/", body, multipart))),
            "200 <a|1>[f|s.txt|text/plain|1|s{f|l||200000|LLLLLLLLLLLLLLLLLLLL");
}

TEST_P(http_forms, typed) {
  const auto ask = [&](std::string_view body) {
    return status_and_body(answer_to(some_routes(), post("/typed", body, multipart)));
  };
  const std::string picture = part("name=picture; filename=p", "");
  EXPECT_EQ(ask(part("name=id", "7") + part("name=id", "8") + picture + "--x y--"), "200 109");
  EXPECT_EQ(ask("--x y--"), "400 form field 'id' is missing\n");
  EXPECT_EQ(ask(part("name=id", "x") + "--x y--").substr(0, 38),
            "400 form field 'id': a whole number fr");
  EXPECT_EQ(ask(part("name=id", "7") + "--x y--"), "400 form file 'picture' is missing\n");
  EXPECT_EQ(ask(part("name=id", "7")),
            "400 multipart/form-data: the body ends before its last boundary\n");
}

TEST_P(http_forms, limits_of_files) {
  const auto ask = [&](std::string_view body, const form_limits& limits) {
    return status_and_body(
        answer_to(some_routes(limits), post("/", std::string(body) + "--x y--", multipart)));
  };
  const std::string two =
      part("name=f; filename=a", "12345") + part("name=f; filename=b", "123456");
  EXPECT_EQ(ask(two, {.files = 2, .kept_bytes = 5}), "200 [f|a||5|12345{f|b||6|123456");
  EXPECT_EQ(ask(two, {.files = 1}), "413 form field 'f': more than 1 files\n");
  EXPECT_EQ(ask(two, {.file_bytes = 6}), "200 [f|a||5|12345[f|b||6|123456");
  EXPECT_EQ(ask(two, {.file_bytes = 5}), "413 form field 'f': more than 5 bytes\n");
  // A file on the disk takes no memory.
  EXPECT_EQ(ask(two, {.memory_bytes = 9, .kept_bytes = 5}), "200 [f|a||5|12345{f|b||6|123456");
  EXPECT_EQ(ask(two, {.memory_bytes = 8, .kept_bytes = 5}),
            "413 form: more than 8 bytes in memory\n");
  EXPECT_EQ(ask(part("name=a", "123"), {.field_bytes = 2}),
            "413 form field 'a': more than 2 bytes\n");
}

TEST_P(http_forms, of_another_type_are_refused) {
  EXPECT_EQ(answer_to(some_routes(), post("/", "{}", "application/json")).substr(9, 3), "415");
  EXPECT_EQ(
      answer_to(some_routes(), post("/", "--x--", "multipart/mixed; boundary=x")).substr(9, 3),
      "415");
  EXPECT_EQ(answer_to(some_routes(), post("/", "--x--", "multipart/form-data")).substr(9, 3),
            "400");
}

TEST_P(http_forms, files_are_saved) {
  const scratch folder;
  const std::string here = folder / "";
  router routes;
  routes.post("/", [here](request& asked) -> task<response> {
    http::form got = co_await http::read_form(asked, {.kept_bytes = 3});
    for (http::form_file& one : got.files()) co_await one.save(here + one.name());
    co_return response::text("saved");
  });
  const std::string large(150'000, 'x');
  const std::string body = part("name=s; filename=s", "abc") + part("name=l; filename=l", large);
  EXPECT_EQ(status_and_body(answer_to(std::move(routes), post("/", body + "--x y--", multipart))),
            "200 saved");
  EXPECT_EQ(std::filesystem::file_size(here + "s"), 3u);
  EXPECT_EQ(std::filesystem::file_size(here + "l"), large.size());
}

TEST_P(http_forms, a_folder_with_a_zero_byte_takes_no_file) {
  router routes;
  routes.post("/", [](request& asked) -> task<response> {
    std::string said = "nothing";
    try {
      static_cast<void>(co_await http::read_form(
          asked, {.kept_bytes = 3, .folder = std::string_view("/tmp\0x", 6)}));
    } catch (const option_error& refused) {
      said = refused.what();
    }
    co_return response::text(said);
  });
  const std::string body = part("name=l; filename=l", "abcdef");
  EXPECT_EQ(
      status_and_body(answer_to(std::move(routes), post("/", body + "--x y--", multipart))),
      "200 troupe: http::form_limits: the folder's path has a zero byte, at which it would be cut");
}

TROUPE_HTTP_TEST_EACH(http_forms);

}  // namespace
}  // namespace troupe::test
