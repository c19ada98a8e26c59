// jar_state: the cookies of a cookie_jar, by domain.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "http/client/cookies/set_cookie.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/http/client/cookie_jar.hpp"

namespace troupe::http {

// Threads: any, through the mutex.
// Invariants
//   J1  no two cookies have the same name, domain, path and host_only.
//   J2  `count_` is the number of cookies, at most limits.cookies; no domain has more than
//       limits.per_domain, and none is without a cookie.
class jar_state {
 public:
  using time_point = cookie_jar::time_point;
  explicit jar_state(cookie_limits given);

  bool store(const url& from, const set_cookie& got, time_point at);
  // A cookie of a saved text. Returns false if no server could have set it.
  bool add(kept_cookie cookie, time_point at);
  std::string field_for(const url& target, request_site site, std::string_view method,
                        time_point at);
  std::vector<kept_cookie> all(time_point at);
  std::size_t size();
  void clear();
  void end_session();

  const cookie_limits limits;

 private:
  struct entry : kept_cookie {
    std::uint64_t order = 0;  // larger: set later
    std::uint64_t used = 0;   // larger: sent or set later
  };
  using entries = std::vector<entry>;

  // May a server at that host, or a saved text, own a cookie for this domain?
  bool may_own(const std::string& host, std::string& domain) const;
  bool hides_secure(const std::string& name, const std::string& domain, std::string_view path);
  static std::size_t count_same(const entries& list, const entry& cookie) noexcept;
  bool put(kept_cookie&& cookie, time_point at);
  void make_room(const std::string& domain, time_point at);
  void erase(const std::string& domain, std::size_t index);
  template <class Drops>
  void erase_if(Drops drops);

  base::small_mutex mutex_;
  std::map<std::string, entries, std::less<>> by_domain_;
  std::size_t count_ = 0;
  std::uint64_t clock_ = 0;  // the last `order` or `used`
};

// Whether the host is the domain or below it (RFC 6265bis, 5.1.3). Both in lower case.
bool is_within_domain(std::string_view host, std::string_view domain) noexcept;
// Whether the host is an address, in brackets or not.
bool is_address(std::string_view host) noexcept;

}  // namespace troupe::http
