// Typed values of requests: parameters of the path and of the query, cookies; and the answers when
// they do not fit.
#include "support/http.hpp"
#include "troupe/http/values/cookie.hpp"
#include "troupe/http/values/error_page.hpp"
#include "troupe/http/values/status_error.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;

class http_values : public http_conformance {};

template <class... Parts>
response said(const Parts&... parts) {
  std::ostringstream all;
  ((all << '<' << parts << '>'), ...);
  return response::text(all.str());
}

struct even {
  even() = default;
  explicit even(std::string_view text) : is(text) {
    if (text.size() % 2 != 0) throw std::invalid_argument("odd");
  }
  std::string is;
};

router some_routes() {
  router routes;
  routes.get("/path/{id}/{name}", [](const request& asked) {
    return said(asked.path<int>("id"), asked.path<std::string_view>("name"));
  });
  routes.get("/rest/{rest...}",
             [](const request& asked) { return said(asked.path<std::string>("rest")); });
  routes.get("/unknown/{id}", [](const request& asked) { return said(asked.path<int>("ID")); });
  routes.get("/page",
             [](const request& asked) { return said(int{asked.query<std::uint8_t>("page")}); });
  routes.get("/optional", [](const request& asked) {
    const auto page = asked.query<std::optional<int>>("page");
    return said(page ? std::to_string(*page) : "none", asked.query("size", 10),
                asked.query<std::string>("text", "nothing"), asked.query("on", false));
  });
  routes.get("/all", [](const request& asked) {
    std::string all;
    for (const std::string& one : asked.query<std::vector<std::string>>("a[]")) all += one + ";";
    return said(all);
  });
  routes.get("/even", [](const request& asked) { return said(asked.query<even>("e").is); });
  routes.get("/later", [](const request& asked) -> task<response> {
    co_await sleep_for(std::chrono::microseconds(10));
    const auto page = asked.query<double>("page");
    co_return said(page);
  });
  routes.get("/cookies", [](const request& asked) {
    return said(asked.cookie("a").value_or("none"), asked.cookie<int>("b"),
                asked.cookie<std::vector<std::string>>("c").size());
  });
  routes.get("/sets", [] {
    return response::text("").cookie(http::cookie("a", "1")).cookie(http::cookie("b", "2"));
  });
  routes.get("/gone",
             [](const request& asked) { return http::error_page(asked, 410, "it was \"sold\""); });
  routes.get("/conflict", []() -> response { throw http::status_error(409, "it was sent"); });
  // It makes no task.
  routes.get("/early", []() -> task<response> { throw http::status_error(409, "it was sent"); });
  routes.get("/typed", [] { return response::html("<b>").status(404); });
  return routes;
}

std::string get(std::string_view target, std::string_view fields = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) +
         "Connection: close\r\n\r\n";
}
std::string status_and_body(const std::string& answer) {
  return answer.substr(9, 3) + " " + answer.substr(answer.find("\r\n\r\n") + 4);
}

TEST_P(http_values, of_the_path_by_name) {
  const auto ask = [&](std::string_view target) {
    return status_and_body(answer_to(some_routes(), get(target)));
  };
  EXPECT_EQ(ask("/path/-7/a%2Fb%20c+"), "200 <-7><a/b c+>");
  EXPECT_EQ(ask("/rest/"), "200 <>");
  EXPECT_EQ(ask("/rest/a%2fb/c"), "200 <a/b/c>");
  EXPECT_EQ(ask("/path/x/y"),
            "400 path parameter 'id': a whole number from -2147483648 to 2147483647 is needed\n");
}

TEST_P(http_values, of_a_path_without_that_name_are_the_programs_mistake) {
  runtime rt(options());
  std::string got;
  rt.spawn(serve_while(rt, http::server(some_routes()),
                       [&](runtime&, http::server, endpoint at) -> task<> {
                         got = co_await exchange(at, get("/unknown/7"));
                       }));
  EXPECT_THROW(rt.run(), usage_error);
  EXPECT_EQ(status_and_body(got), "500 Internal Server Error\n");
}

TEST_P(http_values, of_the_query) {
  const auto ask = [&](std::string_view target) {
    return status_and_body(answer_to(some_routes(), get(target)));
  };
  EXPECT_EQ(ask("/optional"), "200 <none><10><nothing><0>");
  EXPECT_EQ(ask("/optional?page=7&size=2&text=a+%2B%26b&on=true&page=8"), "200 <7><2><a +&b><1>");
  EXPECT_EQ(ask("/optional?%70age=7&text"), "200 <7><10><><0>");
  EXPECT_EQ(ask("/optional?&&=&text=a=b&%zz=1"), "200 <none><10><a=b><0>");
  EXPECT_EQ(ask("/all?a[]=1&a%5B%5D=2&a[]=&b=3"), "200 <1;2;;>");
  EXPECT_EQ(ask("/even?e=ab"), "200 <ab>");
  EXPECT_EQ(ask("/later?page=0.5"), "200 <0.5>");
}

TEST_P(http_values, that_do_not_fit_are_named) {
  const auto ask = [&](std::string_view target) {
    return status_and_body(answer_to(some_routes(), get(target)));
  };
  const std::string unfit = "400 query parameter 'page': a whole number from 0 to 255 is needed\n";
  EXPECT_EQ(ask("/page?page=255").substr(0, 3), "200");
  for (const char* bad : {"256", "-1", "+1", "%201", "1%20", "0x1", "1.5", "", "1e1"}) {
    EXPECT_EQ(ask("/page?page=" + std::string(bad)), unfit) << bad;
  }
  EXPECT_EQ(ask("/page?Page=1"), "400 query parameter 'page' is missing\n");
  EXPECT_EQ(ask("/page?page=%zz"), "400 query parameter 'page' is not encoded correctly\n");
  EXPECT_EQ(ask("/page?page=1%00"), "400 query parameter 'page' is not encoded correctly\n");
  EXPECT_EQ(ask("/optional?on=yes"), "400 query parameter 'on': true or false is needed\n");
  EXPECT_EQ(ask("/even?e=a"), "400 query parameter 'e' is not valid\n");
  EXPECT_EQ(ask("/later?page=x"), "400 query parameter 'page': a number is needed\n");
}

TEST_P(http_values, that_do_not_fit_leave_the_connection_open) {
  const std::string twice = "GET /page HTTP/1.1\r\nHost: a\r\n\r\n" +
                            std::string("GET /later HTTP/1.1\r\nHost: a\r\n\r\n") +
                            get("/page?page=3");
  const std::string got = answer_to(some_routes(), twice);
  EXPECT_TRUE(got.ends_with("<3>")) << got;
}

TEST_P(http_values, of_cookies) {
  const auto ask = [&](std::string_view fields) {
    return status_and_body(answer_to(some_routes(), get("/cookies", fields)));
  };
  EXPECT_EQ(ask("Cookie: a=x; b=7; c=1; c=2; a=y\r\n"), "200 <x><7><2>");
  EXPECT_EQ(ask("Cookie: b=7\r\ncookie: A=x\r\nCookie: a=z%20\r\n"), "200 <z%20><7><0>");
  EXPECT_EQ(ask("Cookie: a=x\r\n"), "400 cookie 'b' is missing\n");
  EXPECT_EQ(ask("Cookie: b=\"7\"\r\n"),
            "400 cookie 'b': a whole number from -2147483648 to 2147483647 is needed\n");
  const std::string set = answer_to(some_routes(), get("/sets"));
  EXPECT_NE(set.find("\r\nSet-Cookie: a=1; Path=/; Secure; HttpOnly; SameSite=Lax\r\n"
                     "Set-Cookie: b=2; "),
            std::string::npos)
      << set;
}

TEST_P(http_values, errors_come_in_the_form_that_the_client_prefers) {
  const std::string json = "Accept: application/json, text/plain, */*\r\n";
  const std::string got = answer_to(some_routes(), get("/gone", json));
  EXPECT_NE(got.find("\r\nContent-Type: application/problem+json\r\n"), std::string::npos) << got;
  EXPECT_NE(got.find("\r\nVary: Accept\r\n"), std::string::npos) << got;
  EXPECT_EQ(status_and_body(got),
            R"(410 {"type":"about:blank","title":"Gone","status":410,"detail":"it was \"sold\""})"
            "\n");
  const auto ask = [&](std::string_view target, std::string_view fields) {
    return status_and_body(answer_to(some_routes(), get(target, fields)));
  };
  EXPECT_EQ(ask("/gone", "Accept: */*\r\n"), "410 it was \"sold\"\n");
  EXPECT_EQ(ask("/gone", "Accept: image/png\r\n"), "410 it was \"sold\"\n");
  EXPECT_EQ(ask("/conflict", ""), "409 it was sent\n");
  EXPECT_EQ(ask("/early", ""), "409 it was sent\n");
  const std::string not_found = R"(404 {"type":"about:blank","title":"Not Found","status":404})"
                                "\n";
  EXPECT_EQ(ask("/nowhere", json), not_found);
  EXPECT_EQ(ask("/typed", json), "404 <b>");
  const std::string put = answer_to(
      some_routes(), "PUT /gone HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + json + "\r\n");
  EXPECT_NE(put.find("Allow: GET, HEAD, OPTIONS\r\n"), std::string::npos) << put;
  EXPECT_NE(put.find("\"status\":405}"), std::string::npos) << put;
  const std::string large =
      answer_to(some_routes(),
                "GET /gone HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n" + json + "\r\n");
  EXPECT_NE(large.find("\"status\":413,\"detail\":\"the body is too large\"}"), std::string::npos)
      << large;
}

TEST(http_status_error, is_for_errors_alone) {
  EXPECT_THROW(http::status_error(399, ""), usage_error);
  EXPECT_THROW(http::status_error(600, ""), usage_error);
  EXPECT_EQ(http::status_error(400, "").detail(), "");
  EXPECT_STREQ(http::status_error(599, "why").what(), "troupe: http: 599: why");
}

TROUPE_HTTP_TEST_EACH(http_values);

}  // namespace
}  // namespace troupe::test
