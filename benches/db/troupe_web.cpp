// Our HTTP server over our client of PostgreSQL, on one worker, for the rows db/postgres_updates
// and db/fortunes. The handlers are those of examples/httpd.cpp, but that a request keeps to one
// connection, so that its queries travel together, and that the rows are changed by one statement.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <memory_resource>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/http/server.hpp"
#include "troupe/postgres/connection.hpp"
#include "troupe/troupe.hpp"
#include "work.hpp"

namespace {

namespace http = troupe::http;
using troupe::task;
using troupe::postgres::connection;

struct World {
  int id = 0, number = 0;
};
struct Fortune {
  int id = 0;
  std::string message;
};

// Connections to the server, used in turn. There is one worker.
class connections {
 public:
  explicit connections(troupe::runtime& rt) {
    for (int i = 0; i < 4; ++i) all_.emplace_back(rt, db_work::postgres_target());
  }
  const connection& next() { return all_[at_++ % all_.size()]; }

 private:
  std::vector<connection> all_;
  std::size_t at_ = 0;
};

int random_number() {
  static std::minstd_rand random(1);
  return 1 + static_cast<int>(random() % db_work::worlds);
}

// In ascending order, so that no two requests wait for each other's rows; each once.
std::vector<int> random_ids(std::size_t count) {
  std::vector<int> ids;
  ids.reserve(count);
  while (ids.size() < count) {
    while (ids.size() < count) ids.push_back(random_number());
    std::ranges::sort(ids);
    ids.erase(std::ranges::unique(ids).begin(), ids.end());
  }
  return ids;
}

std::size_t queries_in(const http::request& asked) {
  const std::string text = asked.query_value("queries").value_or("1");
  int count = 1;
  if (std::from_chars(text.data(), text.data() + text.size(), count).ec != std::errc{}) return 1;
  return static_cast<std::size_t>(std::clamp(count, 1, 500));
}

void add(std::pmr::string& to, int number) {
  std::array<char, 12> digits;
  to.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

// The replacement of each character that HTML gives a meaning; empty for the others.
constexpr auto escapes = [] {
  std::array<std::string_view, 256> all{};
  all['<'] = "&lt;";
  all['>'] = "&gt;";
  all['&'] = "&amp;";
  all['"'] = "&quot;";
  all['\''] = "&#39;";
  return all;
}();

void add_escaped(std::pmr::string& to, std::string_view text) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view escaped = escapes[static_cast<unsigned char>(text[at])];
    if (escaped.empty()) continue;
    to.append(text.substr(begin, at - begin)).append(escaped);
    begin = at + 1;
  }
  to.append(text.substr(begin));
}

// A parameter of the type int[].
std::string array_of(std::span<const World> all, int World::*member) {
  std::string text = "{";
  std::array<char, 12> digits;
  for (const World& one : all) {
    char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), one.*member).ptr;
    text.append(digits.data(), end).push_back(',');
  }
  text.back() = '}';
  return text;
}

task<World> find(const connection& db, int id) {
  auto finds = db.query_one<World>("SELECT id, number FROM world WHERE id = $1", id);
  const std::optional<World> found = co_await std::move(finds);
  co_return found.value();
}

task<http::response> update(const http::request& asked, const connection& db) {
  std::vector<task<World>> finds;
  for (const int id : random_ids(queries_in(asked))) finds.push_back(find(db, id));
  auto together = troupe::when_all(std::move(finds));
  std::vector<World> all = co_await std::move(together);
  for (World& one : all) one.number = random_number();
  auto changes = db.execute(
      "UPDATE world SET number = changed.number FROM unnest($1::int[], $2::int[]) "
      "AS changed (id, number) WHERE world.id = changed.id",
      array_of(all, &World::id), array_of(all, &World::number));
  co_await std::move(changes);
  auto& text = *asked.memory().make<std::pmr::string>();
  text.reserve(all.size() * 40 + 2);
  for (const World& one : all) {
    text += text.empty() ? "[{\"id\":" : ",{\"id\":";
    add(text, one.id);
    text += ",\"randomNumber\":";
    add(text, one.number);
    text += '}';
  }
  text += ']';
  co_return http::response::view(text, "application/json");
}

task<http::response> tell_fortunes(const http::request& asked, const connection& db) {
  auto finds = db.query<Fortune>("SELECT id, message FROM fortune");
  std::vector<Fortune> all = co_await std::move(finds);
  all.push_back({0, "Additional fortune added at request time."});
  std::ranges::sort(all, {}, &Fortune::message);
  auto& page = *asked.memory().make<std::pmr::string>();
  page.reserve(2048);
  page +=
      "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table><tr><th>id</th>"
      "<th>message</th></tr>";
  for (const Fortune& one : all) {
    page += "<tr><td>";
    add(page, one.id);
    page += "</td><td>";
    add_escaped(page, one.message);
    page += "</td></tr>";
  }
  page += "</table></body></html>";
  co_return http::response::view(page, "text/html; charset=utf-8");
}

task<> serve(http::server web) {
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  std::printf("%d\n", listener.local().port());
  std::fflush(stdout);
  co_await web.serve(std::move(listener));
}

}  // namespace

int main() {
  troupe::runtime rt({.workers = 1});
  connections all(rt);
  http::router routes;
  routes.get("/updates", [&all](const http::request& asked) { return update(asked, all.next()); });
  routes.get("/fortunes",
             [&all](const http::request& asked) { return tell_fortunes(asked, all.next()); });
  http::server_options options;
  options.name = "troupe";
  options.connections_per_peer = options.connections;  // all connections come from one address
  rt.spawn(serve(http::server(std::move(routes), options)));
  rt.run();
}
