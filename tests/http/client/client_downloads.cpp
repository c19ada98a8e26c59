// A download goes on where an earlier attempt has ended, and never mixes two versions of a file.
#include <sys/stat.h>

#include <filesystem>

#include "http/client/scripted.hpp"
#include "support/scratch.hpp"
#include "troupe/http/client/download.hpp"
#include "troupe/http/server.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::client;
using http::client_request;
using http::download;
using http::download_options;
using http::downloaded;

class http_client_downloads : public client_conformance {};

download_options quick(unsigned attempts = 3) {
  download_options chosen;
  chosen.pause = 0ns;
  chosen.attempts = attempts;
  return chosen;
}

// How it ended, as outcome_of() has it.
task<std::string> outcome_of(http::downloading asked) {
  try {
    const downloaded got = co_await std::move(asked);
    co_return std::to_string(got.bytes) + " bytes, " + std::to_string(got.kept) + " kept, " +
        std::to_string(got.requests) + " requests";
  } catch (const http::client_error& e) {
    co_return text_of(e.reason()) + (e.status() == 0 ? "" : " " + std::to_string(e.status()));
  } catch (const timed_out&) {
    co_return "timed_out";
  } catch (const cancelled&) {
    co_return "cancelled";
  } catch (const io_error& e) {
    co_return std::string("io_error ") + e.operation();
  }
}

std::string line_of(const std::string& request, const std::string& name) {
  const std::size_t at = request.find(name + ": ");
  if (at == std::string::npos) return "";
  return request.substr(at, request.find('\r', at) - at);
}

// The first byte that a request asks for; 0 without a range.
std::size_t first_of(const std::string& request) {
  const std::string line = line_of(request, "Range");
  return line.empty() ? 0 : std::stoul(line.substr(13));
}

// Serves "0123456789" with an ETag, at most `most` bytes a connection.
std::string part_of(const std::string& request, const std::string& tag, std::size_t most) {
  const std::string text = "0123456789";
  const std::size_t from = first_of(request);
  const std::string tail = text.substr(from, most);
  if (from == 0 || line_of(request, "If-Range") != "If-Range: " + tag)
    return "HTTP/1.1 200 OK\r\nETag: " + tag + "\r\nContent-Length: 10\r\n\r\n" +
           text.substr(0, most);
  return "HTTP/1.1 206 Partial Content\r\nETag: " + tag + "\r\nContent-Range: bytes " +
         std::to_string(from) + "-9/10\r\nContent-Length: " + std::to_string(10 - from) +
         "\r\n\r\n" + tail;
}

scripted_answer four_a_time(const std::string& request) {
  return {part_of(request, "\"v1\"", 4), true};
}

TEST_P(http_client_downloads, of_files_that_our_server_serves) {
  const scratch folder, target;
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += static_cast<char>('a' + i % 23);
  folder.put("big.bin", text);
  http::router routes;
  routes.files("/", folder / "");
  http::server web(std::move(routes));
  const std::string path = target / "got.bin";
  runtime rt(options());
  const auto talk = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const std::string url =
        "http://127.0.0.1:" + std::to_string(listener.local().port()) + "/big.bin";
    future<> serving = spawn(web.serve(std::move(listener)));
    const client asks;
    std::uint64_t last = 0;
    const std::string whole = co_await outcome_of(download(asks, url, path, quick()));
    EXPECT_EQ(whole, "300000 bytes, 0 kept, 1 requests");
    EXPECT_TRUE(scratch::text_of(path) == text);
    // A download that ends on the way leaves its part. The next one gets the rest of it.
    download_options stops = quick();
    stops.progress = [](const http::download_progress& now) {
      if (now.bytes > 50'000) throw cancelled("enough");
    };
    const std::string given_up = co_await outcome_of(download(asks, url, path, std::move(stops)));
    EXPECT_EQ(given_up, "cancelled");
    const auto kept = std::filesystem::file_size(path + ".part");
    EXPECT_GT(kept, 50'000u);
    download_options tells = quick();
    tells.progress = [&](const http::download_progress& now) {
      EXPECT_GT(now.bytes, last);
      EXPECT_EQ(now.total, 300'000u);
      last = now.bytes;
    };
    const std::string rest = co_await outcome_of(download(asks, url, path, std::move(tells)));
    EXPECT_EQ(rest, "300000 bytes, " + std::to_string(kept) + " kept, 1 requests");
    EXPECT_EQ(last, 300'000u);
    EXPECT_TRUE(scratch::text_of(path) == text);
    EXPECT_FALSE(std::filesystem::exists(path + ".part"));
    EXPECT_FALSE(std::filesystem::exists(path + ".part.info"));
    web.stop();
    co_await std::move(serving);
  };
  rt.spawn(talk());
  rt.run();
}

TEST_P(http_client_downloads, go_on_when_the_connection_ends) {
  run(four_a_time, [](scripted_server& server, client web) -> task<> {
    const scratch folder;
    const std::string path = folder / "x";
    client_request asked("GET", server.url());
    asked.field("Authorization", "secret");
    const std::string got =
        co_await outcome_of(download(web, std::move(asked), path, quick(1 + 1)));
    EXPECT_EQ(got, "10 bytes, 0 kept, 3 requests");
    EXPECT_EQ(scratch::text_of(path), "0123456789");
    const std::vector<std::string> requests = server.requests();
    EXPECT_EQ(line_of(requests[0], "Range") + line_of(requests[0], "Accept-Encoding"),
              "Accept-Encoding: identity");
    EXPECT_EQ(line_of(requests[2], "Range"), "Range: bytes=8-");
    EXPECT_EQ(line_of(requests[2], "If-Range"), "If-Range: \"v1\"");
    EXPECT_EQ(line_of(requests[2], "Authorization"), "Authorization: secret");
  });
}

TEST_P(http_client_downloads, begin_anew_when_the_file_has_changed) {
  std::atomic<int> asked{0};
  const auto says = [&asked](const std::string& request) -> scripted_answer {
    const bool first = ++asked == 1;
    return {part_of(request, first ? "\"v1\"" : "\"v2\"", first ? 4 : 10), true};
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    const scratch folder;
    const std::string path = folder / "x";
    const std::string first = co_await outcome_of(download(web, server.url(), path, quick(1)));
    EXPECT_EQ(first, "truncated");
    EXPECT_EQ(scratch::text_of(path + ".part"), "0123");
    const std::string second = co_await outcome_of(download(web, server.url(), path, quick(1)));
    EXPECT_EQ(second, "10 bytes, 0 kept, 1 requests");
    EXPECT_EQ(scratch::text_of(path), "0123456789");
  });
}

// What a server answers to a part that does not fit, and what becomes of it.
TEST_P(http_client_downloads, answers_that_do_not_fit_the_part) {
  const auto says = [](const std::string& request) -> scripted_answer {
    const auto range = [](const char* fields, const char* body) -> scripted_answer {
      return {std::string("HTTP/1.1 206 Partial Content\r\n") + fields + "\r\n\r\n" + body, true};
    };
    if (first_of(request) == 0) return four_a_time(request);
    if (request.contains("/416-other "))
      return {"HTTP/1.1 416 No\r\nContent-Range: bytes */3\r\nContent-Length: 0\r\n\r\n", true};
    if (request.contains("/412 ")) return {"HTTP/1.1 412 No\r\nContent-Length: 0\r\n\r\n", true};
    if (request.contains("/where "))
      return range("Content-Range: bytes 5-9/10\r\nContent-Length: 5", "56789");
    if (request.contains("/length "))
      return range("Content-Range: bytes 4-9/10\r\nContent-Length: 5", "45678");
    if (request.contains("/total "))
      return range("Content-Range: bytes 4-9/11\r\nContent-Length: 6", "456789");
    if (request.contains("/open "))
      return range("Content-Range: bytes 4-9/*\r\nContent-Length: 6", "456789");
    if (request.contains("/multipart "))
      return range("Content-Type: multipart/byteranges; boundary=x\r\nContent-Length: 6", "456789");
    return range("ETag: \"v2\"\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6", "456789");
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    const scratch folder;
    const std::string path = folder / "x";
    for (const char* target :
         {"/416-other", "/412", "/where", "/length", "/total", "/open", "/multipart", "/tag"}) {
      const std::size_t before = server.requests().size();
      const std::string got =
          co_await outcome_of(download(web, server.url(target), path, quick(3)));
      // The part of four bytes, the answer that does not fit, four bytes again, and once more what
      // does not fit.
      EXPECT_EQ(got, "bad_response") << target;
      EXPECT_EQ(server.requests().size() - before, 4u) << target;
      EXPECT_FALSE(std::filesystem::exists(path)) << target;
      std::filesystem::remove(path + ".part");
    }
  });
}

TEST_P(http_client_downloads, of_a_part_that_was_whole_ask_once) {
  std::atomic<int> asked{0};
  const auto says = [&asked](const std::string& request) -> scripted_answer {
    if (++asked == 1)  // all bytes came, but the chunks have no end
      return {
          "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nTransfer-Encoding: chunked\r\n\r\n"
          "a\r\n0123456789\r\n",
          true};
    EXPECT_EQ(line_of(request, "Range"), "Range: bytes=10-");
    return "HTTP/1.1 416 No\r\nContent-Range: bytes */10\r\nContent-Length: 0\r\n\r\n";
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    const scratch folder;
    const std::string path = folder / "x";
    const std::string got = co_await outcome_of(download(web, server.url(), path, quick()));
    EXPECT_EQ(got, "10 bytes, 0 kept, 2 requests");
    EXPECT_EQ(scratch::text_of(path), "0123456789");
  });
}

TEST_P(http_client_downloads, resume_by_what_tells_versions_apart_alone) {
  const auto says = [](const std::string& request) -> scripted_answer {
    std::string fields;
    if (request.contains("/weak ")) fields = "ETag: W/\"v1\"\r\n";
    if (request.contains("/fresh "))
      fields =
          "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
          "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    if (request.contains("/old "))
      fields =
          "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
          "Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n";
    if (first_of(request) != 0)
      return "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-9/10\r\n"
             "Content-Length: 6\r\n\r\n456789";
    return {"HTTP/1.1 200 OK\r\n" + fields + "Content-Length: 10\r\n\r\n0123", true};
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    const scratch folder;
    const std::string path = folder / "x";
    for (const char* target : {"/none", "/weak", "/fresh"}) {
      const std::string got =
          co_await outcome_of(download(web, server.url(target), path, quick(3)));
      EXPECT_EQ(got, "truncated");
      EXPECT_EQ(line_of(server.requests().back(), "Range"), "");
    }
    const std::string old = co_await outcome_of(download(web, server.url("/old"), path, quick(3)));
    EXPECT_EQ(old, "10 bytes, 0 kept, 2 requests");
    EXPECT_EQ(line_of(server.requests().back(), "If-Range"),
              "If-Range: Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_EQ(scratch::text_of(path), "0123456789");
  });
}

TEST_P(http_client_downloads, limits_hold_at_the_limit_and_one_past_it) {
  const auto says = [](const std::string& request) -> scripted_answer {
    if (request.contains("/busy ")) return "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";
    if (request.contains("/gone ")) return "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n";
    if (request.contains("/chunks "))
      return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n";
    return part_of(request, "\"v1\"", 10);
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    const scratch folder;
    const std::string path = folder / "x";
    for (const char* target : {"/length", "/chunks"}) {
      download_options small = quick(1);
      small.bytes_max = 10;
      const std::string at = co_await outcome_of(download(web, server.url(target), path, small));
      EXPECT_EQ(at, "10 bytes, 0 kept, 1 requests");
      std::filesystem::remove(path);
      small.bytes_max = 9;
      const std::string past = co_await outcome_of(download(web, server.url(target), path, small));
      EXPECT_EQ(past, "body_too_large");
      EXPECT_FALSE(std::filesystem::exists(path));
    }
    for (const unsigned attempts : {1u, 3u}) {
      const std::size_t before = server.requests().size();
      const std::string busy =
          co_await outcome_of(download(web, server.url("/busy"), path, quick(attempts)));
      EXPECT_EQ(busy, "not_downloaded 503");
      EXPECT_EQ(server.requests().size() - before, attempts);
    }
    const std::string gone = co_await outcome_of(download(web, server.url("/gone"), path, quick()));
    EXPECT_EQ(gone, "not_downloaded 404");
    const std::string nowhere =
        co_await outcome_of(download(web, server.url(), folder / "no/x", quick()));
    EXPECT_EQ(nowhere, "io_error open");
  });
}

TEST_P(http_client_downloads, end_with_the_time_of_the_call) {
  const auto says = [](const std::string& request) -> scripted_answer {
    scripted_answer answer(part_of(request, "\"v1\"", 4));  // and then silence
    return answer;
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    const scratch folder;
    // A path for each: what is given up may be busy with its part for a moment longer.
    const std::string path = folder / "x", other = folder / "y", third = folder / "z";
    const std::string own =
        co_await outcome_of(download(web, server.url(), path, quick()).timeout(200ms));
    EXPECT_EQ(own, "timed_out");
    std::string how;
    const auto ask = [&]() -> task<> { co_await download(web, server.url(), other, quick()); };
    try {
      co_await with_deadline(200ms, ask());
    } catch (const timed_out&) {
      how = "timed_out";
    }
    EXPECT_EQ(how, "timed_out");
    EXPECT_LE(server.requests().size(), 2u);
    std::stop_source stop;
    stop.request_stop();
    const std::string stopped =
        co_await outcome_of(download(web, server.url(), third, quick()).stop(stop.get_token()));
    EXPECT_EQ(stopped, "cancelled");
  });
}

TEST_P(http_client_downloads, of_one_file_are_made_one_at_a_time) {
  run(four_a_time, [](scripted_server& server, client web) -> task<> {
    const scratch folder;
    const std::string path = folder / "x";
    event begun, goes;
    const auto first = [&]() -> task<std::string> {
      download_options tells = quick();
      tells.progress = [&](const http::download_progress& now) {
        if (now.bytes == 4) begun.set();
      };
      tells.pause = 3'600s;
      co_return co_await outcome_of(download(web, server.url(), path, tells));
    };
    const auto second = [&]() -> task<std::string> {
      co_await begun.wait();
      co_return co_await outcome_of(download(web, server.url(), path, quick()));
    };
    auto either = when_any(first(), second());
    const auto got = co_await std::move(either);
    EXPECT_EQ(got.index(), 1u);
    EXPECT_EQ(std::get<1>(got), "part_in_use");
    const std::string now = co_await outcome_of(download(web, server.url(), path, quick()));
    EXPECT_EQ(now, "10 bytes, 4 kept, 2 requests");
  });
}

TEST_P(http_client_downloads, go_with_the_trace_of_the_call) {
  run(four_a_time, [](scripted_server& server, client web) -> task<> {
    const scratch folder;
    const std::string path = folder / "x";
    const trace_context here = trace_context::begin();
    const auto ask = [&]() -> task<> { co_await download(web, server.url(), path, quick()); };
    co_await with_trace(here, ask());
    const std::string trace = here.traceparent().substr(3, 32);
    for (const std::string& one : server.requests())
      EXPECT_TRUE(line_of(one, "traceparent").contains(trace)) << one;
  });
}

TEST_P(http_client_downloads, refuse_requests_that_are_no_downloads) {
  run(four_a_time, [](scripted_server& server, client web) -> task<> {
    const scratch folder;
    for (const int which : {0, 1, 2, 3}) {
      client_request asked(which == 0 ? "POST" : "GET", server.url());
      if (which == 1) asked.range(1);
      if (which == 2) asked.field("if-range", "\"x\"");
      if (which == 3) asked.body("x", "");
      bool refused = false;
      try {
        co_await download(web, std::move(asked), folder / "x", quick());
      } catch (const usage_error&) {
        refused = true;
      }
      EXPECT_TRUE(refused) << which;
    }
    EXPECT_TRUE(server.requests().empty());
  });
}

TROUPE_CLIENT_TEST_EACH(http_client_downloads);

}  // namespace
}  // namespace troupe::test
