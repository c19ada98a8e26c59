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
    server_info info;
    info.server_id = std::move(from.server_id).value_or("");
    info.server_name = std::move(from.server_name).value_or("");
    info.version = std::move(from.version).value_or("");
    info.nonce = std::move(from.nonce).value_or("");
    if (from.connect_urls) info.connect_urls = std::move(*from.connect_urls);
    if (info.connect_urls.size() > servers_max) info.connect_urls.resize(servers_max);
    info.max_payload = from.max_payload.value_or(info.max_payload);
    info.headers = from.headers.value_or(false);
    info.tls_required = from.tls_required.value_or(false);
    info.tls_available = from.tls_available.value_or(false);
    info.auth_required = from.auth_required.value_or(false);
    return info;
  } catch (const json::json_error&) {
    return std::nullopt;
  }
}

std::string hello(const std::string& name, bool secure, const identity& login) {
  connect_json says;
  says.tls_required = secure;
  says.name = unless_empty(name);
  says.user = unless_empty(login.user);
  if (!login.user.empty()) says.pass = login.password;
  says.auth_token = unless_empty(login.token);
  says.jwt = unless_empty(login.jwt);
  says.nkey = unless_empty(login.nkey);
  says.sig = unless_empty(login.signature);
  return "CONNECT " + json::write(says) + "\r\nPING\r\n";
}

}  // namespace troupe::nats
