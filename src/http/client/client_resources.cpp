#include "http/client/client_resources.hpp"

#include "http/h2/framing/server_session.hpp"
#include "troupe/base/error.hpp"
#include "troupe/parallel/submitted.hpp"

namespace troupe::http {
namespace {

constexpr std::size_t head_bytes_max = std::size_t{1} << 30;

client_options checked(client_options options) {
  if (options.redirects < 0)
    throw option_error("troupe: http::client_options::redirects must not be negative");
  if (options.head_bytes < 128 || options.head_bytes > head_bytes_max) {
    throw option_error("troupe: http::client_options::head_bytes must be from 128 bytes to 1 GiB");
  }
  for (const char character : options.user_agent) {
    if (static_cast<unsigned char>(character) < ' ' || character == 0x7f)
      throw option_error("troupe: http::client_options::user_agent has a control byte");
  }
  if (options.connections_per_origin == 0 ||
      options.connections_per_origin > semaphore::max_permits)
    throw option_error("troupe: http::client_options::connections_per_origin must be at least 1");
  if (options.http2.streams == 0 || options.http2.stream_window < 1024 ||
      options.http2.stream_window > 0x7fffffff)
    throw option_error(
        "troupe: http::client_options::http2: streams must be at least 1, and stream_window from "
        "1 KiB to 2^31-1");
  if (options.http2_prior_knowledge && !h2::server_session::is_available())
    throw option_error(
        "troupe: http::client_options::http2_prior_knowledge: this library was built without "
        "nghttp2, and speaks HTTP/1.1 only: install libnghttp2-dev and build it again");
  constexpr std::size_t buffer_least = 1024 * 1024;
  if (options.buffer_bytes < buffer_least ||
      (options.buffer_bytes_per_origin != 0 && options.buffer_bytes_per_origin < buffer_least))
    throw option_error(
        "troupe: http::client_options::buffer_bytes and buffer_bytes_per_origin must be at least "
        "1 MiB");
  options.tls.alpn = {"http/1.1"};
  return options;
}

base::ledger::limits kept_limits_of(const client_options& options) {
  constexpr std::size_t share = 8;
  base::ledger::limits most;
  most.bytes = options.buffer_bytes;
  most.peer_bytes = options.buffer_bytes_per_origin != 0 ? options.buffer_bytes_per_origin
                                                         : options.buffer_bytes / share;
  return most;
}

parser_limits limits_of(const client_options& options) {
  parser_limits limits;
  limits.head_bytes = options.head_bytes;
  limits.fields = options.fields;
  return limits;
}

}  // namespace

client_resources::client_resources(client_options chosen)
    : options(checked(std::move(chosen))),
      kept(kept_limits_of(options)),
      limits(limits_of(options)),
      proxies(options.proxies),
      slots(options),
      pool(options) {}

std::optional<tls_context> client_resources::known_trust(bool for_streams) {
  std::lock_guard lock(mutex_);
  return for_streams ? streams_trust_ : trust_;
}

task<tls_context> client_resources::trust(bool for_streams, tasks::limits within) {
  std::optional<tls_context> known = known_trust(for_streams);
  if (known) co_return std::move(*known);
  auto make = [self = shared_from_this(), for_streams] {
    tls_options chosen = self->options.tls;
    if (for_streams) chosen.alpn.insert(chosen.alpn.begin(), "h2");
    return tls_context::client(chosen);
  };
  auto making = blocking(std::move(make));
  tls_context fresh = co_await std::move(making).timeout(within.left()).stop(within.stop());
  std::lock_guard lock(mutex_);
  // otherwise another task was first: its context stays, with its TLS sessions
  std::optional<tls_context>& context = for_streams ? streams_trust_ : trust_;
  if (!context) context = std::move(fresh);
  co_return *context;
}

}  // namespace troupe::http
