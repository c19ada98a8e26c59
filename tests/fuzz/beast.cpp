// Reads requests by Boost.Beast, the other implementation.
#include "fuzz/framing.hpp"

#if __has_include(<boost/beast/http.hpp>)

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http.hpp>

namespace troupe::test {
namespace {

// A body as a string that grows only when bytes have come.
struct text_body {
  using value_type = std::string;
  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(boost::beast::http::header<isRequest, Fields>&, value_type& to) : to_(to) {}
    void init(const boost::optional<std::uint64_t>&, boost::beast::error_code& failed) {
      failed = {};
    }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::beast::error_code& failed) {
      failed = {};
      std::size_t all = 0;
      for (const auto one : boost::beast::buffers_range_ref(buffers)) {
        to_.append(static_cast<const char*>(one.data()), one.size());
        all += one.size();
      }
      return all;
    }
    void finish(boost::beast::error_code& failed) { failed = {}; }

   private:
    value_type& to_;
  };
};

}  // namespace

bool beast_is_here() noexcept { return true; }

reading by_beast(std::string_view bytes) {
  namespace beast = boost::beast;
  reading all;
  beast::http::request_parser<text_body> parser;
  parser.eager(true);
  parser.header_limit(1 << 20);
  parser.body_limit(std::uint64_t{1} << 62);  // with "none" Beast 1.74 refuses every body
  std::size_t at = 0;
  while (!parser.is_done()) {
    beast::error_code failed;
    const std::size_t taken =
        parser.put(boost::asio::buffer(bytes.data() + at, bytes.size() - at), failed);
    at += taken;
    if (failed == beast::http::error::need_more) return all;
    if (failed) {
      all.refused = true;
      all.reason = failed.message();
      return all;
    }
    if (taken == 0 && !parser.is_done()) return all;
  }
  framed one;
  const auto& message = parser.get();
  one.method = std::string(message.method_string());
  one.target = std::string(message.target());
  one.minor_version = static_cast<int>(message.version() % 10);
  one.body = message.body();
  for (const auto& field : message)
    one.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
  one.end = at;
  all.requests.push_back(std::move(one));
  return all;
}

}  // namespace troupe::test

#else

namespace troupe::test {

bool beast_is_here() noexcept { return false; }
reading by_beast(std::string_view) { return {}; }

}  // namespace troupe::test

#endif
