// proxy_table: which proxy serves a URL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/http/client/proxies.hpp"
#include "troupe/http/url.hpp"

namespace troupe::http {

struct proxy_server {
  url at;
  std::string authorization;  // "Basic …", or ""
};

// An address of 4 or 16 bytes.
struct numeric_host {
  std::array<std::uint8_t, 16> bytes{};
  std::size_t size = 0;
};

// Thread: any; it does not change.
class proxy_table {
 public:
  // Throws option_error.
  explicit proxy_table(const proxy_settings& given);
  // Null: the target is asked directly.
  const proxy_server* of(const url& target) const;

 private:
  struct exception {
    std::string name;      // "": an address
    numeric_host address;  // with `bits` that count
    std::size_t bits = 0;
    std::uint16_t port = 0;  // 0: each
  };
  void add_exception(std::string_view text);
  static bool matches(const exception& rule, const url& target);

  std::optional<proxy_server> http_, https_, all_;
  std::vector<exception> direct_;
  bool all_direct_ = false;
};

}  // namespace troupe::http
