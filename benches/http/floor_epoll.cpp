// The floor: a bare loop over epoll that only looks for the end of a request, and answers
// everything that came together.
//
// floor BENCH FOLDER. For http_static it opens the file that the first line names, without checking
// where the path leads.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "../floor/loopback.hpp"

namespace {

constexpr std::string_view answer =
    "HTTP/1.1 200 OK\r\nServer: floor\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: "
    "text/plain\r\n"
    "Content-Length: 13\r\n\r\nHello, World!";

int files = -1;  // the folder, for http_static
std::string out;
std::unordered_map<int, std::string> begun;  // requests that have not come whole

bool send_all(int fd, std::string_view bytes, int flags) {
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | flags) ==
         static_cast<ssize_t>(bytes.size());
}

// "GET /d1/f2.txt HTTP/1.1"
bool send_file(int fd, std::string_view request) {
  const std::string path(request.substr(5, request.find(' ', 5) - 5));
  const int file = ::openat(files, path.c_str(), O_RDONLY);
  struct stat is {};
  if (file < 0 || ::fstat(file, &is) != 0) return false;
  std::array<char, 256> head;
  const int bytes =
      std::snprintf(head.data(), head.size(),
                    "HTTP/1.1 200 OK\r\nServer: floor\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                    "Content-Type: text/plain\r\n"
                    "Content-Length: %ld\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
                    static_cast<long>(is.st_size));
  const bool sent =
      send_all(fd, {head.data(), static_cast<std::size_t>(bytes)}, MSG_MORE) &&
      ::sendfile(fd, file, nullptr, static_cast<std::size_t>(is.st_size)) == is.st_size;
  ::close(file);
  return sent;
}

// Returns the rest of `text`. Sets `well` to false when an answer could not be sent.
std::string_view answer_all(int fd, std::string_view text, bool& well) {
  out.clear();
  for (std::size_t end; well && (end = text.find("\r\n\r\n")) != std::string_view::npos;
       text.remove_prefix(end + 4)) {
    if (files >= 0) {
      well = send_file(fd, text);
    } else {
      out += answer;
    }
  }
  if (!out.empty()) well = send_all(fd, out, 0);
  return text;
}

bool serve(int fd) {
  static std::array<char, 65'536> buffer;
  const ssize_t part = ::recv(fd, buffer.data(), buffer.size(), 0);
  if (part <= 0) return false;
  const std::string_view came(buffer.data(), static_cast<std::size_t>(part));
  bool well = true;
  const auto had = begun.find(fd);
  if (had == begun.end()) {
    const std::string_view rest = answer_all(fd, came, well);
    if (!rest.empty()) begun.emplace(fd, rest);
  } else {
    const std::string text = std::exchange(had->second, {}) + std::string(came);
    begun.erase(had);
    const std::string_view rest = answer_all(fd, text, well);
    if (!rest.empty()) begun.emplace(fd, rest);
  }
  return well;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (std::string_view(argv[1]) == "http_static") {
    files = ::open((std::string(argv[2]) + "/files").c_str(), O_RDONLY | O_DIRECTORY);
    if (files < 0) return 1;
  }
  const int listener = loopback::listen_and_tell(SOCK_NONBLOCK);
  if (listener < 0) return 1;
  // Without edges: what one read leaves is read in the next round.
  loopback::serve_by_epoll(listener, EPOLLIN, [](int fd) {
    const bool goes_on = serve(fd);
    if (!goes_on) begun.erase(fd);
    return goes_on;
  });
}
