// A path, an address or a setting with a zero byte is refused before the system could cut it.
#include <functional>
#include <string>
#include <vector>

#include "support/http.hpp"
#include "support/scratch.hpp"
#include "troupe/http/client/download.hpp"
#include "troupe/io/file.hpp"
#include "troupe/io/process.hpp"
#include "troupe/io/unix_datagram.hpp"
#include "troupe/io/unix_socket.hpp"
#include "troupe/tls/context.hpp"

namespace troupe::test {
namespace {

struct member {
  const char* name;
  std::function<void(const std::string& odd)> use;
};

void use_tls(std::string tls_options::*of, const std::string& odd) {
  tls_options chosen;
  chosen.*of = odd;
  static_cast<void>(tls_context::client(chosen));
}

// Runs the task to its end, and throws what it throws.
template <class Task>
void use_in_runtime(Task work) {
  runtime rt(runtime_options{.workers = 1});
  rt.spawn(std::move(work));
  rt.run();
}

std::vector<member> all_members() {
  const auto tls = [](const char* name, std::string tls_options::*of) {
    return member{name, [of](const std::string& odd) { use_tls(of, odd); }};
  };
  return {
      tls("tls_options::ca_file", &tls_options::ca_file),
      tls("tls_options::certificate_file", &tls_options::certificate_file),
      tls("tls_options::key_file", &tls_options::key_file),
      tls("tls_options::ciphers", &tls_options::ciphers),
      {"endpoint::parse",
       [](const std::string&) {
         static_cast<void>(endpoint::parse(std::string_view("127.0.0.1\0x:80", 14)));
       }},
      {"router::files", [](const std::string& odd) { http::router().files("/", odd); }},
      {"process::start", [](const std::string& odd) { static_cast<void>(process::start(odd)); }},
      {"unix_listener::listen",
       [](const std::string& odd) { static_cast<void>(unix_listener::listen(odd)); }},
      {"unix_stream::connect",
       [](const std::string& odd) { static_cast<void>(unix_stream::connect(odd)); }},
      {"unix_datagram::bind",
       [](const std::string& odd) { static_cast<void>(unix_datagram::bind(odd)); }},
      {"file::open",
       [](const std::string& odd) {
         const auto opens = [](std::string path) -> task<> {
           const file opened = co_await file::open(path);
         };
         use_in_runtime(opens(odd));
       }},
      {"http::download",
       [](const std::string& odd) {
         const auto loads = [](std::string path) -> task<> {
           const http::client asks;
           static_cast<void>(co_await http::download(asks, "http://127.0.0.1:9/", path));
         };
         use_in_runtime(loads(odd));
       }},
  };
}

TEST(zero_bytes, are_refused_and_named_before_anything_is_opened) {
  const scratch folder;
  folder.put("there", "kept");
  const std::string odd = (folder / "there") + std::string("\0.pem", 5);
  for (const member& one : all_members()) {
    std::string said = "nothing";
    try {
      one.use(odd);
    } catch (const option_error& refused) {
      said = refused.what();
    } catch (const std::exception& other) {
      said = std::string("not an option_error: ") + other.what();
    }
    EXPECT_NE(said.find("zero"), std::string::npos) << one.name << ": " << said;
  }
  EXPECT_EQ(scratch::text_of(folder / "there"), "kept");
}

}  // namespace
}  // namespace troupe::test
