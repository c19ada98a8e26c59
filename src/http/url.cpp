#include "troupe/http/url.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "troupe/http/client_error.hpp"
#include "troupe/http/fields.hpp"

namespace troupe::http {
namespace {

constexpr std::size_t url_bytes_max = 8192;
constexpr std::uint16_t http_port = 80, https_port = 443;

[[noreturn]] void refuse(std::string_view text, const char* why) {
  std::string shown;
  for (const char character : text.substr(0, 200))
    shown += character >= ' ' && character < 0x7f ? character : '?';
  throw client_error(client_failure::bad_url, shown, why);
}

char lower(char character) noexcept {
  return character >= 'A' && character <= 'Z' ? static_cast<char>(character - 'A' + 'a')
                                              : character;
}

bool is_in_host(char character) noexcept {
  return (character >= '0' && character <= '9') ||
         (lower(character) >= 'a' && lower(character) <= 'z') || character == '-' ||
         character == '.' || character == '_';
}

bool is_visible(char character) noexcept { return character > ' ' && character < 0x7f; }

void append_encoded(std::string& to, char character) {
  constexpr char digits[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(character);
  if (is_visible(character) &&
      std::string_view("\"<>\\^`{|}").find(character) == std::string_view::npos) {
    to += character;
  } else {
    to += '%';
    to += digits[byte >> 4];
    to += digits[byte & 15];
  }
}

// Returns the text without its fragment.
std::string_view checked(std::string_view text) {
  if (text.size() > url_bytes_max) refuse(text, "it is longer than 8192 bytes");
  for (const char character : text) {
    if (static_cast<unsigned char>(character) < ' ' || character == 0x7f)
      refuse(text, "it has a control byte");
  }
  return text.substr(0, text.find('#'));
}

// Removes dot segments (RFC 3986, 5.2.4).
std::string without_dots(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(end);
    if (part == "/." || part == "/..") {
      if (part == "/..") result.resize(result.empty() ? 0 : result.rfind('/'));
      if (path.empty()) result += '/';
    } else {
      result += part;
    }
  }
  return result.empty() ? "/" : result;
}

}  // namespace

url url::parse(std::string_view text) { return parse(text, true); }
url url::parse_as_written(std::string_view text) { return parse(text, false); }

url url::parse(std::string_view text, bool encodes) {
  const std::string_view whole = text;
  text = checked(text);
  url parsed;
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos)
    refuse(whole, "it has no scheme: begin it with https:// or http://");
  const std::string_view scheme = text.substr(0, colon);
  parsed.secure_ = same_word(scheme, "https");
  if (!parsed.secure_ && !same_word(scheme, "http"))
    refuse(whole, "its scheme is neither http nor https");
  text.remove_prefix(colon + 3);

  const std::size_t end = std::min(text.find_first_of("/?"), text.size());
  std::string_view authority = text.substr(0, end), target = text.substr(end);
  if (authority.find('@') != std::string_view::npos)
    refuse(whole, "it names a user: give the field Authorization instead");
  std::size_t host_end = authority.find(':');
  if (authority.starts_with('[')) {
    host_end = authority.find(']');
    if (host_end == std::string_view::npos) refuse(whole, "a bracket in its host is not closed");
    ++host_end;
  }
  const std::string_view host = authority.substr(0, host_end);
  std::string_view port = authority.substr(std::min(host_end, authority.size()));
  if (host.starts_with('[')) {
    in6_addr room;
    const std::string address(host.substr(1, host.size() - 2));
    if (::inet_pton(AF_INET6, address.c_str(), &room) != 1)
      refuse(whole, "the brackets in its host contain no IPv6 address");
  } else if (host.empty() || !std::all_of(host.begin(), host.end(), is_in_host)) {
    refuse(whole,
           "its host is not a name or an address; write names beyond ASCII in their xn-- form");
  }
  std::transform(host.begin(), host.end(), std::back_inserter(parsed.host_), lower);
  parsed.port_ = parsed.secure_ ? https_port : http_port;
  if (!port.empty()) {
    if (port.front() != ':') refuse(whole, "its port is not a number from 1 to 65535");
    port.remove_prefix(1);
    if (!port.empty()) {
      const auto [rest, bad] =
          std::from_chars(port.data(), port.data() + port.size(), parsed.port_);
      if (bad != std::errc{} || rest != port.data() + port.size() || parsed.port_ == 0)
        refuse(whole, "its port is not a number from 1 to 65535");
    }
  }
  if (!target.starts_with('/')) parsed.target_ = "/";
  if (encodes) {
    for (const char character : target) append_encoded(parsed.target_, character);
  } else if (std::all_of(target.begin(), target.end(), is_visible)) {
    parsed.target_ += target;
  } else {
    refuse(whole, "its path or query has a space, or a byte beyond ASCII");
  }
  return parsed;
}

url url::resolve(std::string_view reference) const {
  const std::string_view text = checked(reference);
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos && colon < text.find_first_of("/?")) return parse(text);
  if (text.starts_with("//")) return parse((secure_ ? "https:" : "http:") + std::string(text));
  const std::string_view mine = target_, my_path = mine.substr(0, mine.find('?'));
  std::string target;
  if (text.empty()) {
    target = target_;
  } else if (text.starts_with('?')) {
    target = std::string(my_path) + std::string(text);
  } else {
    const std::size_t mark = std::min(text.find('?'), text.size());
    std::string path(text.substr(0, mark));
    if (!path.starts_with('/'))
      path = std::string(my_path.substr(0, my_path.rfind('/') + 1)) + path;
    target = without_dots(path) + std::string(text.substr(mark));
  }
  return parse(origin() + target);
}

std::string url::authority() const {
  const bool usual = port_ == (secure_ ? https_port : http_port);
  return usual ? host_ : host_ + ":" + std::to_string(port_);
}

std::string url::origin() const { return (secure_ ? "https://" : "http://") + authority(); }

}  // namespace troupe::http
