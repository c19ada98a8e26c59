// load_tls: sends requests to an HTTP server over TLS, checks every answer, and prints what that
// cost the server.
//
// load_tls SERVER [ARGUMENT...] BENCH WORKERS SIZE starts SERVER ARGUMENT... BENCH FOLDER on CPU 0,
// and itself runs on CPU 1. FOLDER has certificate.pem, key.pem and files/bulk.txt, of 1 MiB. TLS
// 1.3, TLS_AES_128_GCM_SHA256, X25519; no session is resumed but in tls_resumed.
//
//   - tls_handshakes: 16 connections at a time. Each is made, asks for /hello, and is closed by the
//     server, in order. SIZE: connections.
//   - tls_resumed: the same, and each continues the session of the one before it.
//   - tls_bulk: 4 connections, each of which asks for /bulk.txt repeatedly. SIZE: answers, of 1 MiB
//     each.
//   - https_plaintext: 64 connections, each of which asks for /hello repeatedly. SIZE: answers.
//   - https_idle: each connection gets one answer, and then nothing is asked of it. SIZE:
//     connections.
//
// Prints value (handshakes, MiB or requests, a second), check (answers that were right), cpu_us
// (the server's, for one of them), p50 and p99 (us, from the beginning of one to its end), and
// rss_kb (the server's, at the end). For https_idle value is bytes for one connection.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>

#include <memory>

#include "answers.hpp"
#include "served.hpp"

namespace {

using namespace load;

constexpr std::size_t bulk_bytes = std::size_t{1} << 20;

struct freed {
  void operator()(SSL_CTX* one) const { SSL_CTX_free(one); }
  void operator()(SSL* one) const { SSL_free(one); }
  void operator()(SSL_SESSION* one) const { SSL_SESSION_free(one); }
};

[[noreturn]] void fail_tls(const char* what) {
  const unsigned long code = ERR_get_error();
  const char* const reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  refuse(std::string(what) + ": " + (reason != nullptr ? reason : "without a reason"));
}

struct shape {
  std::string_view bench;
  std::size_t connections;
  bool closes, resumes;  // a connection for each request; sessions are continued
  std::string_view path;
};
constexpr shape shapes[] = {{"tls_handshakes", 16, true, false, "/hello"},
                            {"tls_resumed", 16, true, true, "/hello"},
                            {"tls_bulk", 4, false, false, "/bulk.txt"},
                            {"https_plaintext", 64, false, false, "/hello"},
                            {"https_idle", 0, false, false, "/hello"}};

using context_ptr = std::unique_ptr<SSL_CTX, freed>;

context_ptr make_context(bool resumes) {
  context_ptr made(SSL_CTX_new(TLS_client_method()));
  if (made == nullptr || SSL_CTX_set_min_proto_version(made.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(made.get(), "TLS_AES_128_GCM_SHA256") != 1 ||
      SSL_CTX_set1_groups_list(made.get(), "X25519") != 1) {
    fail_tls("the context");
  }
  SSL_CTX_set_session_cache_mode(
      made.get(),
      resumes ? SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL : SSL_SESS_CACHE_OFF);
  return made;
}

struct connection {
  int fd = -1;
  std::unique_ptr<SSL, freed> tls;
  std::unique_ptr<SSL_SESSION, freed> session;  // of the connection before
  bool shaken = false, continues = false;
  std::size_t answered = 0;
  std::int64_t began_ns = 0;
  answers got;
};

class asking {
 public:
  asking(const server_process& server, const shape& how, std::size_t size, std::string body)
      : server_(server),
        how_(how),
        size_(size),
        body_(std::move(body)),
        all_(how.connections),
        left_(all_.size() + size),
        request_("GET " + std::string(how.path) + " HTTP/1.1\r\nHost: localhost\r\n" +
                 (how.closes ? "Connection: close\r\n\r\n" : "\r\n")),
        context_(make_context(how.resumes)) {}

  void run() {
    late_.reserve(size_);
    for (std::size_t i = 0; i < all_.size(); ++i) open(i);
    std::vector<epoll_event> events(64);
    while (done_ < warm() + size_) {
      const int count = ::epoll_wait(set_, events.data(), static_cast<int>(events.size()), 10'000);
      if (count < 0) fail("epoll_wait");
      if (count == 0) refuse("no answer within 10 s");
      for (int i = 0; i < count; ++i) go_on(events[static_cast<std::size_t>(i)].data.u64);
    }
    const double seconds = static_cast<double>(now_ns() - began_) / 1e9,
                 count = static_cast<double>(size_);
    const double cpu_us = static_cast<double>(server_.cpu_ns() - cpu_began_) / 1e3 / count;
    std::printf("value=%.1f check=%zu cpu_us=%.2f p50=%.1f p99=%.1f rss_kb=%ld\n", count / seconds,
                late_.size(), cpu_us, percentile_us(late_, 0.5), percentile_us(late_, 0.99),
                server_.rss_kb());
  }

 private:
  std::size_t warm() const { return all_.size(); }

  void open(std::size_t which) {
    connection& one = all_[which];
    auto session = std::move(one.session);
    one = connection();
    one.began_ns = now_ns();
    one.fd = server_.connect();
    one.tls.reset(SSL_new(context_.get()));
    if (one.tls == nullptr || SSL_set_fd(one.tls.get(), one.fd) != 1) fail_tls("a connection");
    SSL_set_connect_state(one.tls.get());
    if (session != nullptr && SSL_set_session(one.tls.get(), session.get()) != 1)
      fail_tls("a session");
    one.continues = session != nullptr;
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.u64 = which;
    ::epoll_ctl(set_, EPOLL_CTL_ADD, one.fd, &wanted);
    go_on(which);
  }

  void ask(connection& one) {
    if (left_ == 0) return;
    --left_;
    if (!how_.closes) one.began_ns = now_ns();
    const int bytes = static_cast<int>(request_.size());
    if (SSL_write(one.tls.get(), request_.data(), bytes) != bytes) fail_tls("write");
  }

  // Only reads may have to wait: what we send is less than a socket takes.
  void go_on(std::size_t which) {
    connection& one = all_[which];
    if (!one.shaken) {
      const int done = SSL_do_handshake(one.tls.get());
      if (done != 1) return must_wait(one, done, "the handshake");
      if ((SSL_session_reused(one.tls.get()) != 0) != one.continues)
        refuse(one.continues ? "a session was not resumed" : "a session was resumed");
      one.shaken = true;
      ask(one);
    }
    for (;;) {
      const int bytes = SSL_read(one.tls.get(), buffer_.data(), static_cast<int>(buffer_.size()));
      if (bytes <= 0) {
        if (SSL_get_error(one.tls.get(), bytes) == SSL_ERROR_ZERO_RETURN) return closed(which);
        return must_wait(one, bytes, "read");
      }
      const std::size_t whole = one.got.take(
          std::string_view(buffer_.data(), static_cast<std::size_t>(bytes)), body_, heads_);
      if (whole == 0) continue;
      one.answered += whole;
      if (!how_.closes) {
        count(one);
        ask(one);
      }
    }
  }

  void must_wait(const connection& one, int result, const char* what) const {
    if (SSL_get_error(one.tls.get(), result) != SSL_ERROR_WANT_READ) fail_tls(what);
  }

  void closed(std::size_t which) {
    connection& one = all_[which];
    if (!how_.closes || one.answered != 1) refuse("a connection was closed by the server");
    count(one);
    if (how_.resumes) {
      SSL_shutdown(one.tls.get());  // the session of a connection that is just dropped is no more
      one.session.reset(SSL_get1_session(one.tls.get()));
    }
    one.tls.reset();
    ::close(one.fd);
    if (left_ > 0) open(which);
  }

  void count(const connection& one) {
    const std::int64_t now = now_ns();
    if (++done_ > warm()) late_.push_back(now - one.began_ns);
    if (done_ == warm()) {
      began_ = now;
      cpu_began_ = server_.cpu_ns();
    }
  }

  const server_process& server_;
  const shape how_;
  const std::size_t size_;
  const std::string body_;
  std::vector<connection> all_;
  std::size_t left_, done_ = 0;
  const std::string request_;
  const context_ptr context_;
  const int set_ = ::epoll_create1(0);
  head_memory heads_;
  std::vector<std::int64_t> late_;
  std::int64_t began_ = 0, cpu_began_ = 0;
  std::array<char, 65'536> buffer_;
};

// Connects, sends one request and reads its answer.
std::unique_ptr<SSL, freed> answered(const server_process& server, SSL_CTX& context,
                                     head_memory& heads) {
  std::unique_ptr<SSL, freed> tls(SSL_new(&context));
  const int fd = server.connect();
  ::fcntl(fd, F_SETFL, 0);  // its calls wait
  if (tls == nullptr || SSL_set_fd(tls.get(), fd) != 1) fail_tls("a connection");
  if (SSL_connect(tls.get()) != 1) fail_tls("the handshake");
  const std::string_view request = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (SSL_write(tls.get(), request.data(), static_cast<int>(request.size())) <= 0)
    fail_tls("write");
  answers got;
  for (std::array<char, 4096> buffer;;) {
    const int bytes = SSL_read(tls.get(), buffer.data(), static_cast<int>(buffer.size()));
    if (bytes <= 0) fail_tls("read");
    const std::string_view part(buffer.data(), static_cast<std::size_t>(bytes));
    if (got.take(part, "Hello, World!", heads) == 1) return tls;
  }
}

void idle(const server_process& server, std::size_t size) {
  const context_ptr context = make_context(false);
  head_memory heads;
  const auto first = answered(server, *context, heads);
  const long before = server.rss_kb();
  std::vector<std::unique_ptr<SSL, freed>> all(size);
  for (auto& one : all) one = answered(server, *context, heads);
  ::usleep(500'000);
  const long grown = std::max(0L, server.rss_kb() - before);
  std::printf("value=%.1f check=%zu rss_kb=%ld\n",
              static_cast<double>(grown) * 1024 / static_cast<double>(size), all.size(),
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
    return std::fprintf(stderr, "usage: load_tls SERVER [ARGUMENT...] BENCH WORKERS SIZE\n"), 2;
  return run_main([&] {
    allow_many_files();
    const temporary_folder folder;
    const std::string bulk = letters(bulk_bytes);
    std::filesystem::create_directories(folder.path() + "/files");
    write_file(folder.path() + "/files/bulk.txt", bulk);
    write_certificate(folder.path());
    std::string folder_argument = folder.path();
    argv[argc - 2] = folder_argument.data();
    argv[argc - 1] = nullptr;
    const server_process server(argv + 1);
    pin(1);
    if (how->connections == 0) {
      idle(server, static_cast<std::size_t>(size));
    } else {
      asking(server, *how, static_cast<std::size_t>(size),
             how->path == "/hello" ? "Hello, World!" : bulk)
          .run();
    }
    return 0;
  });
}
