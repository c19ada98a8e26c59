#include "postgres/wire.hpp"

#include <netdb.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "troupe/actor/blocking.hpp"
#include "troupe/database/error.hpp"
#include "troupe/io/ready.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::postgres {
namespace {

using database::error;
using database::failure;
using settings = std::map<std::string, std::string>;

struct free_options {
  void operator()(PQconninfoOption* of) const noexcept { PQconninfoFree(of); }
};
using found_options = std::unique_ptr<PQconninfoOption, free_options>;

void add(settings& to, const PQconninfoOption* of) {
  for (; of != nullptr && of->keyword != nullptr; ++of) {
    if (of->val != nullptr) to[of->keyword] = of->val;
  }
}

// What libpq itself would use: the target, and for the rest the environment.
settings settings_of(const std::string& target) {
  char* wrong = nullptr;
  const found_options given(PQconninfoParse(target.c_str(), &wrong));
  const std::unique_ptr<char, decltype(&PQfreemem)> freed(wrong, &PQfreemem);
  if (given == nullptr)
    throw error(failure::unreachable, 0,
                "troupe: postgres: the target is not understood: " +
                    std::string(wrong == nullptr ? "no memory" : wrong));
  settings all;
  add(all, found_options(PQconndefaults()).get());
  add(all, given.get());
  return all;
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

std::vector<place> places_of(const settings& all) {
  const auto value = [&](const char* name) {
    const auto found = all.find(name);
    return found == all.end() ? std::string() : found->second;
  };
  const std::vector<std::string> hosts = split(value("host")), addresses = split(value("hostaddr")),
                                 ports = split(value("port"));
  std::vector<place> places(std::max(hosts.size(), addresses.size()));
  const auto at = [](const std::vector<std::string>& of, std::size_t i) {
    if (of.size() == 1) return of.front();
    return i < of.size() ? of[i] : std::string();
  };
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = {i < hosts.size() ? hosts[i] : "", i < addresses.size() ? addresses[i] : "",
                 at(ports, i)};
  }
  return places;
}

bool needs_address(const place& of) noexcept {
  return of.address.empty() && !of.host.empty() && of.host.front() != '/' && of.host.front() != '@';
}

std::vector<std::string> addresses_of(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  if (failed != 0)
    throw error(
        failure::unreachable, failed,
        "troupe: postgres: the host `" + host + "` has no address: " + ::gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> freed(found, &::freeaddrinfo);
  std::vector<std::string> all;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0)
      all.emplace_back(text.data());
  }
  return all;
}

PGconn* start(const settings& all, const place& at) {
  settings chosen = all;
  chosen["host"] = at.host;
  chosen["hostaddr"] = at.address;
  chosen["port"] = at.port;
  chosen["gssencmode"] = "disable";
  chosen["client_encoding"] = "UTF8";
  // A server that has gone without a word is noticed within 30 s unless the target says otherwise,
  // also by PQcancel, which blocks a thread until the server closes the connection.
  chosen.emplace("keepalives_idle", "10");
  chosen.emplace("keepalives_interval", "5");
  chosen.emplace("keepalives_count", "4");
  chosen.emplace("tcp_user_timeout", "30000");
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : chosen) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  PGconn* const made = PQconnectStartParams(keys.data(), values.data(), 0);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

[[noreturn]] void refuse(PGconn* pg) {
  std::string reason = PQerrorMessage(pg);
  while (!reason.empty() && reason.back() == '\n') reason.pop_back();
  throw error(failure::unreachable, 0, "troupe: postgres: no connection: " + reason);
}

void ignore_notice(void*, const PGresult*) noexcept {}

task<std::shared_ptr<wire>> try_place(const settings& all, place at,
                                      std::chrono::nanoseconds until) {
  const auto made = std::make_shared<wire>(start(all, at));
  PQsetNoticeReceiver(made->pg, &ignore_notice, nullptr);
  PostgresPollingStatusType wants = PGRES_POLLING_WRITING;
  if (PQstatus(made->pg) == CONNECTION_BAD) refuse(made->pg);
  for (;;) {
    // libpq may have closed this socket for another one at each step.
    const int fd = PQsocket(made->pg);
    if (wants == PGRES_POLLING_READING) {
      co_await readable(fd).timeout(until - now());
    } else {
      co_await writable(fd).timeout(until - now());
    }
    wants = PQconnectPoll(made->pg);
    if (wants == PGRES_POLLING_OK) break;
    if (wants == PGRES_POLLING_FAILED) refuse(made->pg);
  }
  if (PQsetnonblocking(made->pg, 1) != 0 || PQenterPipelineMode(made->pg) == 0) refuse(made->pg);
  co_return made;
}

task<std::vector<place>> resolve(std::vector<place> places, std::chrono::nanoseconds until) {
  std::vector<place> all;
  std::exception_ptr failed;
  for (const place& one : places) {
    if (!needs_address(one)) {
      all.push_back(one);
      continue;
    }
    try {
      auto asks = [host = one.host] { return addresses_of(host); };
      auto later = blocking(std::move(asks));
      const auto found = co_await std::move(later).timeout(until - now());
      for (const std::string& address : found) all.push_back({one.host, address, one.port});
    } catch (const error&) {
      failed = std::current_exception();
    }
  }
  if (all.empty() && failed != nullptr) std::rethrow_exception(failed);
  co_return all;
}

}  // namespace

task<std::shared_ptr<wire>> open_wire(std::string target, std::chrono::nanoseconds at_most) {
  const std::chrono::nanoseconds until = now() + at_most;
  const settings all = settings_of(target);
  std::exception_ptr failed;
  try {
    task<std::vector<place>> resolved = resolve(places_of(all), until);
    const std::vector<place> places = co_await std::move(resolved);
    for (std::size_t i = 0; i < places.size(); ++i) {
      // An address that does not answer leaves time for the others.
      const auto share = (until - now()) / static_cast<std::int64_t>(places.size() - i);
      try {
        task<std::shared_ptr<wire>> tries = try_place(all, places[i], now() + share);
        co_return co_await std::move(tries);
      } catch (const error&) {
        failed = std::current_exception();
      } catch (const timed_out&) {
        failed = nullptr;
      }
    }
  } catch (const timed_out&) {
    failed = nullptr;
  }
  if (failed != nullptr) std::rethrow_exception(failed);
  throw error(failure::unreachable, 0,
              "troupe: postgres: no connection: the server has not answered in time; look whether "
              "it runs, or raise connect_timeout");
}

}  // namespace troupe::postgres
