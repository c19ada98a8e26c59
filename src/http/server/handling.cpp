#include "http/server/handling.hpp"

#include <algorithm>
#include <utility>

#include "context/keep.hpp"
#include "http/behind_proxy/reports/forwarded.hpp"
#include "http/values/page_of.hpp"
#include "troupe/http/values/status_error.hpp"
#include "troupe/observe/trace.hpp"
#include "troupe/parallel/submitted.hpp"
#include "troupe/task/limits.hpp"
#include "troupe/task/trace_context.hpp"

namespace troupe::http {

handling::handling(const server_state& server) : server_(server) {
  request_.source_ = this;
  request_.path_values_ = &route_.values;
  request_.stopping_ = server.stopping.get_token();
}

namespace {

// Replaces an encoded slash in a path whose route is not found yet. No other character is decoded
// to this one.
constexpr char encoded_slash = '\0';

std::size_t find_encoded_slash(std::string_view text) noexcept {
  std::size_t at = text.find("%2");
  while (at != std::string_view::npos && (at + 2 == text.size() || (text[at + 2] | 0x20) != 'f'))
    at = text.find("%2", at + 1);
  return at;
}

}  // namespace

// Decodes the path into `path_`, unless nothing has to be decoded. An encoded slash does not
// separate segments: it stays `encoded_slash` here, and find_route() makes it a slash.
bool handling::decode_path() {
  request_.path_ = head().path;
  if (request_.path_.find('%') == std::string_view::npos) return true;
  path_.clear();
  for (std::string_view left = request_.path_;;) {
    const std::size_t slash = find_encoded_slash(left);
    if (!decode_percent(left.substr(0, slash), path_)) return false;
    if (slash == std::string_view::npos) break;
    path_ += encoded_slash;
    left.remove_prefix(slash + 3);
  }
  request_.path_ = path_;
  return true;
}

void handling::find_route() {
  route_ = server_.routes.find(head().method, request_.path_);
  if (route_.handler == nullptr) {
    // The target "*" means the whole server.
    route_.values = {};
    route_.values.methods = request_.path_ == "*" ? server_.routes.all_methods() : route_.methods;
    route_.handler = server_.routes.otherwise();
  }
  // The values of the route are views into `path_`: its slashes are put in where they lie.
  if (request_.path_.data() == path_.data())
    std::replace(path_.begin(), path_.end(), encoded_slash, '/');
}

std::uint64_t handling::body_limit() const noexcept {
  const std::size_t own = route_.handler->options.body_bytes;
  return own != 0 ? own : server_.options.body_bytes;
}

fault handling::begin_decoding() {
  const std::size_t own = route_.handler->options.decoded_body_bytes;
  const std::size_t most = own != 0 ? own : server_.options.decoded_body_bytes;
  if (most == 0 || !head().has_body || !route_.handler->call->reads_body) return fault::none;
  const http::fields fields = head().fields;
  const std::string_view named = fields["Content-Encoding"];
  if (!fields.has("Content-Encoding") || same_word(named, "identity")) return fault::none;
  const std::optional<coding> by =
      fields.count("Content-Encoding") == 1 ? coding_named(named) : std::nullopt;
  if (!by) return fault::unknown_content_coding;
  decoded_ = std::make_unique<decoded_body>(*by, most);
  return fault::none;
}

task<std::string_view> handling::next_decoded() {
  for (;;) {
    const std::string_view piece = decoded_->next();
    if (decoded_->wrong() != fault::none) throw refused(decoded_->wrong());
    if (!piece.empty()) co_return piece;
    const std::string_view came = co_await next_encoded();
    decoded_->came(came);
    if (!came.empty()) continue;
    decoded_->ended();
    if (decoded_->wrong() != fault::none) throw refused(decoded_->wrong());
    co_return std::string_view();
  }
}

response handling::refusal(fault why) const {
  // The page names the defect of a body; for a head, the page has no words of its own.
  const bool is_of_body = why == fault::body_too_large || why == fault::bad_content ||
                          why == fault::unknown_content_coding;
  response answer(status_of(why));
  if (is_of_body) answer = page_of(head().fields, status_of(why), text_of(why));
  if (why == fault::unknown_content_coding) answer.field("Accept-Encoding", decodable_codings());
  return answer;
}

std::optional<endpoint> handling::client() {
  std::optional<endpoint> at;
  if (has_address()) at = peer();
  return client_behind(at, head().fields, server_.options.forwarded_by,
                       server_.options.trusted_proxies);
}

response handling::no_route() const {
  return router::no_route(head().method, route_.values.methods);
}

// A context from the pool costs about 250 instructions. Requests that follow each other fast have
// the same one; it ends when the connection is parked, or one of many, or when a handler has
// persisted an object in it: held objects would keep blocks of it from being used again.
void handling::begin_memory() {
  if (memory_) return;
  memory_ = make_context({.name = "request"});
  empty_memory_.emplace(*memory_);
  request_.memory_ = memory_.get();
}

void handling::rest_memory(bool ends) noexcept {
  if (!memory_) return;
  if (!ends && contexts::access::is_as_new(*memory_)) return memory_->trim();
  empty_memory_.reset();
  memory_.release();
  request_.memory_ = nullptr;
}

void handling::note_begin() {
  if (observe::is_watched(observe::watched::counts)) [[unlikely]]
    counted_.begin(server_.requests, route_.handler, head().method);
  begin_trace();
}

void handling::begin_trace() {
  const message_head& asked = head();
  trace_ = {};
  const bool records = observe::is_watched(observe::watched::spans);
  if (!asked.in_trace && !records) [[likely]]
    return;
  std::optional<trace_context> caller;
  if (asked.in_trace && asked.fields.count("traceparent") == 1)
    caller = trace_context::parse(asked.fields["traceparent"], asked.fields.list("tracestate"));
  if (!records) {
    if (caller) trace_ = tasks::context_ref::make_traced(caller->child());
    return;
  }
  trace_ = tasks::context_ref::make_span_from(caller ? &*caller : nullptr, tasks::span_kind::server,
                                              "HTTP");
  if (trace_.get() != nullptr) name_span();
}

// A method or a path that the client has made up is no part of it.
void handling::name_span() {
  const std::string_view method = name_of(head().method);
  tasks::call_context& span = *trace_.get();
  tasks::add_to_span(span, "http.request.method",
                     method.empty() ? std::string_view("_OTHER") : method);
  tasks::add_to_span(span, "url.scheme", secure() ? "https" : "http");
  std::string name(method.empty() ? std::string_view("HTTP") : method);
  if (route_.handler != nullptr && !route_.handler->pattern.empty()) {
    tasks::add_to_span(span, "http.route", std::string_view(route_.handler->pattern));
    name += " " + route_.handler->pattern;
  }
  tasks::name_span(span, name);
}

void handling::note_status(int status) noexcept {
  counted_.note_status(status);
  if (trace_.get() == nullptr) return;
  tasks::add_to_span(*trace_.get(), "http.response.status_code", std::int64_t{status});
  if (status >= 500) tasks::fail_span(*trace_.get(), nullptr);
}

void handling::note_end() noexcept {
  if (trace_.get() == nullptr) [[likely]] {
    if (counted_.is_counted()) counted_.end();
    return;
  }
  if (counted_.is_counted()) {
    const tasks::inside_context in_its_trace(trace_.get());  // for the exemplar
    counted_.end();
  }
  tasks::end_span(*trace_.get(), nullptr);
  trace_ = {};
}

response handling::run_handler(std::exception_ptr& thrown) {
  response answer;
  try {
    begin_memory();
    const context_scope memory_scope(*memory_);
    const tasks::inside_context in_its_trace(trace_.get());
    if (!route_.handler->call->run(request_, route_.values, answer)) answer = response(404);
  } catch (const status_error& e) {
    answer = page_of(head().fields, e.status(), e.detail());
  } catch (...) {
    thrown = std::current_exception();
  }
  return answer;
}

// Calls a handler that is a coroutine. Returns nothing when the path does not fit it.
std::optional<task<response>> handling::start_handler() {
  std::optional<task<response>> later;
  {
    const tasks::inside_context in_its_trace(trace_.get());
    if (!route_.handler->call->start(request_, route_.values, later)) return std::nullopt;
  }
  return in_trace(std::move(*later));
}

namespace {

// Whether the handler gave a Content-Type among the other fields.
bool has_type_of_its_own(std::string_view fields) noexcept {
  while (!fields.empty()) {
    if (same_word(take_field_name(fields), "Content-Type")) return true;
  }
  return false;
}

}  // namespace

namespace {

const char* describe_handler(sched::message*, void*, sched::message_act) {
  return "a handler of HTTP";
}

}  // namespace

void handling::report_failure() noexcept {
  if (failure_ == nullptr) return;
  // The exception may refer to this memory, and both may go to another thread.
  empty_memory_.reset();
  submissions::report(std::exchange(failure_, nullptr), std::move(memory_), &describe_handler);
}

bool handling::tells_strict_transport(const response& with) const noexcept {
  return !server_.strict_transport.empty() && secure() &&
         !with.has_field("Strict-Transport-Security");
}

void handling::complete(response& with) const {
  if (with.status_ < 400 || !with.body().empty() || !with.type_.empty() ||
      has_type_of_its_own(with.fields_)) [[likely]]
    return;
  response page = page_of(head().fields, with.status_);
  with.type_ = std::move(page.type_);
  with.body_ = std::move(page.body_);
  with.fields_ += page.fields_;
}

}  // namespace troupe::http
