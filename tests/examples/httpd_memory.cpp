// In the steady state, the handlers of httpd allocate nothing from the general heap for a request.
// SQLite has a heap of its own (SqliteMemory); if that grows, it counts as well.
#define main httpd_main
#include "../../examples/httpd.cpp"
#undef main

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

constinit std::atomic<long> allocations{0};
constinit thread_local bool is_client = false;

void count() noexcept {
  // order: relaxed  a count, read when the server is idle
  if (!is_client) allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

extern "C" {
void* malloc(std::size_t bytes) noexcept {
  count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) noexcept {
  count();
  return __libc_calloc(number, bytes);
}
void* realloc(void* block, std::size_t bytes) noexcept {
  count();
  return __libc_realloc(block, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** to, std::size_t alignment, std::size_t bytes) noexcept {
  count();
  *to = __libc_memalign(alignment, bytes);
  return *to == nullptr ? ENOMEM : 0;
}
}

namespace {

// A client on a thread of its own that only makes system calls.
class PlainClient {
 public:
  explicit PlainClient(const troupe::endpoint& at) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (::connect(fd_, at.data(), at.size()) != 0) std::abort();
  }
  PlainClient(const PlainClient&) = delete;
  ~PlainClient() { ::close(fd_); }
  // Returns true if the answer was 200 with its whole body.
  bool ask(const std::string& request) {
    if (::send(fd_, request.data(), request.size(), 0) != static_cast<ssize_t>(request.size()))
      return false;
    std::string got;
    for (std::size_t wanted = 0; wanted == 0 || got.size() < wanted;) {
      std::array<char, 65536> part;
      const ssize_t bytes = ::recv(fd_, part.data(), part.size(), 0);
      if (bytes <= 0) return false;
      got.append(part.data(), static_cast<std::size_t>(bytes));
      const std::size_t end = got.find("\r\n\r\n"), length = got.find("Content-Length: ");
      if (end != std::string::npos && length < end)
        wanted = end + 4 + std::stoul(got.substr(length + 16));
    }
    return got.starts_with("HTTP/1.1 200 ");
  }

 private:
  int fd_;
};

bool none(const std::map<std::string, long>& grown) {
  return std::ranges::all_of(grown, [](const auto& one) { return one.second == 0; });
}

class httpd_memory : public testing::TestWithParam<troupe::io_backend> {};

TEST_P(httpd_memory, no_steady_request_takes_any_of_the_general_heap) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("troupe_httpd_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "a_folder_with_quite_a_long_name");
  const std::string small = "/a_folder_with_quite_a_long_name/small.txt", large = "/large.bin";
  std::ofstream(folder.string() + small) << std::string(4'000, 'x');
  std::ofstream(folder.string() + large) << std::string(200'000, 'x');

  troupe::runtime_options options;
  options.workers = 1;
  options.io = GetParam();
  troupe::runtime rt(options);
  http::server web(make_routes(folder.string(),
                               rt.spawn<Database>(troupe::pinned("database"), ":memory:"),
                               rt.spawn<Room>()));
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  const troupe::endpoint at = listener.local();
  rt.spawn(web.serve(std::move(listener)));
  std::map<std::string, long> grown;
  bool well = true;
  std::thread asking([&] {
    is_client = true;
    {
      PlainClient client(at);
      const std::vector<std::string> paths{
          "/plaintext",         "/json",     "/db", "/queries?queries=20",
          "/updates?queries=5", "/fortunes", small, large};
      // The pools must be full first: each thread has its own, and the pool of the timers' thread,
      // which wakes the server's sweep, may fill late. If a request allocates, each round shows
      // that a thousand times.
      constexpr int rounds_most = 4;
      for (int round = 0; round <= rounds_most && (round < 2 || !none(grown)); ++round) {
        for (const std::string& path : paths) {
          const std::string request =
              "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
          const long before = allocations.load();
          for (int i = 0; i < 1'000; ++i) well = client.ask(request) && well;
          grown[path] = allocations.load() - before;
        }
      }
    }
    web.stop();
  });
  rt.run();
  asking.join();
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(well);
  for (const auto& [path, count] : grown) EXPECT_EQ(count, 0) << "1,000 requests to " << path;
}

INSTANTIATE_TEST_SUITE_P(backends, httpd_memory,
                         testing::Values(troupe::io_backend::epoll, troupe::io_backend::io_uring),
                         [](const auto& one) {
                           return one.param == troupe::io_backend::epoll ? "epoll" : "io_uring";
                         });

// Must run before SQLite is used.
[[maybe_unused]] const bool memory_chosen = (SqliteMemory::use(), true);

}  // namespace
