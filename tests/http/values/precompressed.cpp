// Files that lie beside others in fewer bytes.
#include <filesystem>

#include "support/http.hpp"
#include "support/scratch.hpp"
#include "troupe/http/files.hpp"

namespace troupe::test {
namespace {

class http_precompressed : public http_conformance {
 protected:
  void SetUp() override {
    http_conformance::SetUp();
    folder_.put("a.css", "plain text");
    folder_.put("a.css.br", "brotli");
    folder_.put("a.css.gz", "gzipped");
    folder_.put("b.css", "plain");
    folder_.put("c.css.gz", "alone");
    std::filesystem::create_directory(folder_ / "b.css.gz");
    std::filesystem::create_symlink("/etc/hostname", folder_ / "b.css.br");
  }
  std::string get(std::string_view target, std::string_view fields, bool precompressed = true) {
    http::router routes;
    http::file_options options;
    options.precompressed = precompressed;
    options.cache_control = "max-age=3600";
    routes.files("/", folder_ / "", options);
    return answer_to(std::move(routes), "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" +
                                            std::string(fields) + "Connection: close\r\n\r\n");
  }
  static bool has(const std::string& answer, std::string_view line) {
    return answer.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
  }
  static std::string body(const std::string& answer) {
    return answer.substr(answer.find("\r\n\r\n") + 4);
  }
  scratch folder_;
};

TEST_P(http_precompressed, are_served_by_what_the_client_prefers) {
  const auto ask = [&](std::string_view accepted) {
    const std::string got = get("/a.css", "Accept-Encoding: " + std::string(accepted) + "\r\n");
    EXPECT_TRUE(has(got, "Vary: Accept-Encoding")) << got;
    EXPECT_TRUE(has(got, "Content-Type: text/css; charset=utf-8")) << got;
    return body(got);
  };
  EXPECT_EQ(ask("gzip, br, zstd"), "brotli");
  EXPECT_EQ(ask("gzip, br;q=0.9"), "gzipped");
  EXPECT_EQ(ask("zstd, gzip;q=0.1"), "gzipped");  // there is no .zst
  EXPECT_EQ(ask("*"), "brotli");
  EXPECT_EQ(ask("*, br;q=0"), "gzipped");
  EXPECT_EQ(ask("zstd"), "plain text");
  EXPECT_EQ(ask("gzip;q=0, br;q=0"), "plain text");
  EXPECT_EQ(ask("identity"), "plain text");
  EXPECT_EQ(ask("gzip;q=0.5, identity"), "plain text");
  EXPECT_EQ(ask("br, gzip;q=0.5, identity;q=0.7"), "brotli");
  EXPECT_EQ(ask("gzip;q=0.5, br;q=0.2, *;q=0.3"), "gzipped");
  EXPECT_TRUE(has(get("/a.css", "Accept-Encoding: br\r\n"), "Content-Encoding: br"));
  EXPECT_TRUE(has(get("/a.css", "Accept-Encoding: br\r\n"), "Content-Length: 6"));
  EXPECT_EQ(body(get("/a.css", "")), "plain text");
}

TEST_P(http_precompressed, have_their_own_tags_and_ranges) {
  const auto tag_of = [&](std::string_view fields) {
    const std::string got = get("/a.css", fields);
    const std::size_t at = got.find("ETag: ") + 6;
    return got.substr(at, got.find("\r\n", at) - at);
  };
  const std::string brotli = tag_of("Accept-Encoding: br\r\n"), plain = tag_of("");
  EXPECT_NE(brotli, plain);
  EXPECT_NE(brotli, tag_of("Accept-Encoding: gzip\r\n"));
  const std::string matching = "If-None-Match: " + brotli + "\r\n";
  EXPECT_EQ(get("/a.css", "Accept-Encoding: br\r\n" + matching).substr(9, 3), "304");
  EXPECT_EQ(get("/a.css", matching).substr(9, 3), "200");
  EXPECT_EQ(body(get("/a.css", "Accept-Encoding: br\r\nRange: bytes=0-1\r\n")), "br");
}

// RFC 9110, 15.3.7 and 15.4.5.
TEST_P(http_precompressed, a_part_and_a_304_say_what_the_whole_says) {
  const auto line_of = [](const std::string& answer, std::string_view name) {
    const std::size_t at = answer.find("\r\n" + std::string(name) + ": ");
    return at == std::string::npos ? "none" : answer.substr(at, answer.find("\r\n", at + 2) - at);
  };
  const std::string accepted = "Accept-Encoding: br\r\n", whole = get("/a.css", accepted),
                    tag = line_of(whole, "ETag").substr(8);
  const std::string part = get("/a.css", accepted + "Range: bytes=0-1\r\n"),
                    same = get("/a.css", accepted + "If-None-Match: " + tag + "\r\n");
  EXPECT_EQ(part.substr(9, 3), "206");
  EXPECT_EQ(same.substr(9, 3), "304");
  for (const char* name : {"ETag", "Last-Modified", "Cache-Control", "Vary"}) {
    EXPECT_NE(line_of(whole, name), "none") << name;
    EXPECT_EQ(line_of(part, name), line_of(whole, name)) << part;
    EXPECT_EQ(line_of(same, name), line_of(whole, name)) << same;
  }
}

TEST_P(http_precompressed, answers_without_the_file_have_not_its_coding) {
  const std::string all = "Accept-Encoding: br\r\n";
  for (const std::string wrong : {"If-Match: \"x\"\r\n", "Range: bytes=100-\r\n"}) {
    const std::string got = get("/a.css", all + wrong);
    EXPECT_TRUE(got.substr(9, 3) == "412" || got.substr(9, 3) == "416") << got;
    EXPECT_FALSE(has(got, "Content-Encoding: br")) << got;
    EXPECT_EQ(got.find("Cache-Control"), std::string::npos) << got;
    EXPECT_TRUE(has(got, "Vary: Accept-Encoding")) << got;
  }
  EXPECT_EQ(body(get("/a.css", "Accept-Encoding: gzip;q=0.5\r\nAccept-Encoding: br\r\n")),
            "brotli");
}

TEST_P(http_precompressed, are_files_of_the_folder_beside_a_file) {
  const std::string all = "Accept-Encoding: br, gzip\r\n";
  EXPECT_EQ(body(get("/b.css", all)), "plain");  // a folder, and a link that leads outside
  EXPECT_EQ(get("/c.css", all).substr(9, 3), "404");
  EXPECT_EQ(body(get("/a.css", all, false)), "plain text");
  EXPECT_FALSE(has(get("/a.css", all, false), "Vary: Accept-Encoding"));
  const std::string itself = get("/a.css.gz", all);
  EXPECT_EQ(body(itself), "gzipped");
  EXPECT_FALSE(has(itself, "Content-Encoding: gzip"));
}

TROUPE_HTTP_TEST_EACH(http_precompressed);

}  // namespace
}  // namespace troupe::test
