#include "http/behind_proxy/proxy_header.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "http/behind_proxy/address.hpp"

namespace troupe::http {
namespace {

using namespace std::string_view_literals;
using kind = proxy_step::kind;

constexpr proxy_step bad{kind::bad};

// ---- version 1: a line of text ----

constexpr std::string_view line_begin = "PROXY ", line_end = "\r\n";
constexpr std::size_t line_most = 107;
constexpr std::string_view shortest_line = "PROXY UNKNOWN\r\n";

// How many bytes a line needs at least behind those that have arrived.
std::size_t line_needs(std::string_view came) noexcept {
  if (came.size() < shortest_line.size()) return shortest_line.size() - came.size();
  if (came.back() == '\r') return 1;
  if (came.starts_with("PROXY UNKNOWN")) return 2;
  // Two addresses and two ports, a space before each.
  const std::size_t address = came.starts_with("PROXY TCP4 ") ? 7 : 2;
  switch (std::ranges::count(came, ' ')) {
    case 2:
      return 1 + address + 2 + 2 + 2;
    case 3:
      return 2 + 2 + 2;
    case 4:
      return 2 + 2;
    default:
      return 2;
  }
}

// The part of the line up to the next space, or to its end.
std::string_view take_part(std::string_view& line) noexcept {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view part = line.substr(0, space);
  line.remove_prefix(std::min(space + 1, line.size()));
  return part;
}

bool read_line(std::string_view line, proxy_header& result) noexcept {
  line.remove_prefix(line_begin.size());
  const bool has_empty_end = line.ends_with(' ');
  const std::string_view protocol = take_part(line);
  if (protocol == "UNKNOWN") {  // the rest is to be ignored
    result.from = proxy_header::origin::proxy;
    return true;
  }
  if (has_empty_end || (protocol != "TCP4" && protocol != "TCP6")) return false;
  const auto read = protocol == "TCP4" ? &v4_of : &v6_of;
  const std::string_view from = take_part(line), at = take_part(line);
  const std::optional<std::uint16_t> from_port = port_of(take_part(line)),
                                     at_port = port_of(take_part(line));
  if (!from_port || !at_port || !line.empty()) return false;
  const std::optional<endpoint> client = read(from, *from_port);
  if (!client || !read(at, *at_port)) return false;
  result.client = *client;
  result.from = proxy_header::origin::address;
  return true;
}

proxy_step read_line_header(std::string_view came, std::size_t most, proxy_header& to) noexcept {
  most = std::min(most, line_most);
  const std::size_t begun = std::min(came.size(), line_begin.size());
  if (came.substr(0, begun) != line_begin.substr(0, begun)) return bad;
  const std::size_t end = came.substr(0, most).find(line_end);
  const std::size_t inside =
      end != std::string_view::npos ? end : came.size() - (came.ends_with('\r') ? 1 : 0);
  if (came.substr(0, inside).find_first_of("\r\n"sv) != std::string_view::npos) return bad;
  if (end != std::string_view::npos) {
    if (!read_line(came.substr(0, end), to)) return bad;
    return {kind::done, end + line_end.size()};
  }
  const std::size_t needs = line_needs(came);
  return came.size() + needs > most ? bad : proxy_step{kind::more, needs};
}

// ---- version 2: binary ----

constexpr std::string_view signature = "\r\n\r\n\0\r\nQUIT\n"sv;
constexpr std::size_t fixed_bytes = 16;
constexpr std::uint8_t addition_crc32c = 0x03;

std::uint8_t byte_at(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<std::uint8_t>(bytes[at]);
}
std::size_t two_bytes_at(std::string_view bytes, std::size_t at) noexcept {
  return std::size_t{byte_at(bytes, at)} << 8 | byte_at(bytes, at + 1);
}

// The checksum of the header, in which the four bytes of the checksum itself, from `hole` on, count
// as 0. Headers are short and few: bit by bit costs about a microsecond for 100 bytes.
std::uint32_t crc32c_of(std::string_view header, std::size_t hole) noexcept {
  std::uint32_t sum = ~std::uint32_t{0};
  for (std::size_t i = 0; i < header.size(); ++i) {
    sum ^= i - hole < 4 ? 0u : byte_at(header, i);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ (sum & 1 ? 0x82F63B78u : 0u);
  }
  return ~sum;
}

// The additions behind the addresses, from `at` on: type, length, value. Only the checksum is read.
bool check_additions(std::string_view header, std::size_t at) noexcept {
  constexpr std::size_t head = 3;
  while (at < header.size()) {
    if (header.size() - at < head) return false;
    const std::uint8_t type = byte_at(header, at);
    const std::size_t bytes = two_bytes_at(header, at + 1);
    at += head;
    if (header.size() - at < bytes) return false;
    if (type == addition_crc32c) {
      if (bytes != 4) return false;
      const std::size_t said = two_bytes_at(header, at) << 16 | two_bytes_at(header, at + 2);
      if (said != crc32c_of(header, at)) return false;
    }
    at += bytes;
  }
  return true;
}

endpoint address_at(std::string_view header, std::size_t at, bool is_v6) noexcept {
  endpoint address = endpoint::any(0);
  if (is_v6) {
    address = endpoint::any_v6(static_cast<std::uint16_t>(two_bytes_at(header, at + 32)));
    std::memcpy(&reinterpret_cast<sockaddr_in6*>(address.data())->sin6_addr, header.data() + at,
                16);
  } else {
    address = endpoint::any(static_cast<std::uint16_t>(two_bytes_at(header, at + 8)));
    std::memcpy(&reinterpret_cast<sockaddr_in*>(address.data())->sin_addr, header.data() + at, 4);
  }
  return address;
}

bool read_whole(std::string_view header, proxy_header& result) noexcept {
  enum : std::uint8_t { local = 0x20, proxied = 0x21 };
  enum : std::uint8_t { unspecified = 0x00, tcp4 = 0x11, tcp6 = 0x21, unix_stream = 0x31 };
  const std::uint8_t command = byte_at(header, 12), family = byte_at(header, 13);
  result.from = proxy_header::origin::proxy;
  if (command == local) return true;  // the rest is to be ignored
  if (command != proxied) return false;
  std::size_t address_bytes = 0;
  switch (family) {
    case unspecified:
      return true;
    case tcp4:
      address_bytes = 12;
      break;
    case tcp6:
      address_bytes = 36;
      break;
    case unix_stream:
      address_bytes = 216;
      break;
    default:
      return false;
  }
  if (header.size() < fixed_bytes + address_bytes) return false;
  if (!check_additions(header, fixed_bytes + address_bytes)) return false;
  if (family == unix_stream) {
    result.from = proxy_header::origin::unnamed;
  } else {
    result.from = proxy_header::origin::address;
    result.client = address_at(header, fixed_bytes, family == tcp6);
  }
  return true;
}

proxy_step read_binary_header(std::string_view came, std::size_t most, proxy_header& to) noexcept {
  const std::size_t begun = std::min(came.size(), signature.size());
  if (came.substr(0, begun) != signature.substr(0, begun)) return bad;
  if (came.size() < fixed_bytes) return {kind::more, fixed_bytes - came.size()};
  const std::size_t whole = fixed_bytes + two_bytes_at(came, 14);
  if (whole > most) return bad;
  if (came.size() < whole) return {kind::more, whole - came.size()};
  return read_whole(came.substr(0, whole), to) ? proxy_step{kind::done, whole} : bad;
}

}  // namespace

proxy_step read_proxy_header(std::string_view came, std::size_t most, proxy_header& to) noexcept {
  if (came.empty()) return {kind::more, shortest_line.size()};
  return came.front() == signature.front() ? read_binary_header(came, most, to)
                                           : read_line_header(came, most, to);
}

}  // namespace troupe::http
