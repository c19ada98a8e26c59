#include "troupe/io/error.hpp"

#include <cerrno>
#include <string_view>

namespace troupe {

// The verdicts of io: whose fault each error is (docs/protocols/verdicts.md).
verdict io_error::judged() const noexcept {
  using enum verdict::party;
  using enum verdict::effect;
  using enum verdict::again;
  const bool connects = std::string_view(operation()) == "connect";
  switch (number_) {
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
      return {upstream, connects ? none : unknown, later};
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ETIMEDOUT:
      if (connects) return {upstream, none, later};
      return {peer, unknown, later};
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return {us, none, later};
    case ENOSPC:
    case EDQUOT:
      return {us, unknown, later};
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENOTEMPTY:
    case ENAMETOOLONG:
    case ELOOP:
    case EXDEV:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
      return {caller, none, never};
    default:
      return {us, unknown, never};
  }
}
// As a connection that was reset: the peer has closed it, whether by FIN or by RST.
verdict end_of_stream::judged() const noexcept {
  return {verdict::party::peer, verdict::effect::unknown, verdict::again::later};
}
verdict end_of_file::judged() const noexcept {
  return {verdict::party::caller, verdict::effect::unknown, verdict::again::never};
}

io_error::io_error(literal operation, const std::string& peer, int number)
    : error(std::string("troupe: ") + operation.text() + (peer.empty() ? "" : " (" + peer + ")") +
            ": " + std::generic_category().message(number)),
      operation_(operation),
      number_(number) {}

end_of_stream::end_of_stream(const char* operation, const std::string& peer, std::size_t bytes)
    : error(std::string("troupe: ") + operation + " (" + peer + "): the stream ended after " +
            std::to_string(bytes) + " bytes"),
      bytes_(bytes) {}

end_of_file::end_of_file(const char* operation, const std::string& path, std::size_t bytes)
    : error(std::string("troupe: ") + operation + " (" + path + "): the file ended after " +
            std::to_string(bytes) + " bytes"),
      bytes_(bytes) {}

}  // namespace troupe
