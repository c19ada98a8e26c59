// wiki: serves the pages of a wiki's dump, with an index in memory and the text out of the file.
//
// wiki FILE [--port N]: listens on 127.0.0.1 and prints where. FILE is a dump as MediaWiki makes
// it: each page stands between lines with <page> and </page>, and has a line with <title>…</title>.
// SIGTERM or SIGINT ends it.
//
//   /                         how many pages there are
//   /wiki/TITLE               that page's part of FILE, by sendfile; ranges of it, too
//   /titles?prefix=P&limit=N  titles that begin so, in order: a JSON list of at most N (default 20,
//                             at most 1,000)
//
// The main thread builds the index once, in a context of its own, and persists it. From then on the
// index is constant, and all handlers on all threads share it without a lock or a count for each
// request. A handler allocates its answer in the request's context.
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory_resource>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/http/files.hpp"
#include "troupe/http/server.hpp"
#include "troupe/troupe.hpp"

namespace http = troupe::http;

struct Page {
  using allocator_type = std::pmr::polymorphic_allocator<>;
  std::pmr::string title;
  std::uint64_t offset = 0, bytes = 0;

  explicit Page(allocator_type memory) : title(memory) {}
  Page(Page&& other, allocator_type memory)
      : title(std::move(other.title), memory), offset(other.offset), bytes(other.bytes) {}
  Page(Page&&) noexcept = default;
  Page& operator=(Page&&) noexcept = default;
};

// Sorted by title.
using Index = std::pmr::vector<Page>;

std::string_view between(std::string_view line, std::string_view open, std::string_view close) {
  const std::size_t from = line.find(open);
  if (from == std::string_view::npos) return {};
  const std::size_t begin = from + open.size(), end = line.find(close, begin);
  return end == std::string_view::npos ? std::string_view() : line.substr(begin, end - begin);
}

// Replaces "&amp;" and the like, as MediaWiki writes them.
void append_plain(std::string_view text, std::pmr::string& to) {
  static constexpr std::pair<std::string_view, char> entities[] = {
      {"&amp;", '&'}, {"&quot;", '"'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&#039;", '\''}};
  while (!text.empty()) {
    const auto* known = std::ranges::find_if(
        entities, [&](const auto& one) { return text.starts_with(one.first); });
    const bool is_entity = known != std::end(entities);
    to.push_back(is_entity ? known->second : text.front());
    text.remove_prefix(is_entity ? known->first.size() : 1);
  }
}

void fill(Index& index, const std::string& path) {
  std::ifstream dump(path, std::ios::binary);
  if (!dump) throw std::runtime_error("'" + path + "' cannot be read");
  std::uint64_t at = 0, begin = 0;
  bool inside = false, titled = false;
  for (std::string line; std::getline(dump, line);) {
    const std::uint64_t line_begins = at;
    at += line.size() + (dump.eof() ? 0 : 1);
    if (line.find("<page>") != std::string::npos) {
      inside = true;
      titled = false;
      begin = line_begins;
    } else if (const auto title = between(line, "<title>", "</title>");
               inside && !titled && !title.empty()) {
      append_plain(title, index.emplace_back().title);
      index.back().offset = begin;
      titled = true;
    } else if (inside && line.find("</page>") != std::string::npos) {
      if (titled) index.back().bytes = at - begin;
      inside = false;
    }
  }
  std::erase_if(index, [](const Page& one) { return one.bytes == 0; });  // the dump was cut off
  std::ranges::sort(index, {}, &Page::title);
}

void append_json(std::pmr::string& to, std::string_view text) {
  to += '"';
  for (const char one : text) {
    const auto code = static_cast<unsigned char>(one);
    if (one == '"' || one == '\\') to += '\\';
    if (code < 0x20) {
      to += "\\u00";
      to += static_cast<char>('0' + code / 16);
      to += "0123456789abcdef"[code % 16];
    } else {
      to += one;
    }
  }
  to += '"';
}

http::response give_titles(const Index& index, const http::request& asked) {
  const std::string prefix = asked.query_value("prefix").value_or(""),
                    limit = asked.query_value("limit").value_or("20");
  std::size_t most = 0;
  const auto [rest, bad] = std::from_chars(limit.data(), limit.data() + limit.size(), most);
  if (bad != std::errc{} || rest != limit.data() + limit.size() || most > 1'000) {
    return http::response::text("limit is a number up to 1000\n").status(400);
  }
  auto list = troupe::this_context().make<std::pmr::string>("[");
  auto at = std::ranges::lower_bound(index, std::string_view(prefix), {},
                                     [](const Page& one) { return std::string_view(one.title); });
  for (; most != 0 && at != index.end() && at->title.starts_with(prefix); --most, ++at) {
    if (list->size() > 1) *list += ',';
    append_json(*list, at->title);
  }
  *list += "]\n";
  return http::response::view(*list, "application/json");
}

http::response give_page(const Index& index, const troupe::file& dump, const http::request& asked,
                         std::string_view title) {
  std::pmr::string name(title, &troupe::this_context());
  std::ranges::replace(name, '_', ' ');
  const auto at = std::ranges::lower_bound(index, name, {}, &Page::title);
  if (at == index.end() || at->title != name)
    return http::response::text("there is no such page\n").status(404);
  return http::file_response(asked, dump, at->offset, at->bytes, "application/xml; charset=utf-8");
}

troupe::task<> serve(std::string path, troupe::persisted<Index> index,
                     troupe::tcp_listener listener, troupe::signal_listener ends) {
  troupe::file opened = co_await troupe::file::open(path);
  const auto dump = std::make_shared<const troupe::file>(std::move(opened));
  http::router routes;
  routes.get("/",
             [index] { return http::response::text(std::to_string(index->size()) + " pages\n"); });
  routes.get("/titles", [index](const http::request& asked) { return give_titles(*index, asked); });
  routes.get("/wiki/{title...}", [index, dump](const http::request& asked, std::string_view title) {
    return give_page(*index, *dump, asked, title);
  });
  http::server web(std::move(routes));
  troupe::future<> serving = troupe::spawn(web.serve(std::move(listener)));
  co_await ends.next();
  web.stop();
  co_await std::move(serving);
}

int main(int count, char** arguments) try {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  std::uint16_t port = 8080;
  if (words.size() == 3 && words[1] == "--port") {
    const auto [rest, bad] =
        std::from_chars(words[2].data(), words[2].data() + words[2].size(), port);
    if (bad != std::errc{} || *rest != '\0')
      throw std::invalid_argument("--port wants a number up to 65535");
  } else if (words.size() != 1) {
    std::cerr << "usage: wiki FILE [--port N]\n";
    return 2;
  }

  troupe::owned_context memory = troupe::make_context({.name = "index"});
  auto index = memory->make<Index>();
  fill(*index, words[0]);

  troupe::runtime rt;
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(port));
  std::cout << index->size() << " pages, " << memory->bytes() << " bytes of index, http://"
            << listener.local().to_string() << '/' << std::endl;
  rt.spawn(serve(words[0], troupe::persist(index), std::move(listener),
                 troupe::signal_listener::listen({SIGTERM, SIGINT})));
  rt.run();
} catch (const std::exception& error) {
  std::cerr << "wiki: " << error.what() << '\n';
  return 1;
}
