#include "troupe/http/client.hpp"

#include <algorithm>
#include <exception>

#include "http/client/exchange.hpp"
#include "troupe/dns/connect.hpp"
#include "troupe/io/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/trace_context.hpp"

namespace troupe::http {
namespace {

// a body up to this size is sent together with the head
constexpr std::size_t small_body_bytes = 16 * 1024;
// a body up to this size is read, so that the connection can be used again
constexpr std::size_t redirect_body_bytes = 64 * 1024;
constexpr std::size_t head_bytes_max = std::size_t{1} << 30;

client_options checked(client_options options) {
  if (options.redirects < 0)
    throw option_error("troupe: http::client_options::redirects must not be negative");
  if (options.head_bytes < 128 || options.head_bytes > head_bytes_max) {
    throw option_error("troupe: http::client_options::head_bytes must be from 128 bytes to 1 GiB");
  }
  for (const char one : options.user_agent) {
    if (one < ' ' || one == 0x7f)
      throw option_error("troupe: http::client_options::user_agent has a control byte");
  }
  options.tls.alpn = {"http/1.1"};
  return options;
}

parser_limits limits_of(const client_options& options) {
  parser_limits made;
  made.head_bytes = options.head_bytes;
  made.fields = options.fields;
  return made;
}

bool may_be_repeated(std::string_view method) noexcept {
  for (const std::string_view one : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"}) {
    if (method == one) return true;
  }
  return false;
}

// Whether one of the lines `Name: value` has that name.
bool names_field(std::string_view lines, std::string_view name) noexcept {
  while (!lines.empty()) {
    if (same_word(lines.substr(0, lines.find(':')), name)) return true;
    lines.remove_prefix(lines.find('\n') + 1);
  }
  return false;
}

std::string head_of(const client_core& core, client_request& asked, const url& at) {
  std::string head =
      asked.method() + " " + at.target() + " HTTP/1.1\r\nHost: " + at.authority() + "\r\n";
  if (!core.options.user_agent.empty()) head += "User-Agent: " + core.options.user_agent + "\r\n";
  head += client_access::fields(asked);
  // The trace of the call goes on in the server, unless the caller has named another one.
  const auto trace = this_call::trace();
  if (trace && !names_field(client_access::fields(asked), "traceparent"))
    head += "traceparent: " + trace->child().traceparent() + "\r\n";
  const std::string& method = asked.method();
  if (client_access::upload(asked)) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (client_access::has_body(asked) || method == "POST" || method == "PUT" ||
             method == "PATCH") {
    head += "Content-Length: " + std::to_string(client_access::body(asked).size()) + "\r\n";
  }
  return head + "\r\n";
}

task<> send_request(exchange& by, client_request& asked, const std::string& head) {
  const std::string& body = client_access::body(asked);
  if (!client_access::upload(asked) && body.size() <= small_body_bytes) {
    const std::string both = head + body;
    co_await by.send(both);
    co_return;
  }
  co_await by.send(head);
  if (!client_access::upload(asked)) {
    co_await by.send(body);
    co_return;
  }
  upload to(by);
  co_await client_access::upload(asked)(to);
  co_await by.send("0\r\n\r\n");
}

// How one attempt ended: with the head of an answer, or with an exception.
struct attempt {
  attempt() noexcept {}
  std::exception_ptr failure;
  bool stale = false;  // not a byte of an answer came: the kept connection was already dead
};

// A server may answer, and close or stop reading, before it has all of the request. So a failure to
// send does not count when there is an answer.
task<attempt> try_once(exchange& by, client_request& asked, const std::string& head) {
  attempt made;
  try {
    co_await send_request(by, asked, head);
  } catch (const io_error&) {
    if (!by.refused_bytes()) throw;  // thrown by the caller's function, not by the connection
    made.failure = std::current_exception();
  } catch (const timed_out&) {
    if (!by.refused_bytes()) throw;
    made.failure = std::current_exception();
  }
  std::exception_ptr second;
  try {
    co_await by.read_head(method_named(asked.method()));
  } catch (const io_error&) {
    second = std::current_exception();
  } catch (const client_error& e) {
    second = std::current_exception();
    made.stale = e.reason() == client_failure::closed;
  }
  if (second == nullptr) {
    made.failure = nullptr;
    co_return made;
  }
  made.stale = !by.heard();
  if (made.failure == nullptr) made.failure = second;
  co_return made;
}

task<std::shared_ptr<exchange>> ask(std::shared_ptr<client_core> core, client_request& asked,
                                    url at, tasks::limits life) {
  const std::string head = head_of(*core, asked, at), origin = at.origin();
  const bool repeats = may_be_repeated(asked.method()) && !client_access::upload(asked);
  for (bool again = false;; again = true) {
    auto made = std::make_shared<exchange>(core, at, life);
    wire_ptr wire = again ? nullptr : core->pool.take(origin);
    const bool kept = wire != nullptr;
    if (!kept) wire = co_await connect(*core, at, life);
    made->on(std::move(wire));
    const attempt ended = co_await try_once(*made, asked, head);
    if (ended.failure == nullptr) co_return made;
    if (!(kept && repeats && ended.stale)) std::rethrow_exception(ended.failure);
  }
}

bool is_redirect(int status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Reads a short body, so that the connection can be used again. A longer one is not worth the time.
task<> pass_over_body(exchange& of) {
  if (of.length().value_or(0) > redirect_body_bytes) co_return;
  try {
    std::size_t bytes = 0;
    for (;;) {
      const std::string_view piece = co_await of.next_piece();
      bytes += piece.size();
      if (piece.empty() || bytes > redirect_body_bytes) co_return;
    }
  } catch (const client_error&) {
  } catch (const io_error&) {
  }
}

url target_of(const exchange& answer) {
  const std::string_view to = answer.fields()["Location"];
  try {
    return answer.at().resolve(to);
  } catch (const client_error& e) {
    throw client_error(client_failure::bad_redirect, answer.where(), e.what());
  }
}

// Changes the request for the target of a redirect. Returns false when the body would be needed
// again and no longer exists.
bool turn_to(client_request& asked, int status, const url& from, const url& to) {
  std::string& method = client_access::method(asked);
  const bool to_get = (status == 303 && method != "HEAD" && method != "GET") ||
                      ((status == 301 || status == 302) && method == "POST");
  if (to_get) {
    method = "GET";
    client_access::body(asked).clear();
    client_access::upload(asked) = nullptr;
    client_access::has_body(asked) = false;
    strip(client_access::fields(asked),
          {"Content-Type", "Content-Encoding", "Content-Language", "Content-Location"});
  }
  if (from.origin() != to.origin())
    strip(client_access::fields(asked), {"Authorization", "Cookie", "Proxy-Authorization"});
  return !client_access::upload(asked);
}

task<client_response> perform(std::shared_ptr<client_core> core, client_request asked,
                              tasks::limits within) {
  const tasks::limits life = within.within(core->options.total_time);
  url at = url::parse(asked.url());
  for (int followed = 0;; ++followed) {
    std::shared_ptr<exchange> answer = co_await ask(core, asked, at, life);
    const int status = answer->status();
    if (status == 206 && !client_access::ranged(asked)) {
      throw client_error(client_failure::bad_response, answer->where(),
                         "a part came that was not asked for");
    }
    if (!is_redirect(status) || core->options.redirects == 0 || !answer->fields().has("Location")) {
      co_return client_access::make(std::move(answer));
    }
    if (followed == core->options.redirects) {
      throw client_error(client_failure::too_many_redirects, answer->where(),
                         std::to_string(followed + 1) + " redirects");
    }
    url next = target_of(*answer);
    if (at.secure() && !next.secure()) {
      throw client_error(client_failure::insecure_redirect, answer->where(),
                         "it leads to " + next.to_string());
    }
    if (!turn_to(asked, status, at, next)) {
      throw client_error(client_failure::bad_redirect, answer->where(),
                         "the body that was sent is wanted again");
    }
    co_await pass_over_body(*answer);
    at = std::move(next);
  }
}

}  // namespace

client_core::client_core(client_options chosen)
    : options(checked(std::move(chosen))), limits(limits_of(options)), pool(options) {}

std::optional<tls_context> client_core::known_trust() {
  std::lock_guard lock(mutex_);
  return trust_;
}

task<tls_context> client_core::trust(tasks::limits within) {
  std::optional<tls_context> known = known_trust();
  if (known) co_return std::move(*known);
  auto make = [self = shared_from_this()] { return tls_context::client(self->options.tls); };
  auto making = blocking(std::move(make));
  tls_context made = co_await std::move(making).timeout(within.left()).stop(within.stop());
  std::lock_guard lock(mutex_);
  // otherwise another task was first: its context stays, with its TLS sessions
  if (!trust_) trust_ = std::move(made);
  co_return *trust_;
}

client::client(client_options options) : core_(std::make_shared<client_core>(std::move(options))) {}
std::size_t client::idle() const { return core_->pool.size(); }
void client::close_idle() const { core_->pool.clear(); }

task<client_response> send_call::start(tasks::limits within) && {
  return perform(std::move(by_), std::move(asked_), std::move(within));
}

// ---- how a client gets a connection ----

namespace {

task<wire_ptr> connect_within(client_core& core, const url& to, const tasks::limits& within) {
  tcp_stream plain = co_await troupe::connect(to.host(), to.port(), core.options.resolver)
                         .timeout(within.left())
                         .stop(within.stop());
  if (!to.secure()) co_return core.make_wire(std::move(plain));
  const tls_context trust = co_await core.trust(within);
  tls_stream secure = tls_stream::client(trust, std::move(plain), to.host());
  co_await secure.handshake().timeout(within.left()).stop(within.stop());
  co_return core.make_wire(std::move(secure));
}

}  // namespace

task<wire_ptr> connect(client_core& core, const url& to, const tasks::limits& within) {
  const tasks::limits soon = within.within(core.options.connect_time);
  try {
    co_return co_await connect_within(core, to, soon);
  } catch (const timed_out&) {
    throw timed_out("troupe: http: no connection to " + to.origin() +
                    " in time: try again, or allow more (client_options::connect_time)");
  }
}

}  // namespace troupe::http
