// The other implementation: OpenSSL's own server and client, as processes.
#include <fcntl.h>
#include <openssl/ssl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tls/support.hpp"

extern char** environ;

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class tls_interop : public tls_conformance {};

// Certificates in files, as OpenSSL's programs need them.
class files {
 public:
  files()
      : folder_(std::filesystem::temp_directory_path() /
                ("troupe_tls_" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(folder_);
    write("ca.pem", trusted().certificate());
    write("certificate.pem", good_identity().certificate);
    write("key.pem", good_identity().key);
  }
  ~files() { std::filesystem::remove_all(folder_); }
  files(const files&) = delete;
  files& operator=(const files&) = delete;
  std::string path(const char* name) const { return (folder_ / name).string(); }

 private:
  void write(const char* name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::filesystem::path folder_;
};

// A child whose input and output are pipes. It is killed when the object is destroyed.
class child {
 public:
  explicit child(std::vector<std::string> command) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0)
      throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], 2);
    std::vector<char*> arguments;
    for (std::string& one : command) arguments.push_back(one.data());
    arguments.push_back(nullptr);
    const int failed =
        ::posix_spawnp(&process_, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    to = pipe_stream::adopt(in[1]);
    from = pipe_stream::adopt(out[0]);
    if (failed != 0) throw std::runtime_error("openssl is not there");
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  // Reads the child's output until `mark` comes. Bytes behind it are dropped.
  task<std::string> read_until(std::string_view mark) {
    std::array<char, 1> byte;
    while (!said_.contains(mark)) {
      const std::size_t bytes = co_await from.read(byte).timeout(20s);
      if (bytes == 0) break;
      said_ += byte[0];
    }
    EXPECT_TRUE(said_.contains(mark)) << said_;
    co_return std::exchange(said_, std::string());
  }

  pipe_stream to, from;

 private:
  pid_t process_ = -1;
  std::string said_;
};

TEST_P(tls_interop, with_a_server_of_openssl) {
  const files with;
  auto talk = [](const files& there) -> task<> {
    for (const char* version : {"-tls1_2", "-tls1_3"}) {
      child server({"openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
                    there.path("certificate.pem"), "-key", there.path("key.pem"), "-rev", version,
                    "-alpn", "reverse"});
      co_await server.read_until("ACCEPT 127.0.0.1:");
      const std::string port = co_await server.read_until("\n");
      const endpoint at = endpoint::loopback(static_cast<std::uint16_t>(std::stoi(port)));
      tls_options trust;
      trust.ca_file = there.path("ca.pem");
      trust.alpn = {"reverse"};
      const tls_context context = tls_context::client(trust);
      for (const bool again : {false, true}) {
        tcp_stream plain = co_await tcp_stream::connect(at);
        tls_stream peer = tls_stream::client(context, std::move(plain), "good.test");
        co_await peer.handshake().timeout(20s);
        EXPECT_EQ(peer.version(), std::string_view(version) == "-tls1_2" ? "TLSv1.2" : "TLSv1.3");
        EXPECT_EQ(peer.alpn(), "reverse");
        EXPECT_EQ(peer.resumed(), again);
        co_await peer.write_all("olleh\n");
        std::array<char, 6> line;
        co_await peer.read_exact(line).timeout(20s);
        EXPECT_EQ(std::string_view(line.data(), line.size()), "hello\n");
        // "CLOSE" asks OpenSSL's server to end: it then announces the end of its stream.
        co_await peer.write_all("CLOSE\n");
        co_await peer.shutdown();
        const std::string rest = co_await read_to_the_end(peer);
        EXPECT_EQ(rest, "");
      }
    }
  };
  run(talk(with));
}

TEST_P(tls_interop, with_a_client_of_openssl_that_changes_its_keys) {
  const files with;
  auto talk = [](const files& there) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tls_options self;
    self.certificate_file = there.path("certificate.pem");
    self.key_file = there.path("key.pem");
    self.alpn = {"lines"};
    const tls_context context = tls_context::server(self);
    child client({"openssl", "s_client", "-connect", listener.local().to_string(), "-CAfile",
                  there.path("ca.pem"), "-verify_return_error", "-verify_hostname", "good.test",
                  "-servername", "good.test", "-alpn", "lines"});
    tcp_stream plain = co_await listener.accept().timeout(20s);
    tls_stream peer = tls_stream::server(context, std::move(plain));
    co_await peer.handshake().timeout(20s);
    EXPECT_EQ(peer.alpn(), "lines");
    co_await peer.write_all("welcome\n");  // the server sends a ticket, too
    co_await client.read_until("welcome\n");
    // The client changes its keys, and in some rounds asks us to change ours. This side writes
    // meanwhile.
    for (const char* change : {"K\n", "k\n", "K\n"}) {
      co_await client.to.write_all(change);
      // The client takes everything that it reads at once for one command.
      co_await client.read_until("KEYUPDATE");
      co_await client.to.write_all("a line\n");
      std::array<char, 7> line;
      co_await peer.read_exact(line).timeout(20s);
      EXPECT_EQ(std::string_view(line.data(), line.size()), "a line\n");
      co_await peer.write_all("an answer\n");
      co_await client.read_until("an answer\n");
    }
    co_await client.to.write_all("Q\n");
    std::array<char, 1> byte;
    const std::size_t end = co_await peer.read(byte).timeout(20s);
    EXPECT_EQ(end, 0u);
    co_await peer.shutdown();
  };
  run(talk(with));
}

// Passes records from one side to the other. After the client's last flight of the handshake only
// one more record passes until `opened` is set.
task<> pass_records(tcp_stream& from, tcp_stream& to, bool& finished, const event* opened) {
  std::string record;
  for (int held = 0;;) {
    record.resize(5);
    co_await from.read_exact(std::span<char>(record));
    const std::size_t bytes =
        static_cast<std::size_t>(static_cast<unsigned char>(record[3])) * 256 +
        static_cast<unsigned char>(record[4]);
    record.resize(5 + bytes);
    co_await from.read_exact(std::span<char>(record).subspan(5));
    if (opened != nullptr && finished && ++held == 2) co_await opened->wait();
    co_await to.write_all(std::string_view(record));
    if (opened == nullptr && record[0] == 23) finished = true;
  }
}

// Half of a ticket has come that is so large that it takes two records. A writer then has to wait
// for the rest, and a task has to read it.
TEST_P(tls_interop, a_message_of_the_protocol_in_pieces_keeps_nobody_waiting) {
  const files with;
  auto talk = [](const files& there) -> task<> {
    // A reader begins before the writer, after it, or not at all.
    enum class reader { none, before, after };
    for (const reader beside : {reader::none, reader::before, reader::after}) {
      child server({"openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
                    there.path("certificate.pem"), "-key", there.path("key.pem"), "-rev", "-tls1_3",
                    "-max_send_frag", "512", "-Verify", "1", "-CAfile", there.path("ca.pem")});
      co_await server.read_until("ACCEPT 127.0.0.1:");
      const std::string port = co_await server.read_until("\n");
      tcp_stream there_side = co_await tcp_stream::connect(
          endpoint::loopback(static_cast<std::uint16_t>(std::stoi(port))));
      stream_pair here_side = co_await make_pair();
      tls_options trust = trusting();
      trust.certificate_pem = good_identity().certificate;
      trust.key_pem = good_identity().key;
      tls_stream peer =
          tls_stream::client(tls_context::client(trust), std::move(here_side.client), "good.test");
      bool finished = false;
      const event opened;
      auto converse = [](tls_stream& own, const event& opens, reader reads) -> task<> {
        co_await own.handshake().timeout(20s);
        std::string line(6, '\0');
        auto waits = [](tls_stream& from, std::string& to,
                        std::chrono::nanoseconds span) -> task<> {
          co_await from.read_exact(std::span<char>(to)).timeout(span);
        };
        auto writes = [](tls_stream& to) -> task<> {
          co_await to.write_all("olleh\n").timeout(20s);
        };
        auto opens_later = [](const event& what) -> task<> {
          co_await sleep_for(20ms);
          what.set();
        };
        const std::string none = co_await outcome_of(waits(own, line, 100ms));
        EXPECT_EQ(none, "timed_out");
        if (reads == reader::before) {
          auto all = when_all(waits(own, line, 20s), writes(own), opens_later(opens));
          co_await std::move(all);
        } else if (reads == reader::after) {
          auto all = when_all(writes(own), waits(own, line, 20s), opens_later(opens));
          co_await std::move(all);
        } else {
          auto all = when_all(writes(own), opens_later(opens));
          co_await std::move(all);
          co_await waits(own, line, 20s);
        }
        EXPECT_EQ(line, "hello\n");
        own.close();
      };
      auto all =
          when_any(converse(peer, opened, beside),
                   outcome_of(pass_records(here_side.server, there_side, finished, nullptr)),
                   outcome_of(pass_records(there_side, here_side.server, finished, &opened)));
      const auto first = co_await std::move(all);
      EXPECT_EQ(first.index(), 0u);
    }
  };
  run(talk(with));
}

// OpenSSL itself as a server, between two buffers instead of a stream.
class raw_server {
 public:
  raw_server() : context_(SSL_CTX_new(TLS_server_method())) {
    BIO* certificate = BIO_new_mem_buf(good_identity().certificate.data(), -1);
    BIO* key = BIO_new_mem_buf(good_identity().key.data(), -1);
    X509* shown = PEM_read_bio_X509(certificate, nullptr, nullptr, nullptr);
    EVP_PKEY* own = PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(context_, shown);
    SSL_CTX_use_PrivateKey(context_, own);
    X509_free(shown);
    EVP_PKEY_free(own);
    BIO_free(certificate);
    BIO_free(key);
    SSL_CTX_set_max_proto_version(context_, TLS1_2_VERSION);
    ssl_ = SSL_new(context_);
    SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(ssl_);
  }
  raw_server(const raw_server&) = delete;
  raw_server& operator=(const raw_server&) = delete;
  ~raw_server() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }

  // Returns what the server answers to these bytes.
  std::string hear(std::string_view bytes) {
    if (!bytes.empty()) BIO_write(SSL_get_rbio(ssl_), bytes.data(), static_cast<int>(bytes.size()));
    SSL_do_handshake(ssl_);
    ERR_clear_error();
    std::string said(100'000, '\0');
    const int count = BIO_read(SSL_get_wbio(ssl_), said.data(), static_cast<int>(said.size()));
    said.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return said;
  }
  bool done() const { return SSL_is_init_finished(ssl_) != 0; }
  std::string ask_to_begin_anew() {
    SSL_renegotiate(ssl_);
    return hear("");
  }

 private:
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
};

// Each request to begin anew is answered by a warning, which is not sent while no task writes.
TEST_P(tls_interop, a_peer_that_wants_to_begin_anew_without_end_is_left) {
  auto talk = []() -> task<> {
    stream_pair plain = co_await make_pair();
    tls_stream client =
        tls_stream::client(tls_context::client(trusting()), std::move(plain.client), "good.test");
    auto floods = [](tcp_stream& to) -> task<> {
      raw_server server;
      std::array<char, 4096> buffer;
      while (!server.done()) {
        const std::size_t bytes = co_await to.read(buffer);
        co_await to.write_all(server.hear(std::string_view(buffer.data(), bytes)));
      }
      for (int i = 0; i < 5'000; ++i) co_await to.write_all(server.ask_to_begin_anew());
    };
    auto reads = [](tls_stream& from) -> task<std::string> {
      std::string how;
      try {
        co_await from.handshake().timeout(20s);
        co_await read_to_the_end(from);
      } catch (const tls_error& e) {
        how = e.what();
      }
      from.close();
      co_return how;
    };
    auto both = when_all(reads(client), outcome_of(floods(plain.server)));
    auto [how, flooded] = co_await std::move(both);
    EXPECT_TRUE(how.contains("more answers than it gets")) << how;
  };
  run(talk());
}

INSTANTIATE_TEST_SUITE_P(
    backends, tls_interop,
    ::testing::Values(io_setting{{policy::work_stealing, 2, 1}, io_backend::epoll},
                      io_setting{{policy::work_stealing, 2, 1}, io_backend::io_uring}),
    [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
