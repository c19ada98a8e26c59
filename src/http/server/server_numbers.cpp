#include "http/server/server_numbers.hpp"

#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "http/server/server_state.hpp"

namespace troupe::http {
namespace {

using observe::counter_of;
using observe::gauge_of;
using observe::histogram_of;
using observe::number_table;
using observe::number_unit;

struct server_numbers_now {
  std::size_t connections = 0, idle = 0;
  std::uint64_t accepted = 0, turned_away = 0, in_flight = 0;
  base::ledger::totals kept;
};
using totals = base::ledger::totals;
template <auto Member>
auto kept_of(const server_numbers_now& now) {
  return now.kept.*Member;
}
using server_now = server_numbers_now;

const number_table<server_now> server_numbers{
    "troupe_http",
    {"runtime", "server"},
    {gauge_of<&server_now::connections>("connections", "Connections of the server."),
     gauge_of<&server_now::idle>("idle_connections",
                                 "Connections that have been answered and wait for a request."),
     counter_of<&server_now::accepted>("accepted_connections", "Connections that were accepted."),
     shows(observe::trouble::refused_clients,
           counter_of<&server_now::turned_away>(
               "refused_connections",
               "Connections that were turned away, since their client has too many.")),
     gauge_of<&server_now::in_flight>("requests_in_flight", "Requests that are not answered yet."),
     gauge_of<&kept_of<&totals::bytes>>(
         "kept_bytes", "Memory that the server keeps for its clients.", number_unit::bytes),
     gauge_of<&kept_of<&totals::descriptors>>(
         "kept_descriptors", "Descriptors of its connections and of files that it sends."),
     gauge_of<&kept_of<&totals::peers>>("clients", "Clients for which it keeps something."),
     gauge_of<&kept_of<&totals::largest_peer_bytes>>(
         "largest_client_bytes", "What it keeps for the client for which it keeps most.",
         number_unit::bytes),
     counter_of<&kept_of<&totals::ended>>(
         "over_budget",
         "Connections and streams that ended since too much was kept for their client.")}};

struct request_numbers_now {
  observe::distribution took;
};
const number_table<request_numbers_now> request_numbers{
    "troupe_http_request",
    {"runtime", "server", "route", "method", "status"},
    {shows(observe::trouble::slow_requests,
           histogram_of<&request_numbers_now::took>(
               "duration_seconds", "Time from the head of a request to the head of its answer."))}};

struct ending_numbers_now {
  std::uint64_t times = 0;
};
const number_table<ending_numbers_now> ending_numbers{
    "troupe_http",
    {"runtime", "server", "reason"},
    {counter_of<&ending_numbers_now::times>(
        "ended_connections", "Connections and streams that the server has asked to end.")}};
constexpr std::pair<connection_ending, const char*> endings[] = {
    {connection_ending::late, "late"},       {connection_ending::late_stream, "late_stream"},
    {connection_ending::shed, "shed"},       {connection_ending::over_budget, "over_budget"},
    {connection_ending::aborted, "aborted"}, {connection_ending::draining, "draining"}};

const number_table<handshake_counts> handshake_numbers{
    "troupe_http_tls",
    {"runtime", "server"},
    {gauge_of<&handshake_counts::under_way>("handshakes_in_flight",
                                            "Handshakes of TLS that are under way."),
     counter_of<&handshake_counts::done>("handshakes", "Handshakes that have succeeded."),
     counter_of<&handshake_counts::resumed>("resumed_sessions",
                                            "Handshakes that continued an earlier session."),
     counter_of<&handshake_counts::plain_http>("plain_http",
                                               "Clients that spoke HTTP without TLS."),
     counter_of<&handshake_counts::bad_certificate>(
         "bad_certificates", "Handshakes whose client has no certificate that is trusted."),
     counter_of<&handshake_counts::refused_by_peer>("refused_by_peer",
                                                    "Handshakes that the client has refused."),
     counter_of<&handshake_counts::bad_protocol>(
         "bad_protocol", "Handshakes that are no TLS, or have nothing in common."),
     counter_of<&handshake_counts::truncated>("truncated",
                                              "Handshakes whose client has ended the connection."),
     counter_of<&handshake_counts::timed_out>("timed_out", "Handshakes that took too long."),
     counter_of<&handshake_counts::ended_by_server>(
         "ended_by_server", "Handshakes that ended to make room, or because the server stops."),
     counter_of<&handshake_counts::lost>("lost", "Handshakes whose connection was reset."),
     counter_of<&handshake_counts::unannounced_ends>(
         "unannounced_ends", "Connections that ended without the announcement of TLS."),
     counter_of<&handshake_counts::damaged>(
         "damaged", "Connections that ended with damaged bytes or an alert.")}};

const number_table<http2_counts> http2_numbers{
    "troupe_http2",
    {"runtime", "server"},
    {counter_of<&http2_counts::connections>("connections", "Connections of HTTP/2."),
     counter_of<&http2_counts::streams>("streams", "Requests of HTTP/2."),
     counter_of<&http2_counts::refused_streams>("refused_streams",
                                                "Streams that were too many at a time."),
     counter_of<&http2_counts::reset_streams>("reset_streams",
                                              "Streams that the client has reset.")}};
const number_table<ending_numbers_now> http2_endings{
    "troupe_http2",
    {"runtime", "server", "reason"},
    {counter_of<&ending_numbers_now::times>(
        "ended_connections",
        "Connections that ended, since the client went beyond a limit or broke the protocol.")}};
constexpr std::pair<std::uint64_t http2_counts::*, const char*> excesses[] = {
    {&http2_counts::header_lists, "header_lists"},
    {&http2_counts::resets, "resets"},
    {&http2_counts::continuations, "continuations"},
    {&http2_counts::settings, "settings"},
    {&http2_counts::pings, "pings"},
    {&http2_counts::window_updates, "window_updates"},
    {&http2_counts::priorities, "priorities"},
    {&http2_counts::empty_data, "empty_data"},
    {&http2_counts::other_frames, "other_frames"},
    {&http2_counts::unread_answers, "unread_answers"},
    {&http2_counts::protocol_errors, "protocol_errors"}};

const number_table<proxy_header_counts> proxy_header_numbers{
    "troupe_http_proxy_header",
    {"runtime", "server"},
    {counter_of<&proxy_header_counts::accepted>("accepted",
                                                "Headers of the PROXY protocol that were taken."),
     counter_of<&proxy_header_counts::untrusted>(
         "untrusted", "Connections that are not from one of the networks."),
     counter_of<&proxy_header_counts::malformed>("malformed",
                                                 "Headers that are malformed or missing."),
     counter_of<&proxy_header_counts::timed_out>("timed_out", "Headers that took too long."),
     counter_of<&proxy_header_counts::lost>("lost", "Headers whose connection has ended.")}};

std::vector<std::string> plus(std::vector<std::string> labels,
                              std::initializer_list<std::string_view> more) {
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

void collect_requests(observe::row_sink& sink, const std::vector<std::string>& labels,
                      const request_counts& requests) {
  constexpr std::string_view others = "(others)";
  constexpr std::array<std::string_view, 6> classes{"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
  requests.for_each([&](const request_series& series) {
    const std::string_view method = name_of(series.by);
    std::string_view route = "(none)";
    if (series.route != nullptr) route = "(otherwise)";
    if (series.route != nullptr && !series.route->pattern.empty()) route = series.route->pattern;
    const auto of_class = static_cast<std::size_t>(series.status_class);
    sink.add(request_numbers,
             plus(labels, {route, method.empty() ? "OTHER" : method,
                           of_class < classes.size() ? classes[of_class] : "none"}),
             {series.took.get()});
  });
  if (const auto* const rest = requests.others())
    sink.add(request_numbers, plus(labels, {others, others, others}), {rest->get()});
}

}  // namespace

void collect(observe::row_sink& sink, const std::vector<std::string>& labels,
             const server_state& server) {
  sink.add(server_numbers, labels,
           {server.count(), server.count_idle(), server.accepted.get(), server.turned_away.get(),
            server.requests.in_flight(), server.kept.now()});
  collect_requests(sink, labels, server.requests);
  for (const auto& [why, name] : endings)
    sink.add(ending_numbers, plus(labels, {name}), {server.ended.of(why)});
  sink.add(handshake_numbers, labels, server.secure.counts());
  const http2_counts http2 = server.http2.all();
  sink.add(http2_numbers, labels, http2);
  for (const auto& [member, name] : excesses)
    sink.add(http2_endings, plus(labels, {name}), {http2.*member});
  sink.add(proxy_header_numbers, labels, server.proxied.all());
}

}  // namespace troupe::http
