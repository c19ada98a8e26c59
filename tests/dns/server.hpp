// A DNS server for the tests, on 127.0.0.1, over UDP and TCP. The first label of the name decides
// what it answers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "support/io.hpp"
#include "troupe/dns/resolver.hpp"

namespace troupe::test {

struct dns_question {
  std::string name;  // in lower case
  std::uint16_t type = 0;
  std::string bytes;  // the question as it was sent
};

inline constexpr std::uint16_t type_a = 1, type_cname = 5, type_aaaa = 28;

inline std::string two_bytes(unsigned value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline dns_question question_of(std::string_view packet) {
  dns_question asked;
  std::size_t at = 12;
  while (at < packet.size() && packet[at] != 0) {
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(packet[at]));
    if (!asked.name.empty()) asked.name += '.';
    for (const char c : packet.substr(at + 1, length))
      asked.name += static_cast<char>(std::tolower(c));
    at += length + 1;
  }
  if (at + 5 > packet.size()) return asked;
  asked.type = static_cast<std::uint16_t>(static_cast<unsigned char>(packet[at + 2]));
  asked.bytes = std::string(packet.substr(12, at + 5 - 12));
  return asked;
}

inline std::string encoded(std::string_view name) {
  std::string bytes;
  while (!name.empty()) {
    const std::string_view label = name.substr(0, name.find('.'));
    bytes += static_cast<char>(label.size());
    bytes += label;
    name.remove_prefix(std::min(name.size(), label.size() + 1));
  }
  return bytes + '\0';
}

// A record for the name in the question (by a pointer to it), or for `owner`.
inline std::string record(std::uint16_t type, const std::string& data,
                          const std::string& owner = "\xc0\x0c") {
  return owner + two_bytes(type) + two_bytes(1) + std::string("\0\0\0\x3c", 4) +
         two_bytes(static_cast<unsigned>(data.size())) + data;
}
inline std::string v4_data(unsigned last) { return {'\x7f', 0, 0, static_cast<char>(last)}; }
inline std::string v6_data(unsigned last) {
  return std::string(15, '\0') + static_cast<char>(last);
}

inline std::string reply(std::string_view packet, const dns_question& asked, unsigned flags,
                         int records, const std::string& body) {
  return std::string(packet.substr(0, 2)) + two_bytes(0x8180 | flags) + two_bytes(1) +
         two_bytes(static_cast<unsigned>(records)) + std::string(4, '\0') + asked.bytes + body;
}

class dns_server {
 public:
  // Call it in a task. `keep` counts the questions. Both must live as long as the program runs.
  void start(runtime& rt) {
    udp_options weak;
    weak.weak = true;
    listen_options also;
    also.weak = true;
    tcp_listener listener;
    // Looks for a port that is free for both protocols.
    while (!socket_.is_open()) {
      listener = tcp_listener::listen(endpoint::loopback(0), also);
      at_ = listener.local();
      try {
        socket_ = udp_socket::bind(at_, weak);
      } catch (const io_error&) {
      }
    }
    rt.spawn(serve_packets());
    rt.spawn(serve_streams(rt, std::move(listener)));
  }
  const endpoint& at() const { return at_; }
  int asked_for(const std::string& name) {
    std::lock_guard lock(mutex_);
    return seen_[name];
  }

 private:
  task<> serve_packets() {
    std::array<char, 1500> buffer;
    for (;;) {
      const datagram came = co_await socket_.receive(buffer);
      const std::string packet(buffer.data(), came.bytes);
      for (const std::string& one : answers(packet, false)) co_await socket_.send(one, came.from);
    }
  }
  task<> serve_streams(runtime& rt, tcp_listener listener) {
    for (;;) {
      tcp_stream peer = co_await listener.accept();
      rt.spawn(serve_stream(std::move(peer)));
    }
  }
  task<> serve_stream(tcp_stream peer) {
    std::array<char, 1500> buffer;
    try {
      for (;;) {
        co_await peer.read_exact(std::span<char>(buffer.data(), 2));
        const std::size_t bytes = static_cast<std::size_t>(static_cast<unsigned char>(buffer[1]));
        co_await peer.read_exact(std::span<char>(buffer.data(), bytes));
        const std::string packet(buffer.data(), bytes);
        for (const std::string& one : answers(packet, true)) {
          co_await peer.write_all(two_bytes(static_cast<unsigned>(one.size())) + one);
        }
      }
    } catch (const error&) {  // the resolver closes the connection when it has its answer
    }
  }

  std::vector<std::string> answers(const std::string& packet, bool by_stream) {
    const dns_question asked = question_of(packet);
    int times = 0;
    {
      std::lock_guard lock(mutex_);
      times =
          ++seen_[asked.name + (asked.type == type_a ? "/a" : "/aaaa") + (by_stream ? "/tcp" : "")];
    }
    const bool v4 = asked.type == type_a;
    const std::string kind = asked.name.substr(0, asked.name.find('.'));
    const std::string address = v4 ? record(type_a, v4_data(1)) : record(type_aaaa, v6_data(1));
    const std::string good = reply(packet, asked, 0, 1, address);
    if (kind == "both") return {good};
    if (kind == "v4")
      return {v4 ? reply(packet, asked, 0, 2, address + record(type_a, v4_data(2)))
                 : reply(packet, asked, 0, 0, "")};
    if (kind == "v6") return {v4 ? reply(packet, asked, 0, 0, "") : good};
    if (kind == "alias") {
      const std::string to = encoded("both.test");
      const std::string there =
          v4 ? record(type_a, v4_data(7), to) : record(type_aaaa, v6_data(1), to);
      return {reply(packet, asked, 0, 2, record(type_cname, to) + there)};
    }
    if (kind == "loop") return {reply(packet, asked, 0, 1, record(type_cname, "\xc0\x0c"))};
    if (kind == "empty") return {reply(packet, asked, 0, 0, "")};
    if (kind == "missing") return {reply(packet, asked, 3, 0, "")};
    if (kind == "broken") return {reply(packet, asked, 2, 0, "")};
    if (kind == "refused") return {reply(packet, asked, 5, 0, "")};
    if (kind == "big") return {by_stream ? good : reply(packet, asked, 0x0200, 0, "")};
    if (kind == "bigsilent")
      return by_stream ? std::vector<std::string>{}
                       : std::vector{reply(packet, asked, 0x0200, 0, "")};
    if (kind == "late") return times > 1 ? std::vector{good} : std::vector<std::string>{};
    if (kind == "garbage") return {std::string(packet.substr(0, 2)) + std::string(40, '\xee')};
    if (kind == "short") return {std::string(packet.substr(0, 3)), good};
    if (kind == "lies") return {reply(packet, asked, 0, 9, address.substr(0, 11))};
    if (kind == "wrongid") {
      std::string forged = reply(packet, asked, 0, 1,
                                 v4 ? record(type_a, v4_data(66)) : record(type_aaaa, v6_data(66)));
      forged[0] = static_cast<char>(forged[0] ^ 0x55);
      return {forged, good};
    }
    if (kind == "wrongname") {
      dns_question other = asked;
      other.bytes[1] = 'x';
      return {reply(packet, other, 0, 1,
                    v4 ? record(type_a, v4_data(66)) : record(type_aaaa, v6_data(66))),
              good};
    }
    return {};  // for instance "silent"
  }

  udp_socket socket_;
  endpoint at_;
  std::mutex mutex_;
  std::map<std::string, int> seen_;
};

}  // namespace troupe::test
