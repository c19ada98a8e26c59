// nats: two blocking sockets and what must be said on them, for the rows nats/*.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <thread>

#include "../measure.hpp"
#include "work.hpp"

namespace {

void check(bool well) {
  if (!well) std::abort();
}

class connection {
 public:
  connection() {
    const std::string at = nats_work::server();
    const std::size_t colon = at.rfind(':');
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(at.substr(colon + 1))));
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    send("CONNECT {\"verbose\":false,\"protocol\":1}\r\nPING\r\n");
    read_until("PONG\r\n");
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() { ::close(fd_); }

  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      check(sent > 0);
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void flush() {
    send("PING\r\n");
    read_until("PONG\r\n");
  }
  // Everything that came up to this text.
  std::string read_until(std::string_view end) {
    std::size_t at = 0;
    while ((at = kept_.find(end)) == std::string::npos) receive();
    std::string all = kept_.substr(0, at + end.size());
    kept_.erase(0, all.size());
    return all;
  }
  // Reads that many messages of one length.
  void read_messages(std::uint64_t count, std::size_t each) {
    for (std::uint64_t left = count * each; left > 0;) {
      if (kept_.empty()) receive();
      const std::uint64_t some = std::min<std::uint64_t>(left, kept_.size());
      kept_.erase(0, some);
      left -= some;
    }
  }

 private:
  void receive() {
    char buffer[65'536];
    const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
    check(got > 0);
    kept_.append(buffer, static_cast<std::size_t>(got));
  }
  int fd_ = -1;
  std::string kept_;
};

const std::string text =
    std::to_string(std::string_view(nats_work::line).size()) + "\r\n" + nats_work::line + "\r\n";

measure::result request(unsigned, std::uint64_t size) {
  connection server, by;
  server.send("SUB " + std::string(nats_work::ask_subject) + " 1\r\n");
  server.flush();
  by.send("SUB in.* 1\r\n");
  by.flush();
  std::thread answers([&] {
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::string got = server.read_until(std::string(nats_work::line) + "\r\n");
      const std::size_t reply = got.find(" in.") + 1;
      server.send("PUB " + got.substr(reply, got.find(' ', reply) - reply) + " " + text);
    }
  });
  measure::result r;
  const measure::stopwatch watch;
  for (; r.check < size; ++r.check) {
    by.send("PUB " + std::string(nats_work::ask_subject) + " in." + std::to_string(r.check) + " " +
            text);
    by.read_until(std::string(nats_work::line) + "\r\n");
  }
  r.value = watch.ns_per(size);
  answers.join();
  return r;
}

measure::result publish(unsigned, std::uint64_t size) {
  connection to, by;
  to.send("SUB " + std::string(nats_work::send_subject) + " 1\r\n");
  to.flush();
  const std::string each = "PUB " + std::string(nats_work::send_subject) + " " + text;
  const std::size_t comes = ("MSG " + std::string(nats_work::send_subject) + " 1 " + text).size();
  measure::result r;
  const measure::stopwatch watch;
  std::thread takes([&] { to.read_messages(size, comes); });
  std::string batch;
  for (std::uint64_t i = 0; i < size; ++i) {
    batch += each;
    if (batch.size() < 60'000) continue;
    by.send(batch);
    batch.clear();
  }
  by.send(batch);
  takes.join();
  r.value = watch.ns_per(size);
  r.check = size;
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {
      {"nats_request", 20'000, request},
      {"nats_publish", 1'000'000, publish},
      {"cluster_ask", 20'000, request},
      {"cluster_tell", 1'000'000, publish},
  };
  measure::run_program(argc, argv, table);
}
