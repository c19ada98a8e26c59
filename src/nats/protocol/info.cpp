#include "nats/protocol/info.hpp"

#include <utility>

#include "troupe/json/read.hpp"
#include "troupe/json/write.hpp"

namespace troupe::nats {
namespace {

struct info_json {
  std::optional<std::string> server_id, server_name, version, nonce;
  std::optional<std::vector<std::string>> connect_urls;
  std::optional<std::uint64_t> max_payload;
  std::optional<bool> headers, tls_required, tls_available, auth_required;
};

struct connect_json {
  bool verbose = false, pedantic = false, tls_required = false;
  std::optional<std::string> name;
  std::string lang = "c++", version = "troupe";
  int protocol = 1;
  bool echo = true, headers = true, no_responders = true;
  std::optional<std::string> user, pass, auth_token, jwt, nkey, sig;
};

std::optional<std::string> unless_empty(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace

std::optional<server_info> server_info::parse(std::string_view json) {
  constexpr std::size_t servers_max = 1'000;
  try {
    info_json from = json::read<info_json>(json);
    server_info made;
    made.server_id = std::move(from.server_id).value_or("");
    made.server_name = std::move(from.server_name).value_or("");
    made.version = std::move(from.version).value_or("");
    made.nonce = std::move(from.nonce).value_or("");
    if (from.connect_urls) made.connect_urls = std::move(*from.connect_urls);
    if (made.connect_urls.size() > servers_max) made.connect_urls.resize(servers_max);
    made.max_payload = from.max_payload.value_or(made.max_payload);
    made.headers = from.headers.value_or(false);
    made.tls_required = from.tls_required.value_or(false);
    made.tls_available = from.tls_available.value_or(false);
    made.auth_required = from.auth_required.value_or(false);
    return made;
  } catch (const json::json_error&) {
    return std::nullopt;
  }
}

std::string hello(const std::string& name, bool secure, const identity& who) {
  connect_json says;
  says.tls_required = secure;
  says.name = unless_empty(name);
  says.user = unless_empty(who.user);
  if (!who.user.empty()) says.pass = who.password;
  says.auth_token = unless_empty(who.token);
  says.jwt = unless_empty(who.jwt);
  says.nkey = unless_empty(who.nkey);
  says.sig = unless_empty(who.signature);
  return "CONNECT " + json::write(says) + "\r\nPING\r\n";
}

}  // namespace troupe::nats
