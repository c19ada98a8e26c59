// httpd: a web server: the files of a folder, the pages of the TechEmpower benchmarks, and a chat.
// needs: sqlite3
//
// httpd DIR [--port N] [--database FILE] [--connections N] [--certificate FILE --key FILE
// [--plain-port N]]: listens on 127.0.0.1 and prints where. SIGTERM or SIGINT ends it: requests
// that have begun are finished. With a certificate it serves HTTPS, by HTTP/2 to clients that offer
// it; SIGHUP then reads the files again, and --plain-port redirects from a port without TLS.
//
// SIGUSR2 starts the program anew, perhaps a newer version of it, with the same arguments and the
// same sockets; when the new one accepts, the old one ends, and no request is lost. The sockets may
// also be those of systemd, by the names web and plain (`Type=notify`).
//
//   /plaintext /json /db /fortunes          as TechEmpower asks for them
//   /queries?queries=N /updates?queries=N   the same
//   /chat                                   a page, and the WebSocket that it talks to
//   /pictures                               a page of 256 small pictures, made when asked for
//   all other paths                         files of DIR
//
// One actor, on a thread of its own, calls SQLite: handlers ask it, and wait without holding a
// thread. With --database sqlite:FILE or postgresql://… the pages use the library's client of that
// database instead, by the same code for both. Without it a request allocates in its context: in
// the steady state no request takes memory of the general heap.
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/database/client.hpp"
#include "troupe/http/files.hpp"
#include "troupe/http/server.hpp"
#include "troupe/http/websocket.hpp"
#include "troupe/sqlite/connection.hpp"
#include "troupe/troupe.hpp"
#if __has_include(<libpq-fe.h>) || __has_include(<postgresql/libpq-fe.h>)
#define HTTPD_HAS_POSTGRES 1
#include "troupe/postgres/pool.hpp"
#else
#define HTTPD_HAS_POSTGRES 0
#endif

namespace http = troupe::http;

constexpr int worlds = 10'000, queries_most = 500;

struct World {
  int id = 0, number = 0;
};
using Worlds = std::span<World>;

struct Fortune {
  int id = 0;
  std::string_view message;
};
// Memory for rows of fortunes and for their texts.
struct FortuneRoom {
  std::span<Fortune> rows;
  std::span<char> texts;
};

constexpr const char* fortune_messages[] = {
    "A bad random number generator: 1, 1, 1, 1, 1, 4.33e+67, 1, 1, 1",
    "A computer program does what you tell it to do.",
    "<script>alert(\"This should not be displayed in a browser alert box.\");</script>",
    "フレームワークのベンチマーク",
    "Any program that runs right is obsolete.",
    "Feature: a bug with seniority."};

int random_number() {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_int_distribution<int>(1, worlds)(random);
}

// A heap of SQLite's own, 8 MiB at first, which uses its freed blocks again. Only the database's
// thread uses it.
class SqliteMemory {
 public:
  static void use() {
    static const sqlite3_mem_methods methods{take,
                                             give_back,
                                             again,
                                             bytes_of,
                                             [](int bytes) { return (bytes + 7) & ~7; },
                                             [](void*) { return SQLITE_OK; },
                                             [](void*) {},
                                             nullptr};
    sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  }

 private:
  struct alignas(8) Head {  // SQLite needs no larger alignment
    int bytes;
  };
  static std::pmr::memory_resource& pool() {
    static std::pmr::monotonic_buffer_resource heap(std::size_t{8} << 20);
    static std::pmr::unsynchronized_pool_resource blocks(&heap);
    return blocks;
  }
  static Head* head_of(void* block) { return static_cast<Head*>(block) - 1; }
  static int bytes_of(void* block) { return block == nullptr ? 0 : head_of(block)->bytes; }
  static void* take(int bytes) try {
    return ::new (pool().allocate(sizeof(Head) + static_cast<std::size_t>(bytes), alignof(Head)))
               Head{bytes} +
           1;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  static void give_back(void* block) {
    if (block != nullptr)
      pool().deallocate(head_of(block), sizeof(Head) + static_cast<std::size_t>(bytes_of(block)),
                        alignof(Head));
  }
  static void* again(void* block, int bytes) {
    void* const larger = take(bytes);
    if (larger == nullptr) return nullptr;
    std::memcpy(larger, block, static_cast<std::size_t>(std::min(bytes, bytes_of(block))));
    give_back(block);
    return larger;
  }
};

// Owns the handle. Its constructor, messages and destructor all run on its thread. It writes
// results into memory of the request that asks. That memory is persisted, so it stays even if the
// request ends before its answer comes.
class Database {
 public:
  explicit Database(std::string file) : file_(std::move(file)) {
    sqlite3* opened = nullptr;
    const int code =
        sqlite3_open_v2(file_.c_str(), &opened,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    handle_.reset(opened);
    check(code == SQLITE_OK);
    execute("PRAGMA synchronous = OFF");
    execute("CREATE TABLE IF NOT EXISTS world (id INTEGER PRIMARY KEY, number INTEGER NOT NULL)");
    execute("CREATE TABLE IF NOT EXISTS fortune (id INTEGER PRIMARY KEY, message TEXT NOT NULL)");
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
    fill();
    find_ = prepare("SELECT number FROM world WHERE id = ?");
    change_ = prepare("UPDATE world SET number = ? WHERE id = ?");
    fortunes_ = prepare("SELECT id, message FROM fortune");
  }

  // Finds as many random worlds as there is space for.
  void find(troupe::persisted<Worlds> to) { find_all(*to); }

  void update(troupe::persisted<Worlds> to) {
    run(begin_);
    find_all(*to);
    for (World& one : *to) {
      one.number = random_number();
      sqlite3_bind_int(change_.get(), 1, one.number);
      sqlite3_bind_int(change_.get(), 2, one.id);
      run(change_);
    }
    run(commit_);
  }

  // Returns the number of fortunes; nothing if they do not fit.
  std::optional<std::size_t> fortunes(troupe::persisted<FortuneRoom> to) {
    std::size_t rows = 0, bytes = 0;
    while (sqlite3_step(fortunes_.get()) == SQLITE_ROW) {
      const std::string_view text(
          reinterpret_cast<const char*>(sqlite3_column_text(fortunes_.get(), 1)),
          static_cast<std::size_t>(sqlite3_column_bytes(fortunes_.get(), 1)));
      if (rows < to->rows.size() && text.size() <= to->texts.size() - bytes) {
        char* const copy = to->texts.data() + bytes;
        text.copy(copy, text.size());
        to->rows[rows] = {sqlite3_column_int(fortunes_.get(), 0), {copy, text.size()}};
        bytes += text.size();
      } else {
        bytes = to->texts.size();
      }
      ++rows;
    }
    check(sqlite3_reset(fortunes_.get()) == SQLITE_OK);
    if (bytes == to->texts.size()) return std::nullopt;
    return rows;
  }

 private:
  struct Close {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  void find_all(Worlds to) {
    for (World& one : to) {
      one.id = random_number();
      sqlite3_bind_int(find_.get(), 1, one.id);
      check(sqlite3_step(find_.get()) == SQLITE_ROW);
      one.number = sqlite3_column_int(find_.get(), 0);
      sqlite3_reset(find_.get());
    }
  }

  void fill() {
    run(begin_);
    const Statement add = prepare("INSERT OR IGNORE INTO world VALUES (?, ?)");
    for (int id = 1; id <= worlds; ++id) {
      sqlite3_bind_int(add.get(), 1, id);
      sqlite3_bind_int(add.get(), 2, random_number());
      run(add);
    }
    const Statement tell = prepare("INSERT OR IGNORE INTO fortune VALUES (?, ?)");
    int id = 0;
    for (const char* message : fortune_messages) {
      sqlite3_bind_int(tell.get(), 1, ++id);
      sqlite3_bind_text(tell.get(), 2, message, -1, nullptr);
      run(tell);
    }
    run(commit_);
  }

  Statement prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v2(handle_.get(), sql, -1, &statement, nullptr) == SQLITE_OK);
    return Statement(statement);
  }
  void execute(const char* sql) {
    const Statement once = prepare(sql);
    check(sqlite3_step(once.get()) != SQLITE_ERROR);
  }
  void run(const Statement& one) {
    check(sqlite3_step(one.get()) == SQLITE_DONE);
    sqlite3_reset(one.get());
  }
  void check(bool well) const {
    if (!well) throw std::runtime_error(file_ + ": " + sqlite3_errmsg(handle_.get()));
  }

  std::string file_;
  std::unique_ptr<sqlite3, Close> handle_;
  Statement begin_, commit_, find_, change_, fortunes_;  // destroyed before the handle
};

// The text of an answer lies in the memory of its request, and is freed with it.
class Text {
 public:
  explicit Text(troupe::context& in) : text_(*in.make<std::pmr::string>()) { text_.reserve(1024); }
  template <class... Parts>
  Text& add(const Parts&... parts) {
    (add_one(parts), ...);
    return *this;
  }
  std::string_view view() const { return text_; }

 private:
  void add_one(std::string_view part) { text_ += part; }
  void add_one(int number) {
    std::array<char, 12> digits;
    text_.append(digits.data(),
                 std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
  }
  std::pmr::string& text_;
};

void add_json(Text& to, const World& one) {
  to.add("{\"id\":", one.id, ",\"randomNumber\":", one.number, "}");
}

http::response json_of(troupe::context& memory, Worlds all) {
  Text text(memory);
  for (const World& one : all) add_json(text.add(&one == all.data() ? "[" : ","), one);
  return http::response::view(text.add("]").view(), "application/json");
}

void add_escaped(Text& to, std::string_view text) {
  for (const char& one : text) {
    switch (one) {
      case '<':
        to.add("&lt;");
        break;
      case '>':
        to.add("&gt;");
        break;
      case '&':
        to.add("&amp;");
        break;
      case '"':
        to.add("&quot;");
        break;
      case '\'':
        to.add("&#39;");
        break;
      default:
        to.add(std::string_view(&one, 1));
    }
  }
}

http::response page_of(troupe::context& memory, std::span<Fortune> all) {
  std::ranges::sort(all, {}, &Fortune::message);
  Text page(memory);
  page.add(
      "<!DOCTYPE "
      "html><html><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</"
      "th></tr>");
  for (const Fortune& one : all) {
    page.add("<tr><td>", one.id, "</td><td>");
    add_escaped(page, one.message);
    page.add("</td></tr>");
  }
  return http::response::view(page.add("</table></body></html>").view(),
                              "text/html; charset=utf-8");
}

// Space for `count` objects in the request's memory.
template <class T>
std::span<T> make_room(troupe::context& memory, std::size_t count) {
  auto& all = *memory.make<std::pmr::vector<T>>();
  all.resize(count);
  return all;
}

// The parameter ?queries=N, from 1 to 500. Anything that is no number counts as 1.
std::size_t queries_in(const http::request& asked) {
  const std::string text = asked.query_value("queries").value_or("1");
  int count = 1;
  const auto [rest, bad] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (bad == std::errc::result_out_of_range) return queries_most;
  return bad == std::errc{} ? static_cast<std::size_t>(std::clamp(count, 1, queries_most)) : 1;
}

// The lines for one guest: the room puts them in, and the guest's connection sends them.
class Outbox {
 public:
  void put(std::string line) {
    {
      std::lock_guard lock(mutex_);
      // A guest who does not read misses lines, long ones sooner than short ones.
      if (lines_.size() == lines_most || bytes_ + line.size() > bytes_most) return;
      bytes_ += line.size();
      lines_.push_back(std::move(line));
    }
    filled_.set();
  }
  troupe::task<std::string> take() {
    for (;;) {
      co_await filled_.wait();
      std::lock_guard lock(mutex_);
      if (lines_.empty()) {
        filled_.reset();
        continue;
      }
      std::string line = std::move(lines_.front());
      lines_.pop_front();
      bytes_ -= line.size();
      co_return line;
    }
  }

 private:
  static constexpr std::size_t lines_most = 1000, bytes_most = 64 * 1024;
  std::mutex mutex_;
  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;  // bytes of all lines
  troupe::event filled_;
};

struct Room {
  std::map<int, std::shared_ptr<Outbox>> present;
  int last = 0;

  int enter(std::shared_ptr<Outbox> outbox) {
    present[++last] = std::move(outbox);
    say("guest " + std::to_string(last) + " is here");
    return last;
  }
  void leave(int who) {
    present.erase(who);
    say("guest " + std::to_string(who) + " has gone");
  }
  void say(std::string line) {
    for (const auto& [who, outbox] : present) outbox->put(line);
  }
};

troupe::task<> hear(http::websocket& peer, troupe::ref<Room> room, int who) {
  for (;;) {
    const auto said = co_await peer.receive();
    if (!said) co_return;
    if (!said->is_text) {
      // The bytes may not be text, which the room could not send to the other guests. So this guest
      // has to leave.
      co_await peer.close(1003, "the chat takes text only");
      co_return;
    }
    // A guest who talks faster than the room passes it on has to wait.
    std::string line = "guest " + std::to_string(who) + ": " + std::string(said->data);
    co_await room.ask<&Room::say>(std::move(line));
  }
}

troupe::task<> tell(http::websocket& peer, std::shared_ptr<Outbox> outbox) {
  for (;;) {
    std::string line = co_await outbox->take();
    co_await peer.send(std::move(line));
  }
}

// When a guest goes, both of the tasks may fail; when_any would throw one error, and the other one
// would be logged as dropped.
troupe::task<> until_gone(troupe::task<> one) {
  try {
    co_await std::move(one);
  } catch (const troupe::error&) {
  }
}

troupe::task<> chat(http::websocket& peer, troupe::ref<Room> room) {
  const auto outbox = std::make_shared<Outbox>();
  const int who = co_await room.ask<&Room::enter>(outbox);
  troupe::task<> hearing = until_gone(hear(peer, room, who));
  troupe::task<> telling = until_gone(tell(peer, outbox));
  co_await troupe::when_any(std::move(hearing), std::move(telling));
  room.tell<&Room::leave>(who);
}

// A page of another site must not speak in the name of the user who looks at it. Browsers let a
// page open a WebSocket to any site, but say which site the page is from. Other clients do not say
// that.
bool is_of_this_site(const http::request& asked) {
  if (!asked.fields().has("Origin")) return true;
  const std::string_view origin = asked.field("Origin");
  const std::size_t scheme_end = origin.find("://");
  return scheme_end != std::string_view::npos &&
         http::same_word(origin.substr(scheme_end + 3), asked.host());
}

constexpr const char chat_page[] = R"(<!DOCTYPE html>
<html><head><title>Chat</title></head><body>
<ul id="lines"></ul>
<form id="form"><input id="text" autocomplete="off"><button>Say</button></form>
<script>
const socket = new WebSocket(location.href.replace("http", "ws"));
socket.onmessage = came => {
  const line = document.createElement("li");
  line.textContent = came.data;
  document.getElementById("lines").append(line);
};
document.getElementById("form").onsubmit = asked => {
  asked.preventDefault();
  const text = document.getElementById("text");
  socket.send(text.value);
  text.value = "";
};
</script></body></html>
)";

// ---- a page of many pictures: parts of the Mandelbrot set ----

constexpr int picture_pixels = 32, pictures_a_side = 16, escape_steps = 64;

std::string pictures_page() {
  std::string page =
      "<!doctype html><meta charset=utf-8><title>pictures</title><style>div{display:grid;"
      "grid-template-columns:repeat(16,32px)}img{display:block}</style><div>";
  for (int i = 0; i < pictures_a_side * pictures_a_side; ++i) {
    page += "<img width=32 height=32 alt='' src=/pictures/" + std::to_string(i % pictures_a_side) +
            "/" + std::to_string(i / pictures_a_side) + ">";
  }
  return page + "</div>\n";
}

// How many steps the point takes to leave the circle around 0 whose radius is 2.
int steps_to_escape(double x, double y) {
  double a = 0, b = 0;
  for (int step = 0; step < escape_steps; ++step) {
    const double next = a * a - b * b + x;
    b = 2 * a * b + y;
    a = next;
    if (a * a + b * b > 4) return step;
  }
  return escape_steps;
}

// One picture, as an uncompressed bitmap.
http::response picture(const http::request& asked, int column, int row) {
  const auto inside = [](int at) { return at >= 0 && at < pictures_a_side; };
  if (!inside(column) || !inside(row)) return http::response(404);
  constexpr std::size_t head = 54, pixels = picture_pixels * picture_pixels,
                        bytes = head + 3 * pixels;
  const std::span<char> all = make_room<char>(asked.memory(), bytes);
  std::ranges::fill(all, 0);
  const auto put = [&](std::size_t at, unsigned number) {  // the least significant byte first
    for (std::size_t i = 0; i < 4; ++i) all[at + i] = static_cast<char>(number >> (8 * i));
  };
  all[0] = 'B', all[1] = 'M';
  put(2, bytes), put(10, head), put(14, 40);
  put(18, picture_pixels), put(22, picture_pixels), put(26, 1 | 24 << 16);
  constexpr double width = 3.0 / (picture_pixels * pictures_a_side);
  std::size_t at = head;
  for (int y = picture_pixels - 1; y >= 0; --y) {  // the last line comes first
    for (int x = 0; x < picture_pixels; ++x) {
      const int steps = steps_to_escape(-2.25 + width * (column * picture_pixels + x),
                                        -1.5 + width * (row * picture_pixels + y));
      const int light = steps == escape_steps ? 0 : 40 + steps * 215 / escape_steps;
      all[at++] = static_cast<char>(light);
      all[at++] = static_cast<char>(light / 2);
      all[at++] = static_cast<char>(light / 4);
    }
  }
  return http::response::view({all.data(), all.size()}, "image/bmp")
      .field("Cache-Control", "max-age=3600");
}

// The pages of a database that is called by hand.
void add_pages(http::router& routes, troupe::ref<Database> database) {
  routes.get("/db", [database](const http::request& asked) -> troupe::task<http::response> {
    const Worlds found = make_room<World>(asked.memory(), 1);
    auto to = troupe::persist(asked.memory().make<Worlds>(found));
    co_await database.ask<&Database::find>(std::move(to));
    Text text(asked.memory());
    add_json(text, found.front());
    co_return http::response::view(text.view(), "application/json");
  });
  routes.get("/queries", [database](const http::request& asked) -> troupe::task<http::response> {
    const Worlds found = make_room<World>(asked.memory(), queries_in(asked));
    auto to = troupe::persist(asked.memory().make<Worlds>(found));
    co_await database.ask<&Database::find>(std::move(to));
    co_return json_of(asked.memory(), found);
  });
  routes.get("/updates", [database](const http::request& asked) -> troupe::task<http::response> {
    const Worlds changed = make_room<World>(asked.memory(), queries_in(asked));
    auto to = troupe::persist(asked.memory().make<Worlds>(changed));
    co_await database.ask<&Database::update>(std::move(to));
    co_return json_of(asked.memory(), changed);
  });
  routes.get("/fortunes", [database](const http::request& asked) -> troupe::task<http::response> {
    for (std::size_t rows = 32;; rows *= 2) {
      const std::span<Fortune> all = make_room<Fortune>(asked.memory(), rows);
      all[0] = {0, "Additional fortune added at request time."};
      FortuneRoom others{all.subspan(1), make_room<char>(asked.memory(), rows * 128)};
      auto to = troupe::persist(asked.memory().make<FortuneRoom>(others));
      const std::optional<std::size_t> found =
          co_await database.ask<&Database::fortunes>(std::move(to));
      if (found) co_return page_of(asked.memory(), all.first(*found + 1));
    }
  });
}

// The same pages by the library's own client, for SQLite and for PostgreSQL.
struct FortuneRow {
  int id = 0;
  std::string message;
};

template <troupe::database::client Store>
troupe::task<> make_tables(Store store) {
  co_await store.run_script(
      "CREATE TABLE IF NOT EXISTS world (id INTEGER PRIMARY KEY, number INTEGER NOT NULL);"
      "CREATE TABLE IF NOT EXISTS fortune (id INTEGER PRIMARY KEY, message TEXT NOT NULL)");
  const auto fill = [](auto& all) -> troupe::task<> {
    for (int id = 1; id <= worlds; ++id)
      co_await all.execute("INSERT INTO world VALUES ($1, $2) ON CONFLICT DO NOTHING", id,
                           random_number());
    int id = 0;
    for (const char* const message : fortune_messages) {
      ++id;
      co_await all.execute("INSERT INTO fortune VALUES ($1, $2) ON CONFLICT DO NOTHING", id,
                           message);
    }
  };
  co_await store.in_transaction(fill);
}

constexpr const char* find_text = "SELECT id, number FROM world WHERE id = $1";

template <class Store>
troupe::task<World> find_world(const Store& store, int id) {
  const std::optional<World> found = co_await store.template query_one<World>(find_text, id);
  co_return found.value();
}

// In the order of their numbers, so that no two requests wait for each other's rows.
template <class Transaction>
troupe::task<> update_worlds(Transaction& all, Worlds changed) {
  for (World& one : changed) one.id = random_number();
  std::ranges::sort(changed, {}, &World::id);
  for (World& one : changed) {
    one = co_await find_world(all, one.id);
    one.number = random_number();
    co_await all.execute("UPDATE world SET number = $1 WHERE id = $2", one.number, one.id);
  }
}

template <troupe::database::client Store>
void add_pages(http::router& routes, Store store) {
  routes.get("/db", [store](const http::request& asked) -> troupe::task<http::response> {
    const World found = co_await find_world(store, random_number());
    Text text(asked.memory());
    add_json(text, found);
    co_return http::response::view(text.view(), "application/json");
  });
  routes.get("/queries", [store](const http::request& asked) -> troupe::task<http::response> {
    std::vector<troupe::task<World>> finds;
    for (std::size_t i = 0; i < queries_in(asked); ++i)
      finds.push_back(find_world(store, random_number()));
    std::vector<World> found = co_await troupe::when_all(std::move(finds));
    co_return json_of(asked.memory(), found);
  });
  routes.get("/updates", [store](const http::request& asked) -> troupe::task<http::response> {
    const Worlds changed = make_room<World>(asked.memory(), queries_in(asked));
    const auto update = [changed](auto& all) -> troupe::task<> {
      return update_worlds(all, changed);
    };
    co_await store.in_transaction(update);
    co_return json_of(asked.memory(), changed);
  });
  routes.get("/fortunes", [store](const http::request& asked) -> troupe::task<http::response> {
    const std::vector<FortuneRow> found =
        co_await store.template query<FortuneRow>("SELECT id, message FROM fortune");
    std::vector<Fortune> all{{0, "Additional fortune added at request time."}};
    for (const FortuneRow& one : found) all.push_back({one.id, one.message});
    co_return page_of(asked.memory(), all);
  });
}

template <class Store>
http::router make_routes(const std::string& folder, Store store, troupe::ref<Room> room) {
  http::router routes;
  routes.get("/plaintext", [] { return http::response::text("Hello, World!").type("text/plain"); });
  routes.get("/json", [] {
    Text text(troupe::this_context());
    return http::response::view(text.add("{\"message\":\"", "Hello, World!", "\"}").view(),
                                "application/json");
  });
  add_pages(routes, std::move(store));
  http::websocket_options speaks;
  speaks.subprotocols = {"chat"};
  speaks.message_bytes = 4096;
  speaks.deflate.emplace();
  // There are many guests, and few of them talk at the same time. A silent guest holds no memory
  // for zlib.
  speaks.deflate->server_no_context_takeover = speaks.deflate->client_no_context_takeover = true;
  routes.get("/chat", [room, speaks](const http::request& asked) {
    if (!asked.head().wants_upgrade) return http::response::html(chat_page);
    if (!is_of_this_site(asked))
      return http::response::text("the page is of another site\n").status(403);
    return http::response::websocket([room](http::websocket& peer) { return chat(peer, room); },
                                     speaks);
  });
  routes.get("/pictures", [page = pictures_page()] { return http::response::html(page); });
  routes.get("/pictures/{column}/{row}", picture);
  routes.files("/", folder);
  return routes;
}

// The program anew. Returns whether it has begun to serve.
troupe::task<bool> start_anew(troupe::service::successor& next, std::vector<std::string> words) {
  bool is_replaced = true;
  try {
    const std::string program = words.front();
    words.erase(words.begin());
    co_await next.start(program, std::move(words));
  } catch (const troupe::error& why) {
    std::cerr << "httpd: " << why.what() << std::endl;
    is_replaced = false;
  }
  co_return is_replaced;
}

// Waits for a signal, and then stops the servers, or lets a new process replace them.
troupe::task<> end_by_signal(troupe::signal_listener signals, http::server web, http::server plain,
                             troupe::service::successor next, std::vector<std::string> words) {
  using namespace std::chrono_literals;
  for (;;) {
    const int signal = co_await signals.next();
    if (signal != SIGUSR2) break;
    const bool is_replaced = co_await start_anew(next, words);
    if (!is_replaced) continue;
    web.drain(30s);
    plain.drain(30s);
    co_return;
  }
  troupe::service::stopping();
  next = troupe::service::successor();  // no client shall wait on its sockets
  web.stop();
  plain.stop();
}

// Reads the files of the certificate again at each SIGHUP. If they are of no use, the server
// continues with those that it has.
troupe::task<> reload_by_signal(troupe::tls_context self) {
  auto signals = troupe::signal_listener::listen({SIGHUP});
  for (;;) {
    co_await signals.next();
    try {
      self.reload();
      std::cout << "read the certificate again" << std::endl;
    } catch (const troupe::option_error& failure) {
      std::cerr << "httpd: " << failure.what() << std::endl;
    }
  }
}

struct Options {
  std::string folder, database = ":memory:", certificate, key;
  int port = 0, connections = 0;
  std::optional<int> plain_port;
};

constexpr const char* usage =
    "usage: httpd DIR [--port N] [--database FILE] [--connections N]\n"
    "             [--certificate FILE --key FILE [--plain-port N]]\n"
    "  DIR              whose files are served\n"
    "  --port N         0 to 65535; 0 (default): one that is free\n"
    "  --database FILE  of SQLite, called by hand (default: in memory)\n"
    "  --database sqlite:FILE, --database postgresql://USER@HOST/NAME\n"
    "                   by the library's own client\n"
    "  --connections N  at a time, and of one peer (default: what the library says)\n"
    "  --certificate FILE, --key FILE\n"
    "                   in PEM: serves HTTPS; SIGHUP reads them again\n"
    "  --plain-port N   with these two: redirects to HTTPS from this port; 0: one that is free\n";

// The arguments are wrong.
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int read_number(std::string_view text, int most) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, number);
  if (bad == std::errc{} && rest == end && number >= 0 && number <= most) return number;
  throw WrongUse("'" + std::string(text) + "' is no number from 0 to " + std::to_string(most));
}

Options parse(int argc, char** argv) {
  Options chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with('-')) {
      if (!chosen.folder.empty()) throw WrongUse("there are two folders");
      chosen.folder = word;
      continue;
    }
    if (++i == argc) throw WrongUse(std::string(word) + " wants a value");
    if (word == "--port") {
      chosen.port = read_number(argv[i], 65'535);
    } else if (word == "--database") {
      chosen.database = argv[i];
    } else if (word == "--certificate") {
      chosen.certificate = argv[i];
    } else if (word == "--key") {
      chosen.key = argv[i];
    } else if (word == "--plain-port") {
      chosen.plain_port = read_number(argv[i], 65'535);
    } else if (word == "--connections") {
      chosen.connections = read_number(argv[i], 1'000'000);
    } else {
      throw WrongUse("there is no option '" + std::string(word) + "'");
    }
  }
  if (chosen.folder.empty()) throw WrongUse("which folder?");
  if (chosen.certificate.empty() != chosen.key.empty())
    throw WrongUse("a certificate and its key belong together");
  if (chosen.plain_port && chosen.key.empty()) throw WrongUse("--plain-port wants a certificate");
  return chosen;
}

// A socket that this process has from another one, or a new one.
troupe::tcp_listener listen_on(int port, const char* name,
                               troupe::service::inherited_sockets& sockets,
                               troupe::service::successor& next) {
  auto listener = sockets.tcp(name);
  if (!listener) {
    const auto at = troupe::endpoint::loopback(static_cast<std::uint16_t>(port));
    listener = troupe::tcp_listener::listen(at);
  }
  next.hand(*listener, name);
  return std::move(*listener);
}

http::router choose_routes(troupe::runtime& rt, const Options& chosen) {
  constexpr std::string_view sqlite = "sqlite:", postgres = "postgresql:";
  const std::string& database = chosen.database;
  const auto by_client = [&](auto store) {
    auto made = rt.spawn(make_tables(store));
    rt.run();
    made.get();
    return make_routes(chosen.folder, std::move(store), rt.spawn<Room>());
  };
  if (database.starts_with(sqlite)) {
    troupe::sqlite::options fast;
    fast.stored = troupe::sqlite::durability::off;
    return by_client(troupe::sqlite::connection(rt, database.substr(sqlite.size()), fast));
  }
  if (database.starts_with(postgres)) {
#if HTTPD_HAS_POSTGRES
    return by_client(troupe::postgres::pool(rt, database));
#else
    throw WrongUse("it was built without libpq");
#endif
  }
  return make_routes(chosen.folder, rt.spawn<Database>(troupe::pinned("database"), database),
                     rt.spawn<Room>());
}

void serve(const Options& chosen, std::vector<std::string> words) {
  auto sockets = troupe::service::inherited_sockets::take();
  SqliteMemory::use();
  troupe::runtime rt;
  http::server_options limits;
  limits.name = "troupe";
  if (chosen.connections > 0) {
    limits.connections = limits.connections_per_peer = static_cast<std::size_t>(chosen.connections);
  }
  http::server web(choose_routes(rt, chosen), limits);
  troupe::service::successor next;
  auto listener = listen_on(chosen.port, "web", sockets, next);
  const troupe::endpoint at = listener.local();
  http::server plain(http::redirect_to_https(at.port()));
  if (chosen.certificate.empty()) {
    rt.spawn(web.serve(std::move(listener)));
  } else {
    const auto self =
        troupe::tls_context::server(troupe::tls_options::https(chosen.certificate, chosen.key));
    rt.spawn(reload_by_signal(self));
    rt.spawn(web.serve(std::move(listener), self));
  }
  std::cout << "listening on " << at.to_string() << std::endl;
  if (chosen.plain_port) {
    auto also = listen_on(*chosen.plain_port, "plain", sockets, next);
    std::cout << "redirecting from " << also.local().to_string() << std::endl;
    rt.spawn(plain.serve(std::move(also)));
  }
  // The signals are heard before the process is ready.
  auto signals = troupe::signal_listener::listen({SIGINT, SIGTERM, SIGUSR2});
  rt.spawn(end_by_signal(std::move(signals), web, plain, std::move(next), std::move(words)));
  troupe::service::ready();
  rt.run();
}

int main(int argc, char** argv) try {
  serve(parse(argc, argv), {argv, argv + argc});
  return 0;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "httpd: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "httpd: " << failure.what() << '\n';
  return 1;
}
