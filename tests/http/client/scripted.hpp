// A server that follows a script: it answers any request with given bytes.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "support/io.hpp"
#include "support/open_files.hpp"
#include "tls/certificates.hpp"
#include "troupe/http/client.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::test {

// The number of workers makes no difference here.
inline std::vector<io_setting> client_settings() {
  std::vector<io_setting> all{{{policy::work_stealing, 2, 1}, io_backend::epoll},
                              {{policy::work_stealing, 2, 1}, io_backend::io_uring}};
  for (const std::uint64_t seed : {1u, 2u, 3u})
    all.push_back({{policy::simulated, 1, seed}, io_backend::simulated});
  return all;
}

struct scripted_answer {
  scripted_answer(std::string text, bool ends = false) : bytes(std::move(text)), closes(ends) {}
  scripted_answer(const char* text, bool ends = false) : bytes(text), closes(ends) {}
  std::string bytes;
  bool closes;                         // whether the server closes afterwards
  bool early = false;                  // answers before it has read the body
  std::chrono::milliseconds pause{0};  // between the two halves of the answer
};
using script = std::function<scripted_answer(const std::string& request)>;

inline std::string with_length(const std::string& body, const std::string& fields = {}) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + fields +
         "\r\n" + body;
}

class scripted_server {
 public:
  explicit scripted_server(script says) : says_(std::move(says)) {}

  // Call it in a task.
  void start(runtime& rt) {
    listen_options weak;
    weak.weak = true;
    auto listener = tcp_listener::listen(endpoint::loopback(0), weak);
    at_ = listener.local();
    rt.spawn(serve(rt, std::move(listener)));
  }
  void start(runtime& rt, const tls_context& self) {
    self_ = self;
    start(rt);
  }
  std::string url(const std::string& target = "/") const {
    return (self_ ? "https://localhost:" : "http://127.0.0.1:") + std::to_string(at_.port()) +
           target;
  }
  std::uint16_t port() const { return at_.port(); }
  std::vector<std::string> requests() {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  int connections() const { return connections_.load(); }
  std::size_t sent() const { return sent_.load(); }

 private:
  task<> serve(runtime& rt, tcp_listener listener) {
    for (;;) {
      tcp_stream peer = co_await listener.accept();
      ++connections_;
      if (self_) {
        rt.spawn(guard(secure(std::move(peer))));
      } else {
        rt.spawn(guard(plain(std::move(peer))));
      }
    }
  }
  // How a connection ends is for the client to check.
  task<> guard(task<> one) {
    try {
      co_await std::move(one);
    } catch (const error&) {
    }
  }
  task<> plain(tcp_stream peer) { co_await talk(peer); }
  task<> secure(tcp_stream over) {
    tls_stream peer = tls_stream::server(*self_, std::move(over));
    co_await peer.handshake();
    co_await talk(peer);
    co_await peer.shutdown();
  }

  template <class Stream>
  task<> talk(Stream& peer) {
    std::string input;
    for (;;) {
      std::size_t end = input.find("\r\n\r\n");
      while (end == std::string::npos) {
        const bool more = co_await read_some(peer, input);
        if (!more) co_return;
        end = input.find("\r\n\r\n");
      }
      const std::string head = input.substr(0, end + 4);
      scripted_answer answer("");
      bool chosen = false;
      if (const std::string whole = head; !whole.empty()) {
        std::size_t body = 0;
        bool chunked = false;
        if (const std::size_t at = head.find("Content-Length: "); at != std::string::npos)
          body = std::stoul(head.substr(at + 16));
        chunked = head.find("Transfer-Encoding: chunked") != std::string::npos;
        if (head.find("X-Early") != std::string::npos) {
          answer = says_(head);
          chosen = true;
        }
        while (!chosen &&
               (chunked ? !input.ends_with("0\r\n\r\n") : input.size() < end + 4 + body)) {
          const bool more = co_await read_some(peer, input);
          if (!more) co_return;
        }
        const std::size_t all = chosen || chunked ? input.size() : end + 4 + body;
        if (!chosen) answer = says_(input.substr(0, all));
        {
          std::lock_guard lock(mutex_);
          requests_.push_back(input.substr(0, all));
        }
        input.erase(0, all);
      }
      if (answer.pause.count() > 0) {
        const std::size_t half = answer.bytes.size() / 2;
        co_await peer.write_all(std::string_view(answer.bytes).substr(0, half));
        co_await sleep_for(answer.pause);
        answer.bytes.erase(0, half);
      }
      for (std::string_view rest = answer.bytes; !rest.empty();) {
        const std::string_view part = rest.substr(0, 65'536);
        co_await peer.write_all(part);
        sent_ += part.size();
        rest.remove_prefix(part.size());
      }
      if (answer.closes) co_return;
    }
  }
  template <class Stream>
  static task<bool> read_some(Stream& from, std::string& to) {
    std::array<char, 4096> buffer;
    const std::size_t bytes = co_await from.read(buffer);
    to.append(buffer.data(), bytes);
    co_return bytes > 0;
  }

  const script says_;
  std::optional<tls_context> self_;
  endpoint at_;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::atomic<int> connections_{0};
  std::atomic<std::size_t> sent_{0};
};

inline const char* text_of(http::client_failure why) {
  constexpr const char* names[] = {
      "bad_url",       "too_many_redirects", "bad_redirect",  "insecure_redirect",
      "bad_response",  "body_too_large",     "too_slow",      "truncated",
      "closed",        "not_upgraded",       "bad_handshake", "proxy_unreachable",
      "proxy_refused", "not_downloaded",     "part_in_use",   "refused",
      "reset",         "decoded_too_large",  "too_much_kept"};
  return names[static_cast<std::size_t>(why)];
}

inline task<std::string> fetch(http::sending asked) {
  http::client_response answer = co_await std::move(asked);
  std::string text = co_await answer.read_all();
  co_return std::to_string(answer.status()) + " " + text;
}
// Returns the status and the body, or how the request failed.
inline task<std::string> outcome_of(http::sending asked) {
  try {
    co_return co_await fetch(std::move(asked));
  } catch (const http::client_error& e) {
    co_return text_of(e.reason());
  } catch (const timed_out&) {
    co_return "timed_out";
  } catch (const cancelled&) {
    co_return "cancelled";
  } catch (const tls_error&) {
    co_return "tls_error";
  } catch (const resolve_error&) {
    co_return "resolve_error";
  } catch (const io_error&) {
    co_return "io_error";
  }
}

class client_conformance : public io_conformance {
 protected:
  using body = task<> (*)(scripted_server& server, http::client web);
  // Runs over TLS if `secure` is set. Checks that all descriptors are closed afterwards.
  void run(script says, body what, http::client_options chosen = {},
           std::optional<tls_context> secure = {}) {
    const int before = open_files();
    {
      scripted_server server(std::move(says));
      runtime rt(options());
      auto both = [](runtime& runs, scripted_server& serves, body does, http::client web,
                     std::optional<tls_context> self) -> task<> {
        if (self) {
          serves.start(runs, *self);
        } else {
          serves.start(runs);
        }
        co_await does(serves, web);
        web.close_idle();
      };
      rt.spawn(both(rt, server, what, http::client(std::move(chosen)), std::move(secure)));
      rt.run();
    }
    EXPECT_EQ(open_files(), before);
  }
};

}  // namespace troupe::test

#define TROUPE_CLIENT_TEST_EACH(suite)                                             \
  INSTANTIATE_TEST_SUITE_P(backends, suite,                                        \
                           ::testing::ValuesIn(::troupe::test::client_settings()), \
                           [](const auto& one) { return ::troupe::test::name_of(one.param); })
