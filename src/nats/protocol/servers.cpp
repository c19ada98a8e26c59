#include "nats/protocol/servers.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "kit/clock_and_random.hpp"
#include "troupe/base/error.hpp"

namespace troupe::nats {
namespace {

constexpr std::size_t servers_max = 1'000;

// The defect of the address; null: none.
const char* parse_address(std::string_view text, server& target) {
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return "a bracket is missing";
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && port.front() != ':') return "a colon is missing before the port";
  } else if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon);
  }
  if (host.empty()) return "the host is missing";
  const auto is_strange = [](char letter) {
    return letter <= ' ' || letter == '/' || letter == '@';
  };
  if (std::ranges::any_of(host, is_strange)) return "the host has a character that none has";
  target.host = host;
  if (port.empty()) return nullptr;
  const char* const end = port.data() + port.size();
  const auto [rest, failed] = std::from_chars(port.data() + 1, end, target.port);
  if (failed != std::errc() || rest != end || target.port == 0) return "the port is no number";
  return nullptr;
}

// As RFC 3986 has it in addresses: %40 is @. A % in front of anything but two digits is itself.
std::string percent_decoded(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    unsigned char byte = 0;
    const char* const begin = text.data() + 1;
    const bool is_code = text.front() == '%' && text.size() > 2 &&
                         std::from_chars(begin, begin + 2, byte, 16).ptr == begin + 2;
    plain += is_code ? static_cast<char>(byte) : text.front();
    text.remove_prefix(is_code ? 3 : 1);
  }
  return plain;
}

// The defect of the server's address; null: none.
const char* parse_server(std::string_view text, server& target) {
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    const std::string_view name = text.substr(0, scheme);
    if (name != "nats" && name != "tls") return "only nats:// and tls:// are known";
    target.secure = name == "tls";
    text.remove_prefix(scheme + 3);
  }
  while (text.ends_with('/')) text.remove_suffix(1);
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    const std::string_view login = text.substr(0, at);
    const std::size_t colon = login.find(':');
    target.user = percent_decoded(login.substr(0, colon));
    if (colon != std::string_view::npos) target.password = percent_decoded(login.substr(colon + 1));
    text.remove_prefix(at + 1);
  }
  return parse_address(text, target);
}

bool is_numeric(std::string_view host) noexcept {
  return host.find(':') != std::string_view::npos || std::ranges::all_of(host, [](char letter) {
           return letter == '.' || (letter >= '0' && letter <= '9');
         });
}

}  // namespace

std::string server::authority() const {
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::vector<server> parse_servers(std::string_view list) {
  std::vector<server> all;
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view address = list.substr(0, comma);
    while (address.starts_with(' ')) address.remove_prefix(1);
    while (address.ends_with(' ')) address.remove_suffix(1);
    server result;
    if (const char* const wrong = parse_server(address, result)) {
      // Without its password.
      const std::size_t at = address.rfind('@');
      throw option_error(
          "troupe: nats: the address of a server \"" +
          std::string(at == std::string_view::npos ? address : address.substr(at + 1)) +
          "\" is wrong: " + wrong + "; it is such as nats://host:4222");
    }
    all.push_back(std::move(result));
    if (comma == std::string_view::npos) return all;
    list.remove_prefix(comma + 1);
  }
}

std::vector<server> server_list::next_round() const {
  std::vector<server> order = all_;
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[kit::random_number() % i]);
  const auto last = std::ranges::find_if(
      order, [&](const server& candidate) { return candidate.authority() == last_; });
  if (last != order.end()) std::rotate(last, last + 1, order.end());
  return order;
}

void server_list::add(const std::vector<std::string>& told) {
  for (const std::string& text : told) {
    if (all_.size() >= servers_max) return;
    server added = all_.front();
    added.port = 4222;
    if (parse_address(text, added) != nullptr) continue;
    const std::string name = added.authority();
    const auto same = [&](const server& known) { return known.authority() == name; };
    if (std::ranges::any_of(all_, same)) continue;
    // Servers announce numeric addresses, and their certificates contain the name.
    const server& given = all_.front();
    if (is_numeric(added.host) && !is_numeric(given.host))
      added.tls_name = given.tls_name.empty() ? given.host : given.tls_name;
    all_.push_back(std::move(added));
  }
}

}  // namespace troupe::nats
