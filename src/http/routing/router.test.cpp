#include "troupe/http/router.hpp"

#include <gtest/gtest.h>

#include "troupe/base/error.hpp"
#include "troupe/http/server.hpp"

namespace troupe::http {
namespace {

response none() { return response(); }

std::string found_at(const router& routes, std::string_view path) {
  const router::found found = routes.find(method::get, path);
  if (found.handler == nullptr) return "none";
  std::string values = std::to_string(found.handler->options.body_bytes);
  for (std::size_t i = 0; i < found.values.count; ++i)
    values += " " + std::string(found.values.value[i]);
  return values;
}

TEST(http_router, literals_win_over_parameters_and_those_over_a_rest) {
  router routes;
  routes.get("/{rest...}", [](std::string) { return response(); }, {.body_bytes = 1});
  routes.get("/a/{x}", [](std::string) { return response(); }, {.body_bytes = 2});
  routes.get("/a/b", none, {.body_bytes = 3});
  routes.get("/{x}/b/{y}", [](std::string, std::string) { return response(); }, {.body_bytes = 4});
  routes.get("/a/b/{rest...}", [](std::string) { return response(); }, {.body_bytes = 5});
  EXPECT_EQ(found_at(routes, "/a/b"), "3");
  EXPECT_EQ(found_at(routes, "/a/c"), "2 c");
  EXPECT_EQ(found_at(routes, "/c/b/d"), "4 c d");
  EXPECT_EQ(found_at(routes, "/a/b/d"), "5 d");
  EXPECT_EQ(found_at(routes, "/a/b/d/e"), "5 d/e");
  EXPECT_EQ(found_at(routes, "/c"), "1 c");
  EXPECT_EQ(found_at(routes, "/"), "1 ");
  EXPECT_EQ(found_at(routes, "/a/"), "1 a/");
  EXPECT_EQ(found_at(routes, ""), "none");
}

TEST(http_router, patterns_that_make_no_sense) {
  router routes;
  const auto handler = [](int) { return response(); };
  EXPECT_THROW(routes.get("a", none), usage_error);
  EXPECT_THROW(routes.get("", none), usage_error);
  EXPECT_THROW(routes.get("/{x", handler), usage_error);
  EXPECT_THROW(routes.get("/{}", handler), usage_error);
  EXPECT_THROW(routes.get("/a{x}", handler), usage_error);
  EXPECT_THROW(routes.get("/{x...}/b", handler), usage_error);
  EXPECT_THROW(routes.get("/{x}/{y}", handler), usage_error);
  EXPECT_THROW(routes.get("/a", handler), usage_error);
  EXPECT_THROW(routes.add(method::connect, "/a", none), usage_error);
  routes.get("/a", none);
  EXPECT_THROW(routes.get("/a", none), usage_error);
  routes.post("/a", none);
  EXPECT_EQ(router::allowed(routes.find(method::put, "/a").methods), "GET, HEAD, POST, OPTIONS");
  routes.get("/b/{x}", handler);
  EXPECT_THROW(routes.get("/b/{y}", handler), usage_error);
  EXPECT_THROW(routes.get("/a", none), usage_error);
}

TEST(http_router, a_path_has_the_methods_of_all_patterns_that_fit_it) {
  router routes;
  const auto handler = [](std::string) { return response(); };
  routes.get("/users/me", none, {.body_bytes = 1});
  routes.del("/users/{id}", handler, {.body_bytes = 2});
  routes.put("/users/{name}", handler, {.body_bytes = 3});
  routes.post("/{rest...}", handler, {.body_bytes = 4});
  const auto found = [&](method by, std::string_view path) {
    const router::found at = routes.find(by, path);
    return at.handler == nullptr ? router::allowed(at.methods)
                                 : std::to_string(at.handler->options.body_bytes);
  };
  EXPECT_EQ(found(method::get, "/users/me"), "1");
  EXPECT_EQ(found(method::head, "/users/me"), "1");
  EXPECT_EQ(found(method::remove, "/users/me"), "2");
  EXPECT_EQ(found(method::put, "/users/me"), "3");
  EXPECT_EQ(found(method::post, "/users/me"), "4");
  EXPECT_EQ(found(method::patch, "/users/me"), "GET, HEAD, POST, PUT, DELETE, OPTIONS");
  EXPECT_EQ(found(method::options, "/users/7"), "POST, PUT, DELETE, OPTIONS");
  EXPECT_EQ(found(method::get, "/"), "POST, OPTIONS");
}

TEST(http_router, remove_takes_a_route_away) {
  router routes;
  const auto handler = [](std::string) { return response(); };
  routes.get("/a", none).post("/a", none).add(method::head, "/a", none);
  routes.get("/users/{id}", handler, {.body_bytes = 1})
      .del("/users/{name}", handler, {.body_bytes = 2})
      .get("/{rest...}", handler, {.body_bytes = 3});
  EXPECT_EQ(routes.remove("/b"), 0u);
  EXPECT_EQ(routes.remove("/{x}"), 0u);
  EXPECT_EQ(routes.remove(method::put, "/a"), 0u);
  EXPECT_EQ(routes.remove(method::other, "/a"), 0u);
  EXPECT_THROW(static_cast<void>(routes.remove("a")), usage_error);

  EXPECT_EQ(routes.remove(method::get, "/a"), 1u);
  EXPECT_EQ(router::allowed(routes.find(method::put, "/a").methods), "GET, HEAD, POST, OPTIONS")
      << "of /{rest...}, too";
  EXPECT_EQ(found_at(routes, "/a"), "3 a");
  EXPECT_NE(routes.find(method::head, "/a").handler, nullptr) << "HEAD had a handler of its own";
  EXPECT_EQ(routes.remove("/a"), 2u);
  EXPECT_EQ(router::allowed(routes.find(method::put, "/a").methods), "GET, HEAD, OPTIONS");
  EXPECT_EQ(routes.remove("/a"), 0u);

  EXPECT_EQ(found_at(routes, "/users/7"), "1 7");
  EXPECT_EQ(routes.remove(method::get, "/users/{other}"), 1u);
  EXPECT_EQ(found_at(routes, "/users/7"), "3 users/7");
  EXPECT_EQ(routes.find(method::remove, "/users/7").handler->options.body_bytes, 2u);
  EXPECT_EQ(routes.remove(method::remove, "/users/{id}"), 1u);
  EXPECT_EQ(routes.find(method::remove, "/users/7").handler, nullptr);
  routes.get("/users/{id}", handler, {.body_bytes = 4});  // the route can be added again
  EXPECT_EQ(found_at(routes, "/users/7"), "4 7");
  EXPECT_EQ(routes.remove("/{all...}"), 1u);
  EXPECT_EQ(found_at(routes, "/c"), "none");
}

TEST(http_router, what_a_server_has_cannot_be_changed) {
  router routes;
  routes.get("/", none);
  const router moved = std::move(routes);
  EXPECT_THROW(routes.get("/a", none), usage_error);
  EXPECT_THROW(routes.remove("/"), usage_error);
  EXPECT_THROW(server{std::move(routes)}, usage_error);
  EXPECT_EQ(found_at(moved, "/"), "0");
  routes = router();
  routes.get("/a", none);
  EXPECT_EQ(found_at(routes, "/a"), "0");
}

TEST(http_router, a_handler_with_other_parameters_than_its_pattern_is_told_how_many) {
  router routes;
  const auto said = [&](auto add) {
    try {
      add();
    } catch (const usage_error& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  const std::string lacking =
      said([&] { routes.get("/users/{id}", [](int, int) { return response(); }); });
  EXPECT_NE(lacking.find("'/users/{id}' has 1 parameter in braces, but its handler takes 2"),
            std::string::npos)
      << lacking;
  const std::string unused = said([&] { routes.get("/users/{id}", none); });
  EXPECT_NE(unused.find("has 1 parameter in braces, but its handler takes 0"), std::string::npos)
      << unused;
}

TEST(http_response, fields_that_would_end_the_head_are_refused) {
  response answer;
  answer.field("X-Good", "a value\t");
  EXPECT_THROW(answer.field("X", "a\r\nB: c"), usage_error);
  EXPECT_THROW(answer.field("X", "a\nb"), usage_error);
  EXPECT_THROW(answer.field("X", std::string_view("a\0b", 3)), usage_error);
  EXPECT_THROW(answer.field("X Y", "a"), usage_error);
  EXPECT_THROW(answer.field("X:", "a"), usage_error);
  EXPECT_THROW(answer.field("", "a"), usage_error);
  for (const char* own : {"content-length", "Transfer-Encoding", "CONNECTION", "Date"}) {
    EXPECT_THROW(answer.field(own, "1"), usage_error);
  }
  EXPECT_THROW(static_cast<void>(response::redirect("/a\r\nB: c")), usage_error);
}

TEST(http_request, percent_signs_are_decoded) {
  const auto decoded = [](std::string_view text) {
    std::string to;
    return decode_percent(text, to) ? to : "refused";
  };
  EXPECT_EQ(decoded("a%20b%2Fc%c3%A4+"), "a b/c\xc3\xa4+");
  for (const char* malformed : {"%", "%1", "a%zz", "%00", "%0x", "%%20"}) {
    EXPECT_EQ(decoded(malformed), "refused") << malformed;
  }
}

}  // namespace
}  // namespace troupe::http
