#include "troupe/io/error.hpp"

#include <cerrno>

namespace troupe {

io_error::io_error(literal operation, const std::string& peer, int number)
    : error(std::string("troupe: ") + operation.text() + (peer.empty() ? "" : " (" + peer + ")") +
            ": " + std::generic_category().message(number)),
      operation_(operation),
      number_(number) {}

std::optional<std::chrono::nanoseconds> io_error::try_again_in() const noexcept {
  switch (number_) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return std::chrono::seconds(1);
    default:
      return std::nullopt;
  }
}

end_of_stream::end_of_stream(const char* operation, const std::string& peer, std::size_t bytes)
    : error(std::string("troupe: ") + operation + " (" + peer + "): the stream ended after " +
            std::to_string(bytes) + " bytes"),
      bytes_(bytes) {}

end_of_file::end_of_file(const char* operation, const std::string& path, std::size_t bytes)
    : error(std::string("troupe: ") + operation + " (" + path + "): the file ended after " +
            std::to_string(bytes) + " bytes"),
      bytes_(bytes) {}

}  // namespace troupe
