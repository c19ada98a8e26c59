// Our TLS server, on one worker: one task for each connection, which answers requests in HTTP.
//
// bench_tls BENCH FOLDER. This program does not use http::server. It reads a request to its end,
// looks at its target, and answers /hello with a line, and everything else with
// FOLDER/files/bulk.txt. It reads that file while it sends it, as a server of files does.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "troupe/io/error.hpp"
#include "troupe/tls/stream.hpp"
#include "troupe/troupe.hpp"

namespace {

std::string head_for(std::size_t bytes, bool closes) {
  return "HTTP/1.1 200 OK\r\nServer: troupe\r\nDate: Sun, 06 Nov 1994 08:49:37 "
         "GMT\r\nContent-Type: text/plain\r\nContent-Length: " +
         std::to_string(bytes) + (closes ? "\r\nConnection: close\r\n\r\n" : "\r\n\r\n");
}

struct open_file {
  explicit open_file(const std::string& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  open_file(const open_file&) = delete;
  ~open_file() { ::close(fd); }
  const int fd;
};

troupe::task<> send_file(troupe::tls_stream& peer, const std::string& path) {
  const open_file file(path);
  struct stat is {};
  if (::fstat(file.fd, &is) != 0) co_return;
  std::string head = head_for(static_cast<std::size_t>(is.st_size), false);
  co_await peer.write_all(std::move(head));
  std::array<char, 32'768> part;
  for (ssize_t bytes; (bytes = ::read(file.fd, part.data(), part.size())) > 0;) {
    co_await peer.write_all(std::string_view(part.data(), static_cast<std::size_t>(bytes)));
  }
}

troupe::task<> converse(troupe::tls_context self, troupe::tcp_stream over, std::string path) {
  try {
    auto peer = troupe::tls_stream::server(self, std::move(over));
    co_await peer.handshake();
    std::array<char, 4096> buffer;
    for (std::string asked;;) {
      const std::size_t bytes = co_await peer.read(buffer);
      if (bytes == 0) break;
      asked.append(buffer.data(), bytes);
      if (!asked.ends_with("\r\n\r\n")) continue;
      if (asked.starts_with("GET /hello ")) {
        std::string answer = head_for(13, true) + "Hello, World!";
        co_await peer.write_all(std::move(answer));
        co_await peer.shutdown();
        break;
      }
      asked.clear();
      co_await send_file(peer, path);
    }
  } catch (const troupe::io_error&) {  // the peer has gone
  } catch (const troupe::tls_error&) {
  }
}

troupe::task<> serve(troupe::runtime& rt, std::string folder) {
  troupe::tls_options options;
  options.certificate_file = folder + "/certificate.pem";
  options.key_file = folder + "/key.pem";
  options.tickets = false;
  const auto self = troupe::tls_context::server(options);
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  std::printf("%d\n", listener.local().port());
  std::fflush(stdout);
  for (;;) {
    troupe::tcp_stream peer = co_await listener.accept();
    rt.spawn(converse(self, std::move(peer), folder + "/files/bulk.txt"));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  troupe::runtime rt({.workers = 1});
  rt.spawn(serve(rt, argv[2]));
  rt.run();
}
