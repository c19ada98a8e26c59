#include "troupe/io/error.hpp"

namespace troupe {

io_error::io_error(const char* operation, const std::string& peer, int number)
    : error(std::string("troupe: ") + operation + (peer.empty() ? "" : " (" + peer + ")") + ": " +
            std::generic_category().message(number)),
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
