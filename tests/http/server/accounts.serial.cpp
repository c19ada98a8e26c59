// One client that makes the server keep much, in each way that there is: what is kept for it stays
// within its share, and others are served meanwhile. docs/protocols/accounts.md has the rules.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "http/h2/h2_peer.hpp"
#include "http/websocket/handshake/deflate.hpp"
#include "support/open_files.hpp"
#include "support/resident.hpp"
#include "support/scratch.hpp"
#include "tls/certificates.hpp"
#include "troupe/http/around/compress.hpp"
#include "troupe/http/values/form.hpp"
#include "troupe/http/websocket.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;
using namespace std::chrono_literals;
using namespace std::string_literals;

constexpr int looks = 6;
constexpr std::size_t mib = 1024 * 1024, budget = 32 * mib, share = 4 * mib;

// From where a client comes: its own address, and what a proxy says of it.
struct origin {
  const char* address;
  const char* forwarded_for;
  std::string line() const {
    return *forwarded_for == '\0' ? "" : "X-Forwarded-For: " + std::string(forwarded_for) + "\r\n";
  }
  h2::field_pairs field() const {
    if (*forwarded_for == '\0') return {};
    return {{"x-forwarded-for", forwarded_for}};
  }
};

// A connection that sends all it has as far as the server takes it.
class sender {
 public:
  sender(const endpoint& to, const origin& from, std::string bytes)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), bytes_(std::move(bytes)) {
    const int small = 8 * 1024;  // what the kernel keeps is no concern of this test
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    const timeval most{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    const endpoint own = endpoint::parse(from.address + ":0"s);
    is_open_ =
        ::bind(fd_, own.data(), own.size()) == 0 && ::connect(fd_, to.data(), to.size()) == 0;
  }
  sender(sender&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        is_open_(other.is_open_),
        bytes_(std::move(other.bytes_)),
        at_(other.at_) {}
  ~sender() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool is_open() const { return is_open_; }
  // Returns whether it has sent something.
  bool pump() {
    if (!is_open_ || at_ == bytes_.size()) return false;
    const ssize_t sent =
        ::send(fd_, bytes_.data() + at_, bytes_.size() - at_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) is_open_ = errno == EAGAIN;
    if (sent > 0) at_ += static_cast<std::size_t>(sent);
    return sent > 0;
  }
  bool is_sent() const { return !is_open_ || at_ == bytes_.size(); }
  bool hears(std::string_view words) const {
    std::string got;
    std::array<char, 1000> buffer;
    while (got.find(words) == std::string::npos) {
      const ssize_t bytes = ::recv(fd_, buffer.data(), buffer.size(), 0);
      if (bytes <= 0) return false;
      got.append(buffer.data(), static_cast<std::size_t>(bytes));
    }
    return true;
  }

 private:
  int fd_;
  bool is_open_ = true;
  std::string bytes_;
  std::size_t at_ = 0;
};

// ---- what the attackers send, one text for each connection ----

std::string upload(const char* path, const origin& from) {
  return "POST "s + path + " HTTP/1.1\r\nHost: a\r\n" + from.line() +
         "Content-Length: 1000000\r\n\r\n" + std::string(999'900, 'x');
}
std::string uploads_by_h2(const char* path, const origin& from) {
  std::string all = h2::hello;
  for (std::int32_t stream = 1; stream < 200; stream += 2) {
    all += h2::ask(stream, h2::post(path, from.field()), false);
    for (int i = 0; i < 3; ++i) all += h2::frame_of(h2::data, 0, stream, std::string(16'000, 'x'));
  }
  return all;
}
std::string upgrade(const origin& from) {
  return "GET /talk HTTP/1.1\r\nHost: a\r\n" + from.line() +
         "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
}
// A message of 900,000 bytes, less its last ones.
std::string half_message(std::size_t bytes) {
  return "\x82\xff"s + h2::number(900'000, 8) + "\0\0\0\0"s + std::string(bytes, 'x');
}
std::string message(const char*, const origin& from) {
  return upgrade(from) + half_message(890'000);
}
std::string messages_by_h2(const char*, const origin& from) {
  std::string all = h2::hello;
  for (std::int32_t stream = 1; stream < 200; stream += 2) {
    h2::field_pairs asked{{":method", "CONNECT"}, {":protocol", "websocket"},
                          {":scheme", "http"},    {":path", "/talk"},
                          {":authority", "a"},    {"sec-websocket-version", "13"}};
    for (const auto& one : from.field()) asked.push_back(one);
    all += h2::ask(stream, asked, false);
    const std::string begun = half_message(48'000);
    for (std::size_t at = 0; at < begun.size(); at += 16'000)
      all += h2::frame_of(h2::data, 0, stream, begun.substr(at, 16'000));
  }
  return all;
}
std::string unread(const char* path, const origin& from) {
  std::string all;
  for (int i = 0; i < 20; ++i)
    all += "GET "s + path + " HTTP/1.1\r\nHost: a\r\n" + from.line() + "\r\n";
  return all;
}
std::string unread_by_h2(const char* path, const origin& from) {
  std::string all = h2::hello;
  for (std::int32_t stream = 1; stream < 200; stream += 2)
    all += h2::ask(stream, h2::get(path, from.field()));
  return all;
}

// The coding of an answer is the path's last word.
std::string encoded_stream(const char* path, const origin& from) {
  const std::string coding(std::string_view(path).substr(std::string_view(path).rfind('/') + 1));
  return "GET "s + path + " HTTP/1.1\r\nHost: a\r\n" + from.line() + "Accept-Encoding: " + coding +
         "\r\n\r\n";
}
std::string encoded_streams_by_h2(const char* path, const origin& from) {
  const std::string coding(std::string_view(path).substr(std::string_view(path).rfind('/') + 1));
  h2::field_pairs fields = from.field();
  fields.emplace_back("accept-encoding", coding);
  std::string all = h2::hello;
  for (std::int32_t stream = 1; stream < 200; stream += 2)
    all += h2::ask(stream, h2::get(path, fields));
  return all;
}
// A form that does not end, with so many parts of so many bytes.
std::string half_form(int parts, std::size_t bytes, bool is_file) {
  std::string all;
  for (int i = 0; i < parts; ++i) {
    const std::string name = "f" + std::to_string(i);
    all += "--b\r\nContent-Disposition: form-data; name=" + name +
           (is_file ? "; filename=" + name : "") + "\r\n\r\n" + std::string(bytes, 'x') + "\r\n";
  }
  return all;
}
std::string form(const std::string& begun, const origin& from) {
  return "POST /form HTTP/1.1\r\nHost: a\r\n" + from.line() +
         "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n\r\n" + begun;
}
std::string form_of_fields(const char*, const origin& from) {
  return form(half_form(15, 60'000, false), from);
}
std::string form_of_files(const char*, const origin& from) {
  return form(half_form(14, 66'000, true), from);
}
std::string forms_by_h2(const std::string& begun, const origin& from) {
  h2::field_pairs fields = from.field();
  fields.emplace_back("content-type", "multipart/form-data; boundary=b");
  std::string all = h2::hello;
  for (std::int32_t stream = 1; stream < 200; stream += 2) {
    all += h2::ask(stream, h2::post("/form", fields), false);
    for (std::size_t at = 0; at < begun.size(); at += 16'000)
      all += h2::frame_of(h2::data, 0, stream, begun.substr(at, 16'000));
  }
  return all;
}
std::string forms_of_fields_by_h2(const char*, const origin& from) {
  return forms_by_h2(half_form(1, 60'000, false), from);
}
std::string forms_of_files_by_h2(const char*, const origin& from) {
  return forms_by_h2(half_form(1, 66'000, true), from);
}
// A message of few bytes that unfolds to many, less its last frame.
std::string folded_message(const char*, const origin& from) {
  std::string asked = upgrade(from);
  asked.insert(asked.size() - 2, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
  http::message_deflater deflater(15, true, {});
  const std::string folded = deflater.compress(std::string(1'000'000, 'x'));
  return asked + "\x42\xfe"s + h2::number(folded.size(), 2) + "\0\0\0\0"s + folded;
}

std::string wait(const char* path, const origin& from) {
  return "GET "s + path + " HTTP/1.1\r\nHost: a\r\n" + from.line() + "\r\n";
}
std::string half_head(const char* path, const origin& from) {
  const std::string whole = wait(path, from);
  return whole.substr(0, whole.size() - 2);
}

struct attack {
  const char* name;
  int connections;
  std::string (*bytes)(const char* path, const origin& from);
  const char* path;
};
const std::vector<attack> attacks{
    {"bodies that nobody reads", 30, upload, "/unread"},
    {"bodies that a coroutine collects", 30, upload, "/read"},
    {"bodies that are collected for a handler", 30, upload, "/plain"},
    {"bodies that nobody reads, by HTTP/2", 8, uploads_by_h2, "/unread"},
    {"bodies that a coroutine collects, by HTTP/2", 8, uploads_by_h2, "/read"},
    {"bodies that are collected for a handler, by HTTP/2", 8, uploads_by_h2, "/plain"},
    {"messages that do not end", 30, message, ""},
    {"messages that do not end, by HTTP/2", 8, messages_by_h2, ""},
    {"answers that are not read", 30, unread, "/large"},
    {"answers that are not read, by HTTP/2", 8, unread_by_h2, "/large"},
    {"files that are not read", 30, unread, "/files/large"},
    {"files that are not read, by HTTP/2", 8, unread_by_h2, "/files/large"},
    {"streams that are not read, by HTTP/2", 8, unread_by_h2, "/pieces"},
    {"streams by gzip", 60, encoded_stream, "/ticks/gzip"},
    {"streams by gzip and HTTP/2", 2, encoded_streams_by_h2, "/ticks/gzip"},
    {"streams by brotli", 60, encoded_stream, "/ticks/br"},
    {"streams by brotli and HTTP/2", 2, encoded_streams_by_h2, "/ticks/br"},
    {"streams by zstd", 60, encoded_stream, "/ticks/zstd"},
    {"streams by zstd and HTTP/2", 2, encoded_streams_by_h2, "/ticks/zstd"},
    {"forms of fields", 120, form_of_fields, ""},
    {"forms of fields, by HTTP/2", 8, forms_of_fields_by_h2, ""},
    {"messages that unfold", 120, folded_message, ""},
};
// The same with few bytes and more connections than the server has descriptors for.
const std::vector<attack> crowds{
    {"requests whose handlers wait", 300, wait, "/wait"},
    {"bodies that come slowly", 300, upload, "/read"},
    {"heads that do not end", 300, half_head, "/"},
};
// The files of forms, which are on the disk.
const std::vector<attack> forms{
    {"forms of files", 20, form_of_files, ""},
    {"forms of files, by HTTP/2", 2, forms_of_files_by_h2, ""},
};
constexpr std::size_t few_descriptors = 256;

router routes_over(const std::string& folder) {
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  routes.get("/large", [] { return response::text(std::string(mib, 'y')); });
  routes.post("/plain", [](const request&) { return response::text("got it"); });
  routes.post("/read", [](request& asked) -> task<response> {
    static_cast<void>(co_await asked.read_all());
    co_return response::text("read");
  });
  routes.post("/unread", [](const request& asked) -> task<response> {
    const std::stop_token gone = asked.client_gone();
    event never;
    co_await never.wait().stop(gone);
    co_return response::text("late");
  });
  routes.get("/wait", [](const request& asked) -> task<response> {
    const std::stop_token gone = asked.client_gone();
    event never;
    co_await never.wait().stop(gone);
    co_return response::text("late");
  });
  routes.get("/talk", [] {
    http::websocket_options options;
    options.deflate.emplace();
    return response::websocket(
        [](http::websocket& peer) -> task<> {
          while (co_await peer.receive()) {
          }
        },
        std::move(options));
  });
  routes.post("/form", [](request& asked) -> task<response> {
    const http::form all = co_await http::read_form(asked);
    co_return response::text(std::to_string(all.fields().size()));
  });
  std::string numbers;  // made once: the handlers' own time is no concern of this test
  for (int i = 0; i < 2'000; ++i) numbers += std::to_string(i * 7919) + " ";
  routes.get("/ticks/{coding}", [numbers](const std::string&) {
    return response::stream("text/plain", [&numbers](http::body_writer& out) -> task<> {
      for (;;) {
        co_await out.write(numbers);
        co_await sleep_for(1h);
      }
    });
  });
  routes.around("/ticks/{coding}", http::compress());
  routes.get("/pieces", [] {
    return response::stream("text/plain", [](http::body_writer& out) -> task<> {
      for (int i = 0; i < 64; ++i) co_await out.write(std::string(64 * 1024, 'z'));
    });
  });
  routes.files("/files/", folder);
  return routes;
}

// A server, one attacker, and a client with another address, which asks meanwhile.
class siege {
 public:
  explicit siege(bool has_proxy, std::size_t descriptors = 0)
      : attacker_(has_proxy ? origin{"127.0.0.3", "192.0.2.66"} : origin{"127.0.0.2", ""}),
        innocent_(has_proxy ? origin{"127.0.0.3", "192.0.2.1"} : origin{"127.0.0.1", ""}),
        web_(routes_over(folder_with_a_file(folder_)), options(has_proxy, descriptors)),
        rt_(runtime_of()) {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    at_ = listener.local();
    rt_.spawn(web_.serve(std::move(listener)));
  }
  // Each attack with some connections at a time.
  void run(const std::vector<attack>& all) {
    // (joined also if run() throws)
    std::jthread outside([this, &all, open = rt_.hold()] {
      before_ = resident_bytes();
      std::vector<sender> senders;
      for (const attack& one : all) {
        for (int i = 0; i < one.connections; ++i)
          senders.emplace_back(at_, attacker_, one.bytes(one.path, attacker_));
      }
      texts_ = resident_bytes() - before_;
      files_before_ = open_files();
      for (int i = 0; i < looks; ++i) {
        attack_for(100ms, senders);
        look();
      }
      senders.clear();
      web_.stop();
    });
    rt_.run();
    outside.join();
  }

  std::chrono::nanoseconds slowest{0};
  int served = 0;
  std::size_t most_kept = 0, most_resident = 0, most_of_a_client = 0;
  int most_files = 0;  // of forms, and connections
  std::uint64_t ended = 0;

 private:
  static std::string folder_with_a_file(const scratch& in) {
    const std::string folder = in / "files";
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/large", std::ios::binary) << std::string(8 * mib, 'f');
    return folder;
  }
  static http::server_options options(bool has_proxy, std::size_t descriptors) {
    http::server_options chosen;
    chosen.buffer_bytes = budget;
    chosen.buffer_bytes_per_peer = share;
    chosen.descriptors = descriptors;
    if (has_proxy) chosen.trusted_proxies = {"127.0.0.3"};
    return chosen;
  }
  static runtime_options runtime_of() {
    runtime_options chosen;
    chosen.workers = 2;
    return chosen;
  }
  static void attack_for(std::chrono::nanoseconds span, std::vector<sender>& senders) {
    const auto until = std::chrono::steady_clock::now() + span;
    while (std::chrono::steady_clock::now() < until) {
      bool has_sent = false;
      for (sender& one : senders) has_sent = one.pump() || has_sent;
      // sleeps: the server has taken all that it takes, and is given time to
      if (!has_sent) std::this_thread::sleep_for(5ms);
    }
  }
  void look() {
    const auto begun = std::chrono::steady_clock::now();
    sender one(at_, innocent_,
               "GET / HTTP/1.1\r\nHost: a\r\n" + innocent_.line() + "Connection: close\r\n\r\n");
    while (!one.is_sent()) one.pump();
    if (one.hears("hello")) ++served;
    slowest = std::max<std::chrono::nanoseconds>(slowest, std::chrono::steady_clock::now() - begun);
    const http::kept_counts kept = web_.kept();
    most_kept = std::max(most_kept, kept.bytes);
    most_of_a_client = std::max(most_of_a_client, kept.largest_client_bytes);
    most_files = std::max(most_files, open_files() - files_before_);
    ended = kept.ended;
    const std::size_t resident = resident_bytes();
    const std::size_t known = before_ + texts_;
    most_resident = std::max(most_resident, resident > known ? resident - known : 0);
  }

  const scratch folder_;
  const origin attacker_, innocent_;
  http::server web_;
  runtime rt_;
  endpoint at_;
  std::size_t before_ = 0, texts_ = 0;
  int files_before_ = 0;
};

void check(const siege& after, const std::string& name) {
  EXPECT_EQ(after.served, looks) << name;
  EXPECT_LT(after.slowest, slow ? 5s : 1s) << name;
  EXPECT_LE(after.most_of_a_client, share + 16 * mib) << name;
  EXPECT_LE(after.most_kept, budget + 16 * mib) << name;
  EXPECT_LE(after.most_resident, budget + 64 * mib) << name;
}

TEST(http_accounts, one_attacker_keeps_its_share_and_others_are_served) {
  for (const attack& one : attacks) {
    siege with(false);
    with.run({one});
    check(with, one.name);
  }
}

TEST(http_accounts, behind_a_trusted_proxy_each_client_has_its_share) {
  for (const attack& one : attacks) {
    siege with(true);
    with.run({one});
    check(with, one.name);
  }
}

TEST(http_accounts, a_crowd_of_one_client_leaves_descriptors_for_others) {
  for (const bool has_proxy : {false, true}) {
    for (const attack& one : crowds) {
      siege with(has_proxy, few_descriptors);
      with.run({one});
      check(with, one.name);
    }
  }
}

TEST(http_accounts, files_of_forms_take_the_share_of_their_client) {
  constexpr int share_of_files = few_descriptors / 8, others = 8;
  for (const bool has_proxy : {false, true}) {
    for (const attack& one : forms) {
      siege with(has_proxy, few_descriptors);
      with.run({one});
      check(with, one.name);
      // An upload that was ended keeps its files until its task has a turn, beside a load a while.
      EXPECT_LE(with.most_files, 2 * share_of_files + others) << one.name;
    }
  }
}

TEST(http_accounts, all_attacks_together_leave_others_served) {
  for (const bool has_proxy : {false, true}) {
    siege with(has_proxy);
    with.run(attacks);
    check(with, has_proxy ? "behind a proxy" : "directly");
    EXPECT_GT(with.ended, 0u);
  }
}

// Connections of one address that say nothing, on a port of https: they take the share of that
// address, and nobody else waits for them.
TEST(http_accounts, silent_handshakes_of_one_address_leave_room_for_others) {
  static const authority root("the authority");
  static const identity own = root.issue();
  tls_options trust;
  trust.ca_pem = root.certificate();
  const tls_context self = tls_context::server(showing(own)), client = tls_context::client(trust);
  http::server_options limits;
  limits.handshakes = 64;
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  http::server web(std::move(routes), limits);
  const auto all = [&](runtime& runs) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    future<> serving = runs.spawn(web.serve(std::move(listener), self));
    std::vector<sender> silent;
    for (int i = 0; i < 300; ++i) silent.emplace_back(at, origin{"127.0.0.2", ""}, "");
    while (web.connections() < silent.size()) co_await sleep_for(1ms);
    EXPECT_EQ(web.handshakes().under_way, 16u);
    for (int i = 0; i < looks; ++i) {
      const std::chrono::nanoseconds begun = now();
      tls_stream peer = tls_stream::client(client, co_await tcp_stream::connect(at), "good.test");
      co_await peer.handshake();
      EXPECT_LT(now() - begun, slow ? 5s : 1s);
    }
    silent.clear();
    web.stop();
    co_await std::move(serving);
  };
  runtime rt;
  rt.spawn(all(rt));
  rt.run();
}

}  // namespace
}  // namespace troupe::test
