// proxy: a reverse proxy: passes requests on to several servers that do the same, and watches which
// of them work.
//
//     ./run examples/proxy.cpp --port 8080 http://127.0.0.1:9001 http://127.0.0.1:9002
//
// A request goes to the server that has the fewest of them, or, with --balance hash, always to the
// same one for the same client, as long as it works. Each server is asked for a page now and then;
// one that fails several times in a row gets no requests until it answers again. A request that may
// be repeated is passed to another server when its first one fails, as long as a tenth of all
// requests pays for such retries. Bodies pass in pieces, in both directions and never faster than
// the slower side; so do the messages of WebSockets. SIGTERM or SIGINT ends it, and requests that
// have begun are finished. With a certificate its clients speak HTTPS. They may speak HTTP/2, and
// so may the servers, whatever the other side speaks: https servers if they agree to it, http
// servers with --http2 known.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/http/client.hpp"
#include "troupe/http/server.hpp"
#include "troupe/http/websocket.hpp"
#include "troupe/troupe.hpp"

namespace http = troupe::http;
using namespace std::chrono_literals;

enum class Balance : std::uint8_t { least, hash };

struct Options {
  std::vector<std::string> origins;  // "http://127.0.0.1:9001"
  Balance balance = Balance::least;
  std::string health = "/", certificate, key;
  int port = 0, health_ms = 1000, answer_ms = 30'000, failures = 3;
  bool knows_http2 = false;  // the servers speak it also without TLS
};

// ---- the servers ----

// One of the servers behind the proxy.
class Backend {
 public:
  Backend(std::string origin, unsigned number, int failures_max)
      : origin_(std::move(origin)), number_(number), failures_max_(failures_max) {}

  const std::string& origin() const { return origin_; }
  unsigned number() const { return number_; }
  unsigned requests() const { return requests_; }
  bool works() const { return failures_ < failures_max_; }

  void succeeded() {
    if (failures_.exchange(0) >= failures_max_) std::cout << origin_ << " works again" << std::endl;
  }
  void failed(const std::string& why) {
    if (++failures_ == failures_max_) std::cout << origin_ << " fails: " << why << std::endl;
  }

  // Counts a request as long as it exists.
  class Lease {
   public:
    explicit Lease(std::shared_ptr<Backend> of) : of_(std::move(of)) { ++of_->requests_; }
    Lease(Lease&&) = default;
    ~Lease() {
      if (of_ != nullptr) --of_->requests_;
    }
    Backend& operator*() const { return *of_; }
    Backend* operator->() const { return of_.get(); }

   private:
    std::shared_ptr<Backend> of_;
  };

 private:
  const std::string origin_;
  const unsigned number_;
  const int failures_max_;
  std::atomic<unsigned> requests_{0};
  std::atomic<int> failures_{0};  // in a row
};
using BackendPtr = std::shared_ptr<Backend>;

// Keys keep their server when another one fails or returns: the one with the highest mixed number.
std::uint64_t mixed(std::string_view key, unsigned number) {
  std::uint64_t bits = std::hash<std::string_view>{}(key) + 0x9e3779b97f4a7c15u * (number + 1);
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

class Backends {
 public:
  explicit Backends(const Options& chosen) : balance_(chosen.balance) {
    for (const std::string& origin : chosen.origins) {
      const auto number = static_cast<unsigned>(all_.size());
      all_.push_back(std::make_shared<Backend>(origin, number, chosen.failures));
    }
  }
  const std::vector<BackendPtr>& all() const { return all_; }

  // The server for a request, but not `failed`; empty if none works.
  std::optional<Backend::Lease> choose(std::string_view client,
                                       const Backend* failed = nullptr) const {
    const std::lock_guard lock(mutex_);  // until the lease counts
    BackendPtr best;
    const std::size_t first = next_++;  // those with as few requests take turns
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const BackendPtr& one = all_[(first + i) % all_.size()];
      if (one.get() == failed || !one->works()) continue;
      if (best == nullptr || is_better(*one, *best, client)) best = one;
    }
    if (best == nullptr) return std::nullopt;
    return Backend::Lease(best);
  }

 private:
  bool is_better(const Backend& a, const Backend& b, std::string_view client) const {
    if (balance_ == Balance::least) return a.requests() < b.requests();
    return mixed(client, a.number()) > mixed(client, b.number());
  }
  const Balance balance_;
  std::vector<BackendPtr> all_;
  mutable std::mutex mutex_;
  mutable std::size_t next_ = 0;
};

// To one server: each client that does not read its answer has one of them until it is given up.
constexpr std::size_t connections_max = 4'096;

constexpr auto health_time = 5s;  // in which a server must begin that answer

// Asks a server for a page, again and again.
troupe::task<> watch_health(http::client web, BackendPtr one, std::string path,
                            std::chrono::milliseconds period, std::stop_token end) {
  while (!end.stop_requested()) {
    try {
      auto answer = co_await web.get(one->origin() + path).timeout(health_time).stop(end);
      if (answer.status() >= 500) throw std::runtime_error(std::to_string(answer.status()));
      one->succeeded();
    } catch (const troupe::cancelled&) {
      co_return;
    } catch (const troupe::error& failure) {
      // A limit of this program says nothing of the server.
      if (failure.judged().fault != troupe::verdict::party::us) one->failed(failure.what());
    } catch (const std::exception& failure) {
      one->failed(failure.what());
    }
    try {
      co_await troupe::with_stop(end, troupe::sleep_for(period));
    } catch (const troupe::cancelled&) {
      co_return;
    }
  }
}

// ---- what is passed on ----

// Fields that belong to one connection, and those that each side writes itself.
bool stays_here(std::string_view name, std::string_view connection) {
  for (const std::string_view own :
       {"Connection", "Content-Length", "Date", "Expect", "Host", "Keep-Alive", "Proxy-Connection",
        "Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "traceparent"})
    if (http::same_word(name, own)) return true;
  // A client may lie about the origin of its request, so this program writes these fields itself.
  for (const std::string_view origin :
       {"Forwarded", "X-Real-IP", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"})
    if (http::same_word(name, origin)) return true;
  return name.size() >= 13 && http::same_word(name.substr(0, 13), "Sec-WebSocket")
             ? true
             : http::lists_word(connection, name);
}

// The address without the port.
std::string address_of(const http::request& asked) {
  if (!asked.has_peer()) return "unknown";
  const std::string text = asked.peer().to_string();
  return text.substr(0, text.rfind(':'));
}

// An offer of another protocol, as h2c, may be ignored. HTTP/2 asks for a WebSocket without
// `Upgrade`.
bool asks_for_websocket(const http::request& asked) {
  const http::message_head& head = asked.head();
  return head.wants_upgrade &&
         (head.major_version == 2 || http::lists_word(asked.fields().list("Upgrade"), "websocket"));
}

// What a request to a server is made of, for as many attempts as it takes.
struct Asked {
  std::string method, target, client, body, type;
  std::vector<std::pair<std::string, std::string>> fields, trailer;
  bool streams = false;                     // its body is long, and passes while it comes
  bool client_left = false;                 // before the end of its body
  std::optional<http::response> refusal{};  // the failure was not the server's
  bool may_repeat() const {
    return !streams && (method == "GET" || method == "HEAD" || method == "OPTIONS" ||
                        method == "PUT" || method == "DELETE");
  }
};

constexpr std::uint64_t body_kept = 64 * 1024;  // longer bodies are not kept for a second attempt
constexpr std::size_t body_max = 1024 * 1024 * 1024;  // of a request; longer ones are refused

// How many more times an OPTIONS may be passed on; nothing: there is no limit.
std::optional<std::uint64_t> forwards_left(const http::request& asked) {
  const std::string_view text = asked.field("Max-Forwards");
  if (asked.method() != http::method::options || text.empty()) return std::nullopt;
  std::uint64_t left = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, left);
  if (bad != std::errc{} || rest != end) return std::nullopt;
  return left;
}

// For the field Via: the version by which the request came.
std::string via(const http::message_head& head) {
  return std::to_string(head.major_version) + "." + std::to_string(head.minor_version) + " troupe";
}

Asked take_apart(const http::request& asked) {
  Asked made;
  made.method = asked.method_name();
  made.target = asked.head().target;
  if (!made.target.starts_with('/')) {  // it names the server, too
    made.target = std::string(asked.head().path);
    if (!asked.query().empty()) made.target += "?" + std::string(asked.query());
  }
  made.client = address_of(asked);
  std::string forwarded;
  const std::string connection = asked.fields().list("Connection");
  const auto left = forwards_left(asked);
  for (const http::field one : asked.fields()) {
    if (left && http::same_word(one.name, "Max-Forwards")) {
      made.fields.emplace_back(one.name, std::to_string(*left - 1));
    } else if (http::same_word(one.name, "X-Forwarded-For")) {
      forwarded += std::string(one.value) + ", ";
    } else if (http::same_word(one.name, "Content-Type")) {
      made.type = one.value;
    } else if (!stays_here(one.name, connection)) {
      made.fields.emplace_back(one.name, one.value);
    }
  }
  made.fields.emplace_back("X-Forwarded-For", forwarded + made.client);
  made.fields.emplace_back("X-Forwarded-Host", asked.host());
  made.fields.emplace_back("X-Forwarded-Proto", asked.secure() ? "https" : "http");
  const http::message_head& head = asked.head();
  made.fields.emplace_back("Via", via(head));
  made.streams =
      head.has_body && !asks_for_websocket(asked) && (!head.has_length || head.length > body_kept);
  return made;
}

// The words of a comma-separated list, over all fields with that name.
std::vector<std::string> words_of(const http::fields& fields, std::string_view name) {
  std::vector<std::string> found;
  for (const http::field each : fields) {
    if (!http::same_word(each.name, name)) continue;
    for (std::string_view rest = each.value; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      const std::size_t from = word.find_first_not_of(" \t");
      if (from == std::string_view::npos) continue;
      found.emplace_back(word.substr(from, word.find_last_not_of(" \t") + 1 - from));
    }
  }
  return found;
}

// The fields behind a body that was read to its end, as far as they may be passed on.
std::vector<std::pair<std::string, std::string>> trailer_of(const http::request& from) {
  std::vector<std::pair<std::string, std::string>> found;
  const std::string connection = from.fields().list("Connection");
  for (const http::field one : from.trailer())
    if (http::body_writer::may_be_trailer(one.name) && !stays_here(one.name, connection))
      found.emplace_back(one.name, one.value);
  return found;
}

// Passes a body on as it comes. The request lives until the server has answered, and so until the
// body was sent.
troupe::task<> pass_body(http::request& from, Asked& what, http::upload& to) {
  for (;;) {
    what.client_left = true;  // unless read() comes back
    const std::string_view piece = co_await from.read();
    what.client_left = false;
    if (piece.empty()) break;
    co_await to.write(piece);
  }
  for (const auto& [name, value] : trailer_of(from)) to.trailer(name, value);
}
// One that was kept, with the fields behind it.
troupe::task<> pass_kept(const Asked& what, http::upload& to) {
  co_await to.write(what.body);
  for (const auto& [name, value] : what.trailer) to.trailer(name, value);
}

http::client_request request_to(const Backend& one, Asked& what, http::request& from) {
  http::client_request made(what.method, one.origin() + what.target);
  made.as_written();
  for (const auto& [name, value] : what.fields) made.field(name, value);
  if (what.streams) {
    made.body([&from, &what](http::upload& to) { return pass_body(from, what, to); }, what.type);
  } else if (!what.trailer.empty()) {
    made.body([&what](http::upload& to) { return pass_kept(what, to); }, what.type);
  } else if (!what.body.empty() || !what.type.empty()) {
    made.body(what.body, what.type);
  }
  return made;
}

// Keeps the server's answer, and the lease of the server, until the client has all of it.
struct Passing {
  Passing(http::client_response&& received, Backend::Lease&& taken)
      : answer(std::move(received)), lease(std::move(taken)) {}
  http::client_response answer;
  Backend::Lease lease;
};

// The next piece of an answer; "" at its end.
troupe::task<std::string_view> piece_of(http::client_response& answer) {
  try {
    co_return co_await answer.read();
  } catch (const troupe::cancelled&) {
    throw;
  } catch (const troupe::error&) {
    // The server has ended in the middle of its answer, or is too slow. The client sees that from
    // the end of its connection, or of its stream; it is no failure of this program.
    throw http::refused(http::fault::truncated);
  }
}

troupe::task<> pass_answer(std::shared_ptr<Passing> from, http::body_writer& to) {
  for (;;) {
    const std::string_view piece = co_await piece_of(from->answer);
    if (piece.empty()) break;
    co_await to.write(piece);
  }
  const std::string connection = from->answer.fields().list("Connection");
  for (const http::field one : from->answer.trailer())
    if (http::body_writer::may_be_trailer(one.name) && !stays_here(one.name, connection))
      to.trailer(one.name, one.value);
}

http::response response_of(std::shared_ptr<Passing> from) {
  const http::client_response& answer = from->answer;
  const int status = answer.status();
  const auto fields = answer.fields();
  const bool empty = status == 204 || status == 304;
  auto pass = [from](http::body_writer& to) { return pass_answer(from, to); };
  http::response made;
  if (!empty && answer.length()) {
    made = http::response::stream("", *answer.length(), std::move(pass));
  } else if (!empty) {
    made = http::response::stream("", std::move(pass));
  }
  made.status(status);
  const std::string connection = fields.list("Connection");
  for (const http::field one : fields)
    if (!stays_here(one.name, connection)) made.field(one.name, one.value);
  made.field("Via", "1.1 troupe");
  return made;
}

// Whether the server is to blame: a client that asks for what no server could give, or goes in the
// middle of its request, must not put it out of service for the others.
bool is_fault_of_server(const troupe::error& failure, const Asked& what) {
  using party = troupe::verdict::party;
  const party by = failure.judged().fault;
  return !what.client_left && (by == party::upstream || by == party::peer);
}

http::response bad_gateway() {
  return http::response::text("the server behind this one has failed\n").status(502);
}
// What the client gets when the server was not to blame.
http::response answer_for(const troupe::error& failure, const Asked& what) {
  if (what.client_left || failure.judged().fault != troupe::verdict::party::us)
    return http::response(400);
  const auto wait = failure.try_again_in();
  if (!wait) return bad_gateway();
  const auto seconds = std::max(1s, std::chrono::ceil<std::chrono::seconds>(*wait));
  return http::response::text("this server has too much to do now\n")
      .status(503)
      .field("Retry-After", std::to_string(seconds.count()));
}

// ---- the proxy ----

class Proxy {
 public:
  Proxy(http::client web, std::shared_ptr<const Backends> backends)
      : web_(std::move(web)), backends_(std::move(backends)) {}

  troupe::task<http::response> answer(http::request& asked) const {
    if (asks_for_websocket(asked)) co_return co_await open_websocket(asked);
    if (forwards_left(asked) == std::uint64_t{0}) co_return http::response(204);
    Asked what = take_apart(asked);
    if (asked.head().has_body && !what.streams) {
      what.body = co_await asked.read_all();
      what.trailer = trailer_of(asked);
    }
    budget_.count_call();
    std::shared_ptr<Passing> passing;
    const Backend* failed = nullptr;
    for (;;) {
      auto lease = backends_->choose(what.client, failed);
      if (!lease) break;
      const bool last = failed != nullptr || !what.may_repeat();
      failed = &**lease;
      passing = co_await ask(std::move(*lease), what, asked);
      const bool worked = passing != nullptr && passing->answer.status() < 502;
      if (worked || last || what.refusal || !budget_.take()) break;
    }
    if (passing != nullptr) co_return response_of(std::move(passing));
    if (what.refusal) co_return std::move(*what.refusal);
    co_return failed == nullptr ? nobody_works() : bad_gateway();
  }

 private:
  // Null: the server has failed.
  troupe::task<std::shared_ptr<Passing>> ask(Backend::Lease lease, Asked& what,
                                             http::request& asked) const {
    try {
      auto made = request_to(*lease, what, asked);
      auto answer = co_await web_.send(std::move(made)).stop(asked.client_gone());
      lease->succeeded();
      co_return std::make_shared<Passing>(std::move(answer), std::move(lease));
    } catch (const troupe::cancelled&) {
      throw;  // the client has closed its connection
    } catch (const http::refused&) {
      throw;  // the client's body is malformed
    } catch (const troupe::error& e) {
      blame(*lease, e, what);
    }
    co_return nullptr;
  }

  static void blame(Backend& one, const troupe::error& failure, Asked& what) {
    if (is_fault_of_server(failure, what)) return one.failed(failure.what());
    what.refusal = answer_for(failure, what);
  }

  // The server's WebSocket is opened before the client's.
  troupe::task<http::response> open_websocket(http::request& asked) const {
    Asked what = take_apart(asked);
    auto lease = backends_->choose(what.client);
    if (!lease) co_return nobody_works();
    http::websocket_options options;
    options.subprotocols = words_of(asked.fields(), "Sec-WebSocket-Protocol");
    std::shared_ptr<http::websocket> behind;
    try {
      auto request = request_to(**lease, what, asked);
      behind = co_await web_.websocket(std::move(request), options);
    } catch (const troupe::cancelled&) {
      throw;
    } catch (const troupe::error& e) {
      blame(**lease, e, what);
    }
    if (what.refusal) co_return std::move(*what.refusal);
    if (behind == nullptr) co_return bad_gateway();
    options.subprotocols.clear();
    if (!behind->subprotocol().empty()) options.subprotocols = {behind->subprotocol()};
    const auto held = std::make_shared<Backend::Lease>(std::move(*lease));
    co_return http::response::websocket(
        [behind, held](http::websocket& front) { return talk(front, behind, held); }, options);
  }

  static troupe::task<> talk(http::websocket& front, std::shared_ptr<http::websocket> behind,
                             std::shared_ptr<Backend::Lease>) {
    co_await troupe::when_all(pass_messages(front, *behind), pass_messages(*behind, front));
  }
  static troupe::task<> pass_messages(http::websocket& from, http::websocket& to) {
    try {
      while (const auto said = co_await from.receive()) {
        std::string text(said->data);
        if (said->is_text) {
          co_await to.send(std::move(text));
        } else {
          co_await to.send_binary(std::move(text));
        }
      }
      const int code = from.close_code();
      const bool may_be_sent = code >= 1000 && code != 1005 && code != 1006 && code != 1015;
      co_await to.close(may_be_sent ? code : 1001, from.close_reason());
    } catch (const troupe::cancelled&) {
      throw;
    } catch (const troupe::error&) {
      // One side has closed its connection: the other direction ends as well.
    }
  }

  static http::response nobody_works() {
    return http::response::text("no server works now\n").status(503).field("Retry-After", "1");
  }

  http::client web_;
  std::shared_ptr<const Backends> backends_;
  troupe::retry_budget budget_{{.ratio = 0.1}};
};

http::router make_routes(const Proxy& proxy) {
  http::router routes;
  for (const auto method : {http::method::get, http::method::post, http::method::put,
                            http::method::patch, http::method::remove, http::method::options})
    routes.add(method, "/{path...}", [proxy](http::request& asked) { return proxy.answer(asked); },
               {.body_bytes = body_max});
  return routes;
}

// ---- the program ----

constexpr const char* usage =
    "usage: proxy [OPTION...] ORIGIN...\n"
    "  ORIGIN           of a server, as http://127.0.0.1:9001\n"
    "  --port N         0 to 65535; 0 (default): one that is free\n"
    "  --balance HOW    least (default): the server with the fewest requests; hash: by the client\n"
    "  --health PATH    the page that a server must answer (default /)\n"
    "  --health-ms N    milliseconds between two checks of a server (default 1000)\n"
    "  --failures N     in a row, before a server gets no requests (default 3)\n"
    "  --answer-ms N    milliseconds in which a server must begin its answer (default 30000)\n"
    "  --http2 HOW      agreed (default): with the servers by TLS; known: they speak it without "
    "TLS\n"
    "  --certificate FILE, --key FILE\n"
    "                   in PEM: clients speak HTTPS\n";

// The arguments are wrong.
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int read_number(std::string_view text, int least, int most) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, number);
  if (bad == std::errc{} && rest == end && number >= least && number <= most) return number;
  throw WrongUse("'" + std::string(text) + "' is no number from " + std::to_string(least) + " to " +
                 std::to_string(most));
}

bool read_http2(std::string_view word) {
  if (word == "known" || word == "agreed") return word == "known";
  throw WrongUse("--http2 is agreed or known, not '" + std::string(word) + "'");
}

Balance read_balance(std::string_view word) {
  if (word == "least") return Balance::least;
  if (word == "hash") return Balance::hash;
  throw WrongUse("--balance is least or hash, not '" + std::string(word) + "'");
}

std::string read_origin(std::string_view text) {
  const http::url at = http::url::parse(std::string(text));
  if (at.target() != "/") throw WrongUse("'" + std::string(text) + "' has more than an origin");
  return at.origin();
}

Options parse(int argc, char** argv) {
  Options chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with('-')) {
      chosen.origins.push_back(read_origin(word));
      continue;
    }
    if (++i == argc) throw WrongUse(std::string(word) + " wants a value");
    const std::string_view value = argv[i];
    if (word == "--port") {
      chosen.port = read_number(value, 0, 65'535);
    } else if (word == "--balance") {
      chosen.balance = read_balance(value);
    } else if (word == "--health") {
      if (!value.starts_with('/')) throw WrongUse("--health wants a path that begins with /");
      chosen.health = value;
    } else if (word == "--health-ms") {
      chosen.health_ms = read_number(value, 10, 3'600'000);
    } else if (word == "--failures") {
      chosen.failures = read_number(value, 1, 1000);
    } else if (word == "--answer-ms") {
      chosen.answer_ms = read_number(value, 1, 3'600'000);
    } else if (word == "--http2") {
      chosen.knows_http2 = read_http2(value);
    } else if (word == "--certificate") {
      chosen.certificate = value;
    } else if (word == "--key") {
      chosen.key = value;
    } else {
      throw WrongUse("there is no option '" + std::string(word) + "'");
    }
  }
  if (chosen.origins.empty()) throw WrongUse("to which servers?");
  if (chosen.certificate.empty() != chosen.key.empty())
    throw WrongUse("a certificate and its key belong together");
  return chosen;
}

troupe::task<> stop_by_signal(http::server web, std::stop_source checks) {
  auto signals = troupe::signal_listener::listen({SIGINT, SIGTERM});
  co_await signals.next();
  checks.request_stop();
  web.stop();
}

// Else it would pass each request on to itself without end.
void refuse_own_address(const Options& chosen, std::uint16_t port) {
  for (const std::string& origin : chosen.origins) {
    const http::url at = http::url::parse(origin);
    if (at.port() == port && (at.host() == "localhost" || at.host().starts_with("127.")))
      throw WrongUse("'" + origin + "' is this proxy itself");
  }
}

void serve(const Options& chosen) {
  troupe::runtime rt;
  http::client_options limits;
  limits.redirects = 0;
  limits.user_agent.clear();
  limits.connect_time = 2s;
  limits.head_time = std::chrono::milliseconds(chosen.answer_ms);
  limits.idle_per_origin = 64;
  limits.http2_prior_knowledge = chosen.knows_http2;
  // Those who look whether a server works do not wait behind clients that read no answers.
  const http::client health(limits);
  limits.connections_per_origin = connections_max;
  const http::client web(limits);
  const auto backends = std::make_shared<const Backends>(chosen);
  http::server proxy(make_routes(Proxy(web, backends)));
  auto listener = troupe::tcp_listener::listen(
      troupe::endpoint::loopback(static_cast<std::uint16_t>(chosen.port)));
  const std::string at = listener.local().to_string();
  refuse_own_address(chosen, listener.local().port());
  std::stop_source checks;
  for (const BackendPtr& one : backends->all())
    rt.spawn(watch_health(health, one, chosen.health, std::chrono::milliseconds(chosen.health_ms),
                          checks.get_token()));
  if (chosen.certificate.empty()) {
    rt.spawn(proxy.serve(std::move(listener)));
  } else {
    rt.spawn(proxy.serve(
        std::move(listener),
        troupe::tls_context::server(troupe::tls_options::https(chosen.certificate, chosen.key))));
  }
  rt.spawn(stop_by_signal(proxy, checks));
  std::cout << "listening on " << at << std::endl;
  rt.run();
}

int main(int argc, char** argv) try {
  if (argc > 1 && std::string_view(argv[1]) == "--help") {
    std::cout << usage;
    return 0;
  }
  serve(parse(argc, argv));
  return 0;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "proxy: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "proxy: " << failure.what() << '\n';
  return 1;
}
