// The files of a folder: whole, in part, not sent when they have not changed; and no file from
// outside the folder.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "http/h1/date.hpp"
#include "support/http.hpp"
#include "support/open_files.hpp"
#include "troupe/http/files.hpp"

namespace troupe::test {
namespace {

using http::router;

class http_files : public http_conformance {
 protected:
  void SetUp() override {
    http_conformance::SetUp();
    root_ = std::filesystem::temp_directory_path() /
            ("troupe_http_files_" + std::to_string(::getpid()));
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ / "www" / "sub");
    std::filesystem::create_directories(root_ / "www" / "bare");
    write("secret.txt", "secret");
    write("www/a.txt", "0123456789");
    write("www/index.html", "<p>index");
    write("www/sub/index.html", "<p>sub");
    write("www/.hidden", "hidden");
    write("www/sub/b c.json", "{}");
    write("www/empty", "");
    large_ = std::string(1'000'000, 'x') + "end";
    write("www/large.bin", large_);
    std::filesystem::create_symlink("../secret.txt", root_ / "www" / "out");
    std::filesystem::create_symlink(root_ / "secret.txt", root_ / "www" / "out_absolute");
    std::filesystem::create_directory_symlink("..", root_ / "www" / "up");
    std::filesystem::create_symlink("a.txt", root_ / "www" / "in");
    ::mkfifo((root_ / "www" / "pipe").c_str(), 0600);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name, std::ios::binary) << text;
  }

  std::string get(const std::string& target, const std::string& fields = "",
                  const std::string& method = "GET") {
    router routes;
    routes.files("/f/", (root_ / "www").string());
    return answer_to(
        std::move(routes),
        method + " " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + fields + "\r\n");
  }
  static int status(const std::string& answer) { return std::stoi(answer.substr(9, 3)); }
  static std::string body(const std::string& answer) {
    return answer.substr(answer.find("\r\n\r\n") + 4);
  }
  static std::string field(const std::string& answer, const std::string& name) {
    const std::size_t at = answer.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + name.size() + 4;
    return answer.substr(begin, answer.find("\r\n", begin) - begin);
  }
  std::filesystem::path root_;
  std::string large_;
};

TEST_P(http_files, whole_ones_with_their_types) {
  const std::string answer = get("/f/a.txt");
  EXPECT_EQ(status(answer), 200);
  EXPECT_EQ(body(answer), "0123456789");
  EXPECT_EQ(field(answer, "Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(field(answer, "Content-Length"), "10");
  EXPECT_EQ(field(answer, "Accept-Ranges"), "bytes");
  EXPECT_EQ(body(get("/f/sub/b%20c.json")), "{}");
  EXPECT_EQ(field(get("/f/sub/b%20c.json"), "Content-Type"), "application/json");
  EXPECT_EQ(body(get("/f/")), "<p>index");
  EXPECT_EQ(body(get("/f/sub/")), "<p>sub");
  EXPECT_EQ(field(get("/f/sub?x=1"), "Location"), "/f/sub/?x=1");
  EXPECT_EQ(body(get("/f/in")), "0123456789");
  EXPECT_EQ(status(get("/f/empty")), 200);
  EXPECT_TRUE(body(get("/f/large.bin")) == large_);
  const std::string head = get("/f/large.bin", "", "HEAD");
  EXPECT_EQ(field(head, "Content-Length"), std::to_string(large_.size()));
  EXPECT_EQ(body(head), "");
}

TEST_P(http_files, what_is_not_there_or_not_to_be_seen) {
  const int before = open_files();
  for (const char* target : {"/f/none",
                             "/f/bare/",
                             "/f/../secret.txt",
                             "/f/sub/../a.txt",
                             "/f/%2e%2e/secret.txt",
                             "/f/..%2fsecret.txt",
                             "/f/sub%2findex.html",
                             "/f/%2e%2e%2fsecret.txt",
                             "/f/sub%5cindex.html",
                             "/f/.hidden",
                             "/f/%2ehidden",
                             "/f/out",
                             "/f/out_absolute",
                             "/f/up/secret.txt",
                             "/f/up/www/a.txt",
                             "/f/pipe",
                             "/f//a.txt",
                             "/f/./a.txt",
                             "/f/a.txt/",
                             "/f/a.txt/x",
                             "/f//etc/passwd",
                             "/f/sub//index.html",
                             "/secret.txt"}) {
    const std::string refused = get(target);
    EXPECT_EQ(status(refused), 404) << target;
    EXPECT_TRUE(refused.ends_with("Not Found\n")) << refused;
  }
  EXPECT_EQ(status(get("/f/none", "If-Match: \"x\"\r\n")), 404);
  EXPECT_EQ(status(get("/f/a%00.txt")), 400);
  EXPECT_EQ(status(get("/f/a.txt", "", "DELETE")), 405);
  EXPECT_EQ(open_files(), before);
}

// If any file was renamed meanwhile, the system refuses to follow a link that leads upwards. It has
// to be asked again.
TEST_P(http_files, links_are_found_while_others_rename) {
  write("moving", "");
  std::filesystem::create_symlink("../a.txt", root_ / "www" / "sub" / "link");
  std::atomic<bool> over{false};
  std::thread renames([&] {
    const std::string one = root_ / "moving", other = root_ / "www" / "moving";
    for (bool there = false; !over || there; there = !there)
      static_cast<void>(::rename((there ? other : one).c_str(), (there ? one : other).c_str()));
  });
  constexpr std::size_t times = 3'000;
  const std::string one = "GET /f/sub/link HTTP/1.1\r\nHost: a\r\n";
  std::string asked;
  for (std::size_t i = 1; i < times; ++i) asked += one + "\r\n";
  router routes;
  routes.files("/f/", (root_ / "www").string());
  const std::string got = answer_to(std::move(routes), asked + one + "Connection: close\r\n\r\n");
  over = true;
  renames.join();
  std::size_t found = 0;
  for (std::size_t at = got.find("0123456789"); at != std::string::npos;
       at = got.find("0123456789", at + 1))
    ++found;
  EXPECT_EQ(found, times);
}

TEST_P(http_files, ranges) {
  const auto range = [this](const std::string& of) {
    return get("/f/a.txt", "Range: " + of + "\r\n");
  };
  EXPECT_EQ(body(range("bytes=2-4")), "234");
  EXPECT_EQ(status(range("bytes=2-4")), 206);
  EXPECT_EQ(field(range("bytes=2-4"), "Content-Range"), "bytes 2-4/10");
  EXPECT_EQ(body(range("bytes=8-")), "89");
  EXPECT_EQ(body(range("bytes=-3")), "789");
  EXPECT_EQ(body(range("bytes=-30")), "0123456789");
  EXPECT_EQ(body(range("bytes=9-99")), "9");
  EXPECT_EQ(status(range("bytes=10-")), 416);
  EXPECT_EQ(field(range("bytes=10-"), "Content-Range"), "bytes */10");
  EXPECT_EQ(status(range("bytes=-0")), 416);
  EXPECT_EQ(status(get("/f/empty", "Range: bytes=0-\r\n")), 416);
  for (const char* malformed : {"bytes=4-2", "bytes=a-b", "bytes=", "bytes=-", "lines=1-2",
                                "bytes=1-2,4-5", "bytes=1-2x"}) {
    EXPECT_EQ(status(range(malformed)), 200) << malformed;
  }
  EXPECT_TRUE(body(get("/f/large.bin", "Range: bytes=100000-999999\r\n")) ==
              large_.substr(100'000, 900'000));
  const std::string tag = field(get("/f/a.txt"), "ETag");
  EXPECT_EQ(status(get("/f/a.txt", "Range: bytes=1-2\r\nIf-Range: " + tag + "\r\n")), 206);
  EXPECT_EQ(status(get("/f/a.txt", "Range: bytes=1-2\r\nIf-Range: \"x\"\r\n")), 200);
  EXPECT_EQ(status(get("/f/a.txt", "Range: bytes=1-2\r\nIf-Range: W/" + tag + "\r\n")), 200);
  const std::string head = get("/f/a.txt", "Range: bytes=1-2\r\n", "HEAD");
  EXPECT_EQ(status(head), 200);
  EXPECT_EQ(field(head, "Content-Length"), "10");
}

TEST_P(http_files, a_part_of_what_may_have_changed_is_not_given) {
  const std::string path = (root_ / "www" / "a.txt").string();
  const auto range = [&](const std::string& fields) {
    router routes;
    routes.get("/middle", [path](const http::request& asked) {
      return http::file_response(
          asked, file::adopt(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path), 2, 6, "text/plain");
    });
    return answer_to(
        std::move(routes),
        "GET /middle HTTP/1.1\r\nHost: a\r\nConnection: close\r\nRange: bytes=1-2\r\n" + fields +
            "\r\n");
  };
  EXPECT_EQ(status(range("")), 206);
  EXPECT_EQ(body(range("")), "34");
  EXPECT_EQ(status(range("If-Range: \"x\"\r\n")), 200);
  EXPECT_EQ(body(range("If-Range: \"x\"\r\n")), "234567");
}

TEST_P(http_files, what_has_not_changed_is_not_sent_again) {
  const std::string first = get("/f/a.txt");
  const std::string tag = field(first, "ETag"), modified = field(first, "Last-Modified");
  EXPECT_EQ(status(get("/f/a.txt", "If-None-Match: " + tag + "\r\n")), 304);
  EXPECT_EQ(status(get("/f/a.txt", "If-None-Match: \"x\", W/" + tag + "\r\n")), 304);
  EXPECT_EQ(status(get("/f/a.txt", "If-None-Match: *\r\n")), 304);
  EXPECT_EQ(status(get("/f/a.txt", "If-None-Match: \"x\"\r\n")), 200);
  EXPECT_EQ(status(get("/f/a.txt", "If-Modified-Since: " + modified + "\r\n")), 304);
  EXPECT_EQ(status(get("/f/a.txt", "If-Modified-Since: Sat, 29 Oct 1994 19:43:31 GMT\r\n")), 200);
  EXPECT_EQ(status(get("/f/a.txt", "If-Modified-Since: some day\r\n")), 200);
  EXPECT_EQ(
      status(get("/f/a.txt", "If-None-Match: \"x\"\r\nIf-Modified-Since: " + modified + "\r\n")),
      200);
  EXPECT_EQ(body(get("/f/a.txt", "If-None-Match: " + tag + "\r\n")), "");
}

TEST_P(http_files, what_has_changed_is_not_sent_to_who_wants_the_old_one) {
  const std::string first = get("/f/a.txt");
  const std::string tag = field(first, "ETag"), modified = field(first, "Last-Modified");
  const std::string before = "Sat, 29 Oct 1994 19:43:31 GMT";
  const auto with = [this](const std::string& fields, const char* how = "GET") {
    return get("/f/a.txt", fields, how);
  };
  EXPECT_EQ(status(with("If-Match: " + tag + "\r\n")), 200);
  EXPECT_EQ(status(with("If-Match: \"x\", " + tag + "\r\n")), 200);
  EXPECT_EQ(status(with("If-Match: \"x\"\r\nIf-Match: " + tag + "\r\n")), 200);
  EXPECT_EQ(status(with("If-Match: *\r\n")), 200);
  EXPECT_EQ(status(with("If-Match: \"x\"\r\n")), 412);
  EXPECT_EQ(body(with("If-Match: \"x\"\r\n")), "Precondition Failed\n");
  EXPECT_EQ(status(with("If-Match: W/" + tag + "\r\n")), 412);
  EXPECT_EQ(status(with("If-Match: \"x\"\r\n", "HEAD")), 412);
  EXPECT_EQ(status(with("If-Unmodified-Since: " + modified + "\r\n")), 200);
  EXPECT_EQ(status(with("If-Unmodified-Since: " + before + "\r\n")), 412);
  EXPECT_EQ(status(with("If-Unmodified-Since: some day\r\n")), 200);
  // The tag counts more than the date, and both are checked before the conditions that lead to 304
  // or 206.
  EXPECT_EQ(status(with("If-Match: " + tag + "\r\nIf-Unmodified-Since: " + before + "\r\n")), 200);
  EXPECT_EQ(status(with("If-Match: \"x\"\r\nIf-None-Match: " + tag + "\r\n")), 412);
  EXPECT_EQ(status(with("If-Match: " + tag + "\r\nIf-None-Match: " + tag + "\r\n")), 304);
  EXPECT_EQ(status(with("If-Unmodified-Since: " + before + "\r\nRange: bytes=1-2\r\n")), 412);
  EXPECT_EQ(status(with("If-Match: " + tag + "\r\nRange: bytes=1-2\r\n")), 206);
}

TEST_P(http_files, dates_in_all_forms_of_http) {
  const auto since = [this](const std::string& date) {
    return status(get("/f/a.txt", "If-Modified-Since: " + date + "\r\n"));
  };
  const timespec times[] = {{784'111'777, 0}, {784'111'777, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (root_ / "www/a.txt").c_str(), times, 0), 0);
  EXPECT_EQ(field(get("/f/a.txt"), "Last-Modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
  for (const char* same : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                           "Sun Nov  6 08:49:37 1994"}) {
    EXPECT_EQ(since(same), 304) << same;
  }
  for (const char* before : {"Sun, 06 Nov 1994 08:49:36 GMT", "Sunday, 06-Nov-94 08:49:36 GMT",
                             "Sun Nov  6 08:49:36 1994"}) {
    EXPECT_EQ(since(before), 200) << before;
  }
}

// RFC 9110, 8.8.2.1: Last-Modified is not later than Date.
TEST_P(http_files, of_the_future_were_modified_now) {
  const std::time_t soon = std::time(nullptr) + 1'000'000;
  const timespec times[] = {{soon, 0}, {soon, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (root_ / "www/a.txt").c_str(), times, 0), 0);
  router routes;
  routes.files("/f/", (root_ / "www").string());
  std::string got;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    got = co_await exchange(at, "GET /f/a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  });
  const auto modified = http::read_date(field(got, "Last-Modified"), soon);
  const auto date = http::read_date(field(got, "Date"), soon);
  ASSERT_TRUE(modified && date) << got;
  EXPECT_LE(*modified, *date);
}

TEST(http_folder, that_is_not_there) {
  router routes;
  EXPECT_THROW(routes.files("/f/", "/no/such/folder"), io_error);
  EXPECT_THROW(routes.files("/f", "/tmp"), usage_error);
}

}  // namespace

TROUPE_HTTP_TEST_EACH(http_files);

}  // namespace troupe::test
