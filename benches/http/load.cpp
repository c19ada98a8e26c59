// load: sends requests to an HTTP server as fast as it answers, checks every answer, and prints
// what that cost the server.
//
// load SERVER [ARGUMENT...] BENCH WORKERS SIZE starts SERVER ARGUMENT... BENCH FOLDER on CPU 0, and
// itself runs on CPU 1. FOLDER has the files that http_static asks for (files/). SIZE: requests in
// total, after a first round that is not counted. Prints value (requests a second), check (answers
// that were right), cpu_us (the server's, for one request), p50 and p99 (us), and rss_kb (the
// server's, at the end). For http_idle SIZE is the number of connections, and value is bytes for
// one connection.
#include <poll.h>
#include <sys/epoll.h>

#include <cstring>
#include <map>
#include <random>

#include "answers.hpp"
#include "document.hpp"
#include "served.hpp"

namespace {

using namespace load;

struct shape {
  std::string_view bench;
  std::size_t connections, depth;
  std::string_view path;
};
constexpr shape shapes[] = {
    {"http_plaintext", 64, 1, "/plaintext"},  {"http_plaintext_1000", 1'000, 1, "/plaintext"},
    {"http_pipelined", 64, 16, "/plaintext"}, {"http_static", 80, 1, ""},
    {"json_pipelined", 64, 16, "/json"},      {"http_idle", 0, 1, "/plaintext"},
};

std::string request_for(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

std::string body_of(std::string_view path) {
  if (path != "/json") return "Hello, World!";
  std::map<std::string, std::string> fields;
  std::vector<int> numbers;
  std::string text;
  write_document(fields, numbers, text);
  return text;
}

void send_all(int fd, std::string_view bytes) {
  if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
    fail("send");
}

struct connection {
  int fd = -1;
  std::size_t waits_for = 0;  // answers
  std::string_view body;      // the body of these answers
  std::int64_t sent_ns = 0;
  answers got;
};

class asking {
 public:
  asking(const server_process& server, const shape& how, std::size_t size)
      : server_(server),
        how_(how),
        warm_(how.connections * how.depth),
        left_(warm_ + size),
        size_(size),
        body_(body_of(how.path)) {
    for (std::size_t i = 0; i < how.depth; ++i) requests_ += request_for(how.path);
    one_bytes_ = requests_.size() / how.depth;
  }

  void run() {
    const int set = ::epoll_create1(0);
    all_.resize(how_.connections);
    late_.reserve(size_);
    for (std::size_t i = 0; i < all_.size(); ++i) {
      all_[i].fd = server_.connect();
      epoll_event wanted{};
      wanted.events = EPOLLIN;
      wanted.data.u64 = i;
      ::epoll_ctl(set, EPOLL_CTL_ADD, all_[i].fd, &wanted);
    }
    for (connection& one : all_) ask(one);
    std::vector<epoll_event> events(1024);
    while (answered_ < warm_ + size_) {
      const int count = ::epoll_wait(set, events.data(), static_cast<int>(events.size()), 10'000);
      if (count < 0) fail("epoll_wait");
      if (count == 0) refuse("no answer within 10 s");
      for (int i = 0; i < count; ++i) receive(all_[events[static_cast<std::size_t>(i)].data.u64]);
    }
    print();
  }

 private:
  void ask(connection& one) {
    const std::size_t count = std::min(how_.depth, left_);
    if (count == 0) return;
    left_ -= count;
    one.waits_for = count;
    one.body = body_;
    one.sent_ns = now_ns();
    if (how_.path.empty()) {
      const std::size_t file = random_() % small_files::count;
      one.body = files_.body(file);
      send_all(one.fd, request_for(small_files::path(file)));
    } else {
      send_all(one.fd, std::string_view(requests_).substr(0, count * one_bytes_));
    }
  }

  void receive(connection& one) {
    const ssize_t part = ::recv(one.fd, buffer_.data(), buffer_.size(), 0);
    if (part < 0) fail("recv");
    if (part == 0) refuse("a connection was closed by the server");
    const std::size_t whole = one.got.take(
        std::string_view(buffer_.data(), static_cast<std::size_t>(part)), one.body, heads_);
    if (whole > one.waits_for) refuse("more answers than requests");
    if (whole == 0) return;
    one.waits_for -= whole;
    const std::int64_t now = now_ns();
    for (std::size_t i = 0; i < whole; ++i) {
      if (++answered_ > warm_) late_.push_back(now - one.sent_ns);
      if (answered_ == warm_) {
        began_ = now;
        cpu_began_ = server_.cpu_ns();
      }
    }
    if (one.waits_for == 0) ask(one);
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
  const shape how_;
  const std::size_t warm_;
  std::size_t left_, size_, one_bytes_ = 0, answered_ = 0;
  std::string requests_;
  const std::string body_;
  small_files files_;
  std::minstd_rand random_;
  head_memory heads_;
  std::vector<connection> all_;
  std::vector<std::int64_t> late_;
  std::int64_t began_ = 0, cpu_began_ = 0;
  std::array<char, 65'536> buffer_;
};

// Sends one request and reads its answer.
bool is_answered(int fd, head_memory& heads) {
  send_all(fd, request_for("/plaintext"));
  answers got;
  for (std::array<char, 4096> buffer;;) {
    pollfd wanted{fd, POLLIN, 0};
    if (::poll(&wanted, 1, 10'000) <= 0) return false;
    const ssize_t part = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (part <= 0) return false;
    if (got.take(std::string_view(buffer.data(), static_cast<std::size_t>(part)), "Hello, World!",
                 heads) == 1)
      return true;
  }
}

// Each connection gets one answer, and then nothing is asked of it.
void idle(const server_process& server, std::size_t size) {
  head_memory heads;
  if (!is_answered(server.connect(), heads)) refuse("the first connection was not answered");
  const long before = server.rss_kb();
  std::vector<int> all(size);
  for (int& fd : all) {
    fd = server.connect();
    if (!is_answered(fd, heads)) refuse("a connection was not answered");
  }
  ::usleep(500'000);
  const long grown = std::max(0L, server.rss_kb() - before);
  std::size_t alive = 0;
  for (const int fd : all) alive += is_answered(fd, heads) ? 1 : 0;
  std::printf("value=%.1f check=%zu rss_kb=%ld\n",
              static_cast<double>(grown) * 1024 / static_cast<double>(size), alive,
              server.rss_kb());
}

}  // namespace

int main(int argc, char** argv) {
  const shape* how = nullptr;
  for (const shape& one : shapes) {
    if (argc >= 5 && one.bench == argv[argc - 3]) how = &one;
  }
  const long size = argc >= 5 ? std::atol(argv[argc - 1]) : 0;
  if (how == nullptr || size < 1)
    return std::fprintf(stderr, "usage: load SERVER [ARGUMENT...] BENCH WORKERS SIZE\n"), 2;
  return run_main([&] {
    allow_many_files();
    const temporary_folder folder;
    if (how->path.empty()) small_files().write_to(folder.path() + "/files");
    std::string folder_argument = folder.path();
    argv[argc - 2] = folder_argument.data();
    argv[argc - 1] = nullptr;
    const server_process server(argv + 1);
    pin(1);
    if (how->connections == 0) {
      idle(server, static_cast<std::size_t>(size));
    } else {
      asking(server, *how, static_cast<std::size_t>(size)).run();
    }
    return 0;
  });
}
