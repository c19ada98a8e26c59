// load: asks a web server for pages that it makes of PostgreSQL, checks every answer, and prints
// what that cost the server.
//
// load SERVER [ARGUMENT...] BENCH WORKERS SIZE makes the tables, starts SERVER ARGUMENT... on CPU
// 0, and itself runs on CPU 1. SIZE: requests in total over 64 connections, one at a time each,
// after a first round that is not counted. Before and after them it asks the database whether the
// server has stored what it has answered. Prints value (requests a second), check (answers that
// were right), cpu_us (the server's, for one request), p50, p99 (us) and rss_kb.
#include <libpq-fe.h>
#include <poll.h>
#include <sys/epoll.h>

#include <charconv>
#include <optional>

#include "../http/answers.hpp"
#include "../server_process.hpp"
#include "fortunes.hpp"
#include "work.hpp"

namespace {

using namespace load;

constexpr std::size_t connections = 64, updates_of_one = 20;

std::string request_for(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

void send_all(int fd, std::string_view bytes) {
  if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
    fail("send");
}

struct world {
  int id = 0, number = 0;
};

// Reads [{"id":1,"randomNumber":2},...].
class worlds_reader {
 public:
  explicit worlds_reader(std::string_view body) : rest_(body), body_(body) {}
  const std::vector<world>& read() {
    all_.clear();
    take("[");
    do {
      world one;
      take("{\"id\":");
      one.id = number();
      take(",\"randomNumber\":");
      one.number = number();
      take("}");
      all_.push_back(one);
    } while (rest_.starts_with(',') && (rest_.remove_prefix(1), true));
    take("]");
    if (!rest_.empty()) refuse("more than a list", body_);
    return all_;
  }

 private:
  void take(std::string_view word) {
    if (!rest_.starts_with(word)) refuse("no list of worlds", body_);
    rest_.remove_prefix(word.size());
  }
  int number() {
    int made = 0;
    const auto [end, bad] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), made);
    if (bad != std::errc{} || made < 1 || made > db_work::worlds) refuse("a wrong number", body_);
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return made;
  }
  std::string_view rest_;
  const std::string_view body_;
  std::vector<world> all_;
};

// An answer of one connection as it comes.
class incoming {
 public:
  // The body once it is whole; views live until the next call.
  std::optional<std::string_view> take(std::string_view part) {
    if (is_whole_) text_.clear();
    is_whole_ = false;
    text_ += part;
    if (text_.size() == part.size() || body_at_ == 0) {
      const std::size_t end = text_.find("\r\n\r\n");
      body_at_ = end == std::string::npos ? 0 : end + 4;
      if (body_at_ == 0) return {};
      length_ = length_in(std::string_view(text_).substr(0, body_at_));
    }
    if (text_.size() < body_at_ + length_) return {};
    if (text_.size() > body_at_ + length_) refuse("more than one answer", text_);
    is_whole_ = true;
    return std::string_view(text_).substr(body_at_);
  }

 private:
  std::string text_;
  std::size_t body_at_ = 0, length_ = 0;
  bool is_whole_ = false;
};

struct shape {
  std::string_view bench;
  std::string path;
};

class expected {
 public:
  explicit expected(bool fortunes) : page_(fortunes ? db_work::fortunes_page() : "") {}
  void check(std::string_view body) const {
    if (!page_.empty()) {
      if (body != page_) refuse("another page", body);
    } else if (worlds_reader(body).read().size() != updates_of_one) {
      refuse("another number of worlds", body);
    }
  }

 private:
  const std::string page_;
};

std::string ask_once(int fd, const std::string& path) {
  send_all(fd, request_for(path));
  incoming got;
  for (std::array<char, 65'536> buffer;;) {
    pollfd wanted{fd, POLLIN, 0};
    if (::poll(&wanted, 1, 10'000) <= 0) refuse("no answer within 10 s");
    const ssize_t part = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (part <= 0) refuse("a connection was closed by the server");
    const auto body = got.take({buffer.data(), static_cast<std::size_t>(part)});
    if (body) return std::string(*body);
  }
}

class database {
 public:
  database() : pg_(PQconnectdb(db_work::postgres_target().c_str())) {
    PQsetNoticeProcessor(
        pg_, [](void*, const char*) {}, nullptr);
    run(db_work::web_tables, PGRES_COMMAND_OK);
  }
  database(const database&) = delete;
  ~database() { PQfinish(pg_); }

  // Asks for changes of each number of worlds, and looks whether the rows have what was answered.
  void check_updates(int fd) {
    const std::pair<const char*, std::size_t> cases[] = {
        {"/updates?queries=20", 20}, {"/updates?queries=1", 1},     {"/updates?queries=0", 1},
        {"/updates?queries=no", 1},  {"/updates?queries=501", 500},
    };
    std::size_t same = 0, all = 0;
    for (const auto& [path, count] : cases) {
      const std::string body = ask_once(fd, path);
      worlds_reader reader(body);
      const std::vector<world>& answered = reader.read();
      if (answered.size() != count) refuse(std::string(path) + ": another number", body);
      for (const world& one : answered) {
        const std::string text = "SELECT number FROM world WHERE id = " + std::to_string(one.id);
        if (run(text.c_str(), PGRES_TUPLES_OK) != std::to_string(one.number))
          refuse("the row has another number than was answered", body);
        same += one.id == one.number ? 1 : 0;
        ++all;
      }
    }
    if (same > all / 2) refuse("the numbers are those that were there before");
  }

 private:
  std::string run(const char* text, ExecStatusType wanted) {
    PGresult* const result = PQexec(pg_, text);
    if (PQresultStatus(result) != wanted) refuse(PQerrorMessage(pg_));
    std::string first = PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "";
    PQclear(result);
    return first;
  }
  PGconn* const pg_;
};

struct connection {
  int fd = -1;
  std::int64_t sent_ns = 0;
  incoming got;
};

class asking {
 public:
  asking(const server_process& server, const shape& how, std::size_t size)
      : server_(server),
        request_(request_for(how.path)),
        right_(how.bench == "fortunes"),
        left_(connections + size),
        size_(size) {}

  void run() {
    const int set = ::epoll_create1(0);
    all_.resize(connections);
    late_.reserve(size_);
    for (std::size_t i = 0; i < all_.size(); ++i) {
      all_[i].fd = server_.connect();
      epoll_event wanted{};
      wanted.events = EPOLLIN;
      wanted.data.u64 = i;
      ::epoll_ctl(set, EPOLL_CTL_ADD, all_[i].fd, &wanted);
    }
    for (connection& one : all_) ask(one);
    std::vector<epoll_event> events(connections);
    while (answered_ < connections + size_) {
      const int count = ::epoll_wait(set, events.data(), static_cast<int>(events.size()), 10'000);
      if (count < 0) fail("epoll_wait");
      if (count == 0) refuse("no answer within 10 s");
      for (int i = 0; i < count; ++i) receive(all_[events[static_cast<std::size_t>(i)].data.u64]);
    }
    print();
  }

 private:
  void ask(connection& one) {
    if (left_ == 0) return;
    --left_;
    one.sent_ns = now_ns();
    send_all(one.fd, request_);
  }

  void receive(connection& one) {
    const ssize_t part = ::recv(one.fd, buffer_.data(), buffer_.size(), 0);
    if (part < 0) fail("recv");
    if (part == 0) refuse("a connection was closed by the server");
    const auto body = one.got.take({buffer_.data(), static_cast<std::size_t>(part)});
    if (!body) return;
    right_.check(*body);
    const std::int64_t now = now_ns();
    if (++answered_ > connections) late_.push_back(now - one.sent_ns);
    if (answered_ == connections) {
      began_ = now;
      cpu_began_ = server_.cpu_ns();
    }
    ask(one);
  }

  void print() {
    const double seconds = static_cast<double>(now_ns() - began_) / 1e9,
                 count = static_cast<double>(size_);
    const double cpu_us = static_cast<double>(server_.cpu_ns() - cpu_began_) / 1e3 / count;
    std::printf("value=%.0f check=%zu cpu_us=%.3f p50=%.1f p99=%.1f rss_kb=%ld\n", count / seconds,
                late_.size(), cpu_us, percentile_us(late_, 0.5), percentile_us(late_, 0.99),
                server_.rss_kb());
  }

  const server_process& server_;
  const std::string request_;
  const expected right_;
  std::size_t left_, size_, answered_ = 0;
  std::vector<connection> all_;
  std::vector<std::int64_t> late_;
  std::int64_t began_ = 0, cpu_began_ = 0;
  std::array<char, 65'536> buffer_;
};

}  // namespace

int main(int argc, char** argv) {
  const shape shapes[] = {
      {"postgres_updates", "/updates?queries=" + std::to_string(updates_of_one)},
      {"fortunes", "/fortunes"},
  };
  const shape* how = nullptr;
  for (const shape& one : shapes) {
    if (argc >= 5 && one.bench == argv[argc - 3]) how = &one;
  }
  const long size = argc >= 5 ? std::atol(argv[argc - 1]) : 0;
  if (how == nullptr || size < 1)
    return std::fprintf(stderr, "usage: load SERVER [ARGUMENT...] BENCH WORKERS SIZE\n"), 2;
  argv[argc - 3] = nullptr;
  return run_main([&] {
    database tables;
    const server_process server(argv + 1);
    pin(1);
    const int fd = server.connect();
    tables.check_updates(fd);
    expected(true).check(ask_once(fd, "/fortunes"));
    asking(server, *how, static_cast<std::size_t>(size)).run();
    tables.check_updates(fd);
    return 0;
  });
}
