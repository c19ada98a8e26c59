#include "service.hpp"

#include <gtest/gtest.h>

#include <string>
#include <troupe/troupe.hpp>
#include <utility>

#include "seeds.hpp"

namespace http = troupe::http;

namespace {

troupe::task<std::string> get(http::client client, std::string url) {
  auto answer = co_await client.get(url);
  co_return co_await answer.read_all();
}

// Two visitors at a time, and one of them again. The sockets are simulated, too.
troupe::task<> check_visits(troupe::runtime& rt) {
  http::server web(make_routes(rt.spawn<Visits>()));
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  const std::string url = "http://" + listener.local().to_string() + "/hello/";
  rt.spawn(web.serve(std::move(listener)));
  const http::client client;
  auto ada = rt.spawn(get(client, url + "ada"));
  auto bob = rt.spawn(get(client, url + "bob"));
  EXPECT_EQ(co_await std::move(ada), "hello ada, visit 1\n");
  EXPECT_EQ(co_await std::move(bob), "hello bob, visit 1\n");
  EXPECT_EQ(co_await get(client, url + "ada"), "hello ada, visit 2\n");
  web.stop();
}

}  // namespace

TEST(Service, CountsTheVisitsOfEachVisitor) {
  for_each_seed([](troupe::runtime& rt) {
    auto checked = rt.spawn(check_visits(rt));
    rt.run();
    checked.get();
  });
}
