// fetch: fetches what a URL names, over http or https, with a progress bar on standard error.
//
// fetch URL [-o FILE] [--cacert FILE] [--insecure]
//   -o FILE        writes to FILE instead of standard output; an existing FILE is replaced once
//                  everything has come
//   --cacert FILE  trusts the certificates in FILE, instead of the system's
//   --insecure     trusts any server: an attacker in between can read and change everything
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/http/client.hpp"
#include "troupe/troupe.hpp"

struct wanted {
  std::string url, file, ca_file;
  bool insecure = false;
};

std::optional<wanted> parse(int argc, char** argv) {
  wanted made;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--insecure") {
      made.insecure = true;
    } else if ((word == "-o" || word == "--cacert") && i + 1 < argc) {
      (word == "-o" ? made.file : made.ca_file) = argv[++i];
    } else if (word.starts_with('-') || !made.url.empty()) {
      return std::nullopt;
    } else {
      made.url = word;
    }
  }
  if (made.url.empty()) return std::nullopt;
  return made;
}

// "[#####.....] 50% 1.2 MB": drawn at most ten times a second.
class progress {
 public:
  explicit progress(std::optional<std::uint64_t> all) : all_(all) {}
  void add(std::size_t bytes) {
    done_ += bytes;
    const auto now = troupe::now();
    if (now - drawn_ < std::chrono::milliseconds(100)) return;
    drawn_ = now;
    draw();
  }
  void finish() {
    draw();
    std::fputc('\n', stderr);
  }

 private:
  void draw() const {
    constexpr std::size_t width = 40;
    std::string line = "\r";
    if (all_) {
      const std::uint64_t percent = *all_ == 0 ? 100 : done_ * 100 / *all_;
      const std::size_t full =
          static_cast<std::size_t>(std::min<std::uint64_t>(percent, 100)) * width / 100;
      line += "[" + std::string(full, '#') + std::string(width - full, '.') + "] " +
              std::to_string(percent) + "%";
    }
    std::fprintf(stderr, "%s  %.1f MB", line.c_str(), static_cast<double>(done_) / 1e6);
  }
  const std::optional<std::uint64_t> all_;
  std::uint64_t done_ = 0;
  std::chrono::nanoseconds drawn_{-1'000'000'000};
};

// The part of a file that has come, in a file beside it. It is removed if the rest does not come.
class part_file {
 public:
  explicit part_file(const std::string& file)
      : file_(file), part_(file + ".part"), to_(part_, std::ios::binary | std::ios::trunc) {
    check();
  }
  part_file(const part_file&) = delete;
  part_file& operator=(const part_file&) = delete;
  ~part_file() {
    std::error_code ignored;
    if (!whole_) std::filesystem::remove(part_, ignored);
  }
  void add(std::string_view piece) {
    to_.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    check();
  }
  void finish() {
    to_.close();
    check();
    std::filesystem::rename(part_, file_);
    whole_ = true;
  }

 private:
  void check() const {
    if (!to_) throw std::runtime_error("fetch: " + part_ + " cannot be written");
  }
  const std::string file_, part_;
  std::ofstream to_;
  bool whole_ = false;
};

troupe::task<> save(troupe::http::client_response& answer, std::string file) {
  progress bar(answer.length());
  std::optional<part_file> to;
  if (!file.empty()) to.emplace(file);
  troupe::pipe_stream out = troupe::pipe_stream::standard_output();
  for (;;) {
    const std::string_view piece = co_await answer.read();
    if (piece.empty()) break;
    if (to) {
      to->add(piece);
    } else {
      co_await out.write_all(piece);
    }
    bar.add(piece.size());
  }
  bar.finish();
  if (to) to->finish();
}

troupe::task<> fetch(wanted what) {
  troupe::http::client_options options;
  options.tls.ca_file = what.ca_file;
  options.tls.verify = !what.insecure;
  troupe::http::client web(options);
  troupe::http::client_response answer = co_await web.get(what.url);
  if (!answer.ok()) {
    throw std::runtime_error("fetch: " + answer.url() + ": " + std::to_string(answer.status()) +
                             " " + std::string(answer.reason()));
  }
  co_await save(answer, what.file);
}

int main(int argc, char** argv) {
  const std::optional<wanted> what = parse(argc, argv);
  if (!what) {
    std::cerr << "usage: fetch URL [-o FILE] [--cacert FILE] [--insecure]\n";
    return 2;
  }
  troupe::runtime rt;
  rt.spawn(fetch(*what));
  try {
    rt.run();
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
