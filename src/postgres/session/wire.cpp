#include "postgres/session/wire.hpp"

#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "postgres/session/refusal.hpp"
#include "troupe/actor/blocking.hpp"
#include "troupe/database/error.hpp"
#include "troupe/io/ready.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::postgres {
namespace {

using database::failure;
using settings = std::map<std::string, std::string>;

struct free_options {
  void operator()(PQconninfoOption* object) const noexcept { PQconninfoFree(object); }
};
using found_options = std::unique_ptr<PQconninfoOption, free_options>;

settings settings_of(const PQconninfoOption* option) {
  settings all;
  for (; option != nullptr && option->keyword != nullptr; ++option) {
    if (option->val != nullptr) all[option->keyword] = option->val;
  }
  return all;
}

[[noreturn]] void refuse_target(std::string reason) {
  while (!reason.empty() && reason.back() == '\n') reason.pop_back();
  throw database::error(failure::bad_target, 0,
                        "troupe: postgres: the target is malformed: " + reason);
}

// The target alone: all that libpq is given. For the rest it asks the environment, the file of
// services and the file of passwords itself, in its own order.
settings given_by(const std::string& target) {
  if (target.find('\0') != std::string::npos) refuse_target("it has a zero byte");
  char* wrong = nullptr;
  const found_options given(PQconninfoParse(target.c_str(), &wrong));
  const std::unique_ptr<char, decltype(&PQfreemem)> freed(wrong, &PQfreemem);
  if (given == nullptr) refuse_target(wrong == nullptr ? "no memory" : wrong);
  return settings_of(given.get());
}

PGconn* start(const settings& chosen) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : chosen) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  PGconn* const begun = PQconnectStartParams(keys.data(), values.data(), 0);
  if (begun == nullptr) throw std::bad_alloc();
  return begun;
}

// The settings that libpq finds for a target, and the reason for which it opened no connection.
struct look_up {
  settings found;
  std::string reason;
};

// Gives `option` a value that libpq refuses, so that it looks everything up but does not connect.
look_up looked_up(settings given, const char* option) {
  given[option] = "none of them";
  const std::unique_ptr<PGconn, decltype(&PQfinish)> asked(start(given), &PQfinish);
  return {settings_of(found_options(PQconninfo(asked.get())).get()), PQerrorMessage(asked.get())};
}

// A wire is not encrypted by GSSAPI. A target that insists on that must not get less. The value is
// the one that libpq finds in the target, the environment or the file of services; the check of
// sslmode ends its start before the check of gssencmode.
void check_gss_encryption(const settings& given) {
  const settings found = looked_up(given, "sslmode").found;
  const auto mode = found.find("gssencmode");
  if (mode == found.end() || mode->second == "disable" || mode->second == "prefer") return;
  refuse_target("gssencmode=" + mode->second +
                ": this client does not encrypt by GSSAPI; set it to prefer, and use sslmode");
}

// All that libpq finds for the target: it checks all of it before it resolves a name or opens a
// socket, and ends at a value that it does not know. That is the last one which it checks of those
// that are used here.
settings resolved(const settings& given) {
  check_gss_encryption(given);
  const look_up all = looked_up(given, "gssencmode");
  if (all.reason.find("gssencmode") == std::string::npos) refuse_target(all.reason);
  return all.found;
}

std::string value_of(const settings& all, const char* name) {
  const auto found = all.find(name);
  return found == all.end() ? std::string() : found->second;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) c == ',' ? void(parts.emplace_back()) : parts.back().push_back(c);
  return parts;
}

// One host to try; with an address unless it is a socket of this machine.
struct place {
  std::string host, address, port;
};

// libpq finds a wrong port only when it connects, as it would an unreachable server.
void check_port(const std::string& port) {
  unsigned number = 0;
  const char* const end = port.data() + port.size();
  const auto read = std::from_chars(port.data(), end, number);
  constexpr unsigned port_max = 65'535;
  if (port.empty() || (read.ec == std::errc() && read.ptr == end && number - 1 < port_max)) return;
  refuse_target("port=" + port + ": a port is a number from 1 to 65535");
}

std::vector<place> places_of(const settings& all) {
  const std::vector<std::string> hosts = split(value_of(all, "host")),
                                 addresses = split(value_of(all, "hostaddr")),
                                 ports = split(value_of(all, "port"));
  std::vector<place> places(std::max(hosts.size(), addresses.size()));
  const auto at = [](const std::vector<std::string>& list, std::size_t i) {
    if (list.size() == 1) return list.front();
    return i < list.size() ? list[i] : std::string();
  };
  for (const std::string& port : ports) check_port(port);
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = {i < hosts.size() ? hosts[i] : "", i < addresses.size() ? addresses[i] : "",
                 at(ports, i)};
  }
  return places;
}

bool needs_address(const place& candidate) noexcept {
  return candidate.address.empty() && !candidate.host.empty() && candidate.host.front() != '/' &&
         candidate.host.front() != '@';
}

std::vector<std::string> addresses_of(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  if (failed != 0)
    throw database::error(
        failure::unreachable, failed,
        "troupe: postgres: the host `" + host + "` has no address: " + ::gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> freed(found, &::freeaddrinfo);
  std::vector<std::string> all;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0)
      all.emplace_back(text.data());
  }
  return all;
}

// The settings requested by the target, and the settings that libpq has found for it.
struct request_for_wire {
  settings given, found;
};

PGconn* start(const request_for_wire& wanted, const place& at, const char* role) {
  settings chosen = wanted.given;
  chosen["host"] = at.host;
  chosen["hostaddr"] = at.address;
  chosen["port"] = at.port;
  chosen["gssencmode"] = "disable";
  chosen["client_encoding"] = "UTF8";
  if (role != nullptr) chosen["target_session_attrs"] = role;
  // A server that disappears silently is noticed within 30 s unless the target says otherwise,
  // even by PQcancel, which blocks a thread until the server closes the connection.
  for (const auto& [name, value] :
       {std::pair("keepalives_idle", "10"), std::pair("keepalives_interval", "5"),
        std::pair("keepalives_count", "4"), std::pair("tcp_user_timeout", "30000")}) {
    if (value_of(wanted.found, name).empty()) chosen[name] = value;
  }
  return start(chosen);
}

// How long one address may take: as with libpq, which takes 0 and less for no limit.
std::chrono::nanoseconds connect_timeout_of(const settings& found) {
  const long seconds = std::strtol(value_of(found, "connect_timeout").c_str(), nullptr, 10);
  constexpr long least = 2, most = 1'000'000;
  if (seconds <= 0) return std::chrono::seconds(most);
  return std::chrono::seconds(std::clamp(seconds, least, most));
}

[[noreturn]] void refuse(PGconn* pg) { throw no_connection(PQerrorMessage(pg)); }

// The bytes of a notice: its type, its length, a zero byte at its end, and of each field a letter
// and a text with its end.
std::size_t bytes_of(const PGresult* notice) noexcept {
  constexpr std::string_view letters = "SVCMDHPpqWstcdnFLR";
  std::size_t bytes = 6;
  for (const char letter : letters) {
    if (const char* const text = PQresultErrorField(notice, letter)) bytes += std::strlen(text) + 2;
  }
  return bytes;
}
void drop_notice(void* of_wire, const PGresult* notice) noexcept {
  static_cast<wire*>(of_wire)->note_message(bytes_of(notice));
}

// OpenSSL may have decrypted more than libpq has read; the socket does not show this.
bool has_more_inside(PGconn* pg) noexcept {
  if (PQsslInUse(pg) == 0) return false;
  const auto* const ssl = static_cast<const SSL*>(PQsslStruct(pg, "OpenSSL"));
  return ssl != nullptr && SSL_pending(ssl) > 0;
}

constexpr int peek_offset_most = INT_MAX;

void set_peek_offset(int fd, int offset) noexcept {
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset));
}

// The bytes that were ever taken out of a socket of TCP; nothing for another socket. Bytes that
// arrive meanwhile may be missing: the next call counts them.
std::optional<std::uint64_t> taken_from_tcp(int fd) noexcept {
  tcp_info seen{};
  socklen_t size = sizeof seen;
  int waits = 0;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &seen, &size) != 0 ||
      ::ioctl(fd, FIONREAD, &waits) != 0)
    return std::nullopt;
  const std::uint64_t came = seen.tcpi_bytes_received;
  return came - std::min(came, static_cast<std::uint64_t>(waits));
}

task<std::shared_ptr<wire>> try_place(const request_for_wire& wanted, place at, const char* role,
                                      std::chrono::nanoseconds until) {
  const auto opened = std::make_shared<wire>(start(wanted, at, role));
  PQsetNoticeReceiver(opened->pg, &drop_notice, opened.get());
  const PGVerbosity chosen = PQsetErrorVerbosity(opened->pg, PQERRORS_VERBOSE);
  PostgresPollingStatusType wants = PGRES_POLLING_WRITING;
  if (PQstatus(opened->pg) == CONNECTION_BAD) refuse(opened->pg);
  // A server greets in a few KiB. With 16 MiB a flood reached the connection's time limit first.
  constexpr std::size_t greeting_max = 1024 * 1024;
  for (std::size_t greeting = 0;;) {
    // libpq may have closed this socket for another one at each step.
    const int fd = PQsocket(opened->pg);
    if (wants == PGRES_POLLING_READING) {
      co_await readable(fd).timeout(until - now());
    } else {
      co_await writable(fd).timeout(until - now());
    }
    taken_bytes taken(opened->pg);  // of this step: the next socket may have the same number
    taken.begin();
    wants = PQconnectPoll(opened->pg);
    if (PQsocket(opened->pg) == fd) greeting += taken.end();
    if (greeting > greeting_max)
      throw no_connection("the server sends without end; look whether it is a PostgreSQL server");
    if (wants == PGRES_POLLING_OK) break;
    if (wants == PGRES_POLLING_FAILED) refuse(opened->pg);
  }
  PQsetErrorVerbosity(opened->pg, chosen);
  if (PQsetnonblocking(opened->pg, 1) != 0 || PQenterPipelineMode(opened->pg) == 0)
    refuse(opened->pg);
  co_return opened;
}

task<std::vector<place>> resolve(std::vector<place> places, std::chrono::nanoseconds until) {
  std::vector<place> all;
  std::exception_ptr failed;
  for (const place& candidate : places) {
    if (!needs_address(candidate)) {
      all.push_back(candidate);
      continue;
    }
    try {
      auto asks = [host = candidate.host] { return addresses_of(host); };
      auto later = blocking(std::move(asks));
      const auto found = co_await std::move(later).timeout(until - now());
      for (const std::string& address : found)
        all.push_back({candidate.host, address, candidate.port});
    } catch (const database::error&) {
      failed = std::current_exception();
    }
  }
  if (all.empty() && failed != nullptr) std::rethrow_exception(failed);
  co_return all;
}

// Tries each place; null if none has answered in time.
task<std::shared_ptr<wire>> try_places(const request_for_wire& wanted,
                                       const std::vector<place>& places, const char* role,
                                       std::chrono::nanoseconds until) {
  std::exception_ptr failed;
  for (std::size_t i = 0; i < places.size(); ++i) {
    // An address that does not answer leaves time for the others.
    const auto share = std::min((until - now()) / static_cast<std::int64_t>(places.size() - i),
                                connect_timeout_of(wanted.found));
    try {
      task<std::shared_ptr<wire>> tries = try_place(wanted, places[i], role, now() + share);
      co_return co_await std::move(tries);
    } catch (const database::error&) {
      failed = std::current_exception();
    } catch (const timed_out&) {
      failed = nullptr;
    }
  }
  if (failed != nullptr) std::rethrow_exception(failed);
  co_return nullptr;
}

// A standby is preferred: the servers are asked for one first, and then for any, as libpq does it
// with a list of its own.
task<std::shared_ptr<wire>> try_standbys_first(const request_for_wire& wanted,
                                               const std::vector<place>& places,
                                               std::chrono::nanoseconds until) {
  try {
    const auto half = now() + (until - now()) / 2;
    task<std::shared_ptr<wire>> tries = try_places(wanted, places, "standby", half);
    std::shared_ptr<wire> found = co_await std::move(tries);
    if (found != nullptr) co_return found;
  } catch (const database::error&) {
  }
  task<std::shared_ptr<wire>> tries = try_places(wanted, places, "any", until);
  co_return co_await std::move(tries);
}

}  // namespace

void taken_bytes::begin() noexcept {
  const int fd = PQsocket(pg_);
  if (!total_) total_ = taken_from_tcp(fd);
  if (!total_) set_peek_offset(fd, peek_offset_most);
}

std::size_t taken_bytes::end() noexcept {
  const int fd = PQsocket(pg_);
  if (total_) {
    // Never less than before: bytes that arrive in that function would be counted twice.
    const std::uint64_t before = *total_;
    total_ = std::max(before, taken_from_tcp(fd).value_or(before));
    return static_cast<std::size_t>(*total_ - before);
  }
  // A read out of a Unix socket lowers the offset by its bytes.
  int left = peek_offset_most;
  socklen_t size = sizeof left;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &left, &size) != 0 || left < 0) return 0;
  set_peek_offset(fd, -1);
  return static_cast<std::size_t>(peek_offset_most - left);
}

wire::input wire::read(std::size_t most) noexcept {
  constexpr int rounds_max = 16;
  has_more = false;
  for (int round = 0; round < rounds_max; ++round) {
    taken_.begin();
    const bool goes_on = PQconsumeInput(pg) == 1;
    unanswered_ += taken_.end();
    if (!goes_on) return input::broken;
    // Before libpq looks at an answer: its rows are to come one by one.
    PQsetSingleRowMode(pg);
    static_cast<void>(PQisBusy(pg));
    if (unanswered_ > most) return input::flooded;
    has_more = has_more_inside(pg);
    if (!has_more) return input::all;
  }
  return input::more;
}

task<std::shared_ptr<wire>> open_wire(std::string target, std::chrono::nanoseconds at_most) {
  const std::chrono::nanoseconds until = time_span(at_most).after(now());
  request_for_wire wanted;
  wanted.given = given_by(target);
  wanted.found = resolved(wanted.given);
  try {
    task<std::vector<place>> resolves = resolve(places_of(wanted.found), until);
    const std::vector<place> places = co_await std::move(resolves);
    const bool prefers = value_of(wanted.found, "target_session_attrs") == "prefer-standby";
    task<std::shared_ptr<wire>> tries = prefers ? try_standbys_first(wanted, places, until)
                                                : try_places(wanted, places, nullptr, until);
    std::shared_ptr<wire> found = co_await std::move(tries);
    if (found != nullptr) co_return found;
  } catch (const timed_out&) {
  }
  throw database::error(
      failure::unreachable, 0,
      "troupe: postgres: no connection: the server has not answered in time; look whether "
      "it runs, or raise connect_timeout");
}

}  // namespace troupe::postgres
