#include "troupe/http/client.hpp"

#include <algorithm>
#include <exception>

#include "http/client/connect.hpp"
#include "http/client/exchange.hpp"
#include "http/client/sending/client_core.hpp"
#include "http/client/sending/reach.hpp"
#include "http/coding/decoder.hpp"
#include "http/fields/field_line.hpp"
#include "troupe/io/error.hpp"
#include "troupe/observe/trace.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/limits.hpp"
#include "troupe/task/trace_context.hpp"

namespace troupe::http {
namespace {

// a body up to this size is read, so that the connection can be used again
constexpr std::size_t redirect_body_bytes = 64 * 1024;

bool may_be_repeated(std::string_view method) noexcept {
  for (const std::string_view repeatable : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"}) {
    if (method == repeatable) return true;
  }
  return false;
}

// Whether the answer is decoded: a caller with an Accept-Encoding of its own does that itself.
bool wants_decoding(const client_core& core, client_request& asked) noexcept {
  return core.options.decoded_body_bytes != 0 && !client_access::ranged(asked) &&
         !names_field(client_access::fields(asked), "Accept-Encoding");
}

// The fields of a request, except for those with the length of its body.
std::string lines_of(const client_core& core, client_request& asked, const url& at,
                     request_site site, const route& by) {
  std::string head;
  if (!core.options.user_agent.empty())
    append_field(head, "User-Agent", core.options.user_agent, "client_options");
  head += fields_for(asked, by) + cookie_line(core, asked, at, site);
  if (wants_decoding(core, asked))
    append_field(head, "Accept-Encoding", decodable_codings(), "client");
  // The trace of the call continues in the server, unless the caller has named another trace.
  const auto trace = this_call::trace();
  if (trace && !names_field(client_access::fields(asked), "traceparent")) {
    // A call that is recorded has a span of its own.
    const bool recorded = trace->sampled && observe::is_watched(observe::watched::spans);
    append_field(head, "traceparent", (recorded ? *trace : trace->child()).traceparent(), "client");
    if (!trace->tracestate().empty() && !names_field(client_access::fields(asked), "tracestate"))
      append_field(head, "tracestate", trace->tracestate(), "client");
  }
  return head;
}

task<std::shared_ptr<exchange>> ask(std::shared_ptr<client_core> core, client_request& asked,
                                    url at, request_site site, tasks::limits life) {
  const route by = route_to(*core, at, false);
  const std::string lines = lines_of(*core, asked, at, site, by);
  const bool has_upload = static_cast<bool>(client_access::upload(asked));
  repetition again(may_be_repeated(asked.method()) && !has_upload, has_upload);
  for (;;) {
    const reached found = co_await reach(core, at, by, life, again.wants_fresh());
    const std::shared_ptr<exchange> answer = found.by();
    const attempt ended = co_await try_once(*answer, asked, by, lines);
    if (ended.failure == nullptr) {
      if (by.is_absolute() && answer->status() == 407)
        throw client_error(client_failure::proxy_refused, answer->where(),
                           "the proxy wants other credentials: it answered 407", fault::none, 407);
      co_return answer;
    }
    const bool follows = co_await again.follows(found, ended, life);
    if (!follows) std::rethrow_exception(ended.failure);
  }
}

bool is_redirect(int status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Reads a short body, so that the connection can be used again. A longer one is not worth the time.
task<> pass_over_body(exchange& answer) {
  if (answer.length().value_or(0) > redirect_body_bytes) co_return;
  try {
    std::size_t bytes = 0;
    for (;;) {
      const std::string_view piece = co_await answer.next_encoded();
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
bool turn_to(client_request& asked, int status, const url& from, const url& target) {
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
  if (from.origin() != target.origin())
    strip(client_access::fields(asked), {"Authorization", "Cookie", "Proxy-Authorization"});
  return !client_access::upload(asked);
}

// The span of the client's call, if it is recorded. Neither path nor query is a part of it.
tasks::call_context* span_here() noexcept {
  tasks::call_context* const call = tasks::current_context();
  return call != nullptr && tasks::is_in_span(*call, tasks::span_kind::client) ? call : nullptr;
}

void note_call(const client_request& asked, const url& at) {
  tasks::call_context* const span = span_here();
  if (span == nullptr) [[likely]]
    return;
  tasks::name_span(*span, asked.method());
  tasks::add_to_span(*span, "http.request.method", std::string_view(asked.method()));
  tasks::add_to_span(*span, "url.scheme", at.secure() ? "https" : "http");
  tasks::add_to_span(*span, "server.address", std::string_view(at.host()));
  tasks::add_to_span(*span, "server.port", std::int64_t{at.port()});
}

void note_answer(int status) {
  tasks::call_context* const span = span_here();
  if (span == nullptr) [[likely]]
    return;
  tasks::add_to_span(*span, "http.response.status_code", std::int64_t{status});
  if (status >= 400) tasks::fail_span(*span, nullptr);
}

task<client_response> perform(std::shared_ptr<client_core> core, client_request asked,
                              tasks::limits within) {
  const tasks::limits life = within.within(core->options.total_time);
  url at = client_access::url_of(asked);
  request_site site = request_site::same;
  note_call(asked, at);
  for (int followed = 0;; ++followed) {
    std::shared_ptr<exchange> answer = co_await ask(core, asked, at, site, life);
    keep_cookies(*core, *answer);
    const int status = answer->status();
    if (status == 206 && !client_access::ranged(asked)) {
      throw client_error(client_failure::bad_response, answer->where(),
                         "a part came that was not asked for");
    }
    if (!is_redirect(status) || core->options.redirects == 0 || !answer->fields().has("Location")) {
      note_answer(status);
      if (wants_decoding(*core, asked)) answer->begin_decoding(method_named(asked.method()));
      co_return client_access::make(std::move(answer));
    }
    if (followed == core->options.redirects) {
      throw client_error(client_failure::too_many_redirects, answer->where(),
                         std::to_string(followed + 1) + " redirects");
    }
    url next = target_of(*answer);
    if (at.secure() && !next.secure() && !core->options.insecure_redirects) {
      throw client_error(client_failure::insecure_redirect, answer->where(),
                         "it leads to " + next.to_string());
    }
    if (!turn_to(asked, status, at, next)) {
      throw client_error(client_failure::bad_redirect, answer->where(),
                         "the body that was sent is wanted again");
    }
    co_await pass_over_body(*answer);
    if (!same_site_as(at, next)) site = request_site::cross;
    at = std::move(next);
  }
}

}  // namespace

client::client(client_options options) : core_(std::make_shared<client_core>(std::move(options))) {}
std::size_t client::idle() const { return core_->pool.size(); }
void client::close_idle() const { core_->pool.clear(); }

task<client_response> send_call::start(tasks::limits within) && {
  return tasks::in_span(perform(std::move(by_), std::move(asked_), std::move(within)),
                        tasks::span_kind::client, "HTTP");
}

}  // namespace troupe::http
