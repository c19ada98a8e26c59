// Bodies and answers in JSON that are structs of the program.
#include "troupe/http/values/json.hpp"

#include "support/http.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;

struct ordered {
  std::string name;
  int count;
};
struct order {
  int id;
  std::vector<ordered> items;
  std::optional<std::string> note;
};

class http_json : public http_conformance {};

router some_routes() {
  router routes;
  routes.post("/plain", [](const request& asked) {
    order got = http::json_body<order>(asked);
    for (ordered& one : got.items) one.count *= 2;
    return http::json_response(got).status(201);
  });
  routes.post("/waits", [](request& asked) -> task<response> {
    const auto got = co_await http::read_json<order>(asked, {.depth = 3, .refuse_unknown = true});
    co_return http::json_response(got.items.size());
  });
  return routes;
}

std::string post(std::string_view target, std::string_view body,
                 std::string_view type = "application/json") {
  return "POST " + std::string(target) + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" +
         (type.empty() ? "" : "Content-Type: " + std::string(type) + "\r\n") +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}
std::string status_and_body(const std::string& answer) {
  return answer.substr(9, 3) + " " + answer.substr(answer.find("\r\n\r\n") + 4);
}

TEST_P(http_json, becomes_structs_and_back) {
  const std::string got =
      answer_to(some_routes(), post("/plain", R"({"items":[{"name":"tea","count":2}],"id":7})"));
  EXPECT_NE(got.find("Content-Type: application/json\r\n"), std::string::npos) << got;
  EXPECT_EQ(status_and_body(got), R"(201 {"id":7,"items":[{"name":"tea","count":4}]})");
  EXPECT_EQ(status_and_body(answer_to(some_routes(), post("/waits", R"({"id":7,"items":[]})"))),
            "200 0");
}

TEST_P(http_json, that_does_not_fit_is_answered_with_its_path) {
  const auto ask = [&](std::string_view target, std::string_view body) {
    return status_and_body(answer_to(some_routes(), post(target, body)));
  };
  const std::string wanted =
      "400 items[1].count: a whole number from -2147483648 to 2147483647 is "
      "needed\n";
  const char* unfit = R"({"id":1,"items":[{"name":"","count":1},{"name":"","count":"x"}]})";
  EXPECT_EQ(ask("/plain", unfit), wanted);
  EXPECT_EQ(ask("/waits", unfit), wanted);
  EXPECT_EQ(ask("/plain", R"({"id":1})"), "400 items: it is missing\n");
  EXPECT_EQ(ask("/plain", "").substr(0, 20), "400 this is not JSON");
  EXPECT_EQ(ask("/plain", "{\"id\"").substr(0, 20), "400 this is not JSON");
  EXPECT_EQ(ask("/waits", R"({"id":1,"items":[],"x":1})"), "400 x: there is no such member\n");
  EXPECT_EQ(ask("/waits", R"({"id":1,"items":[[[1]]]})"), "400 the depth is more than 3\n");
}

TEST_P(http_json, of_another_type_is_refused) {
  const auto ask = [&](std::string_view type) {
    return status_and_body(answer_to(some_routes(), post("/plain", R"({"id":1,"items":[]})", type)))
        .substr(0, 3);
  };
  for (const char* good : {"application/json", "APPLICATION/JSON ; charset=\"UTF-8\"",
                           "application/problem+json", "application/json;a=b;charset=utf-8"})
    EXPECT_EQ(ask(good), "201") << good;
  for (const char* bad : {"", "text/plain", "application/jsonx", "application/+json", "text/json",
                          "application/json; charset=latin1", "application/x-www-form-urlencoded"})
    EXPECT_EQ(ask(bad), "415") << bad;
}

TROUPE_HTTP_TEST_EACH(http_json);

}  // namespace
}  // namespace troupe::test
