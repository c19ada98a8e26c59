// pipeline: reads a large CSV file of measurements, and writes a report of each station.
//
//     ./run examples/pipeline.cpp                        makes an input of its own first
//     ./run examples/pipeline.cpp readings.csv report.txt
//
// A line of the input is `station,celsius`, as `Oslo,-3.5`. The program is one pipe:
//
//     blocks of whole lines | parsed on all workers, a few blocks at once | added up | written
//
// Each part asks the one before it for the next block. So the file is read only as fast as it is
// parsed, and a file of any size needs the memory of a few blocks.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "troupe/troupe.hpp"

namespace streams = troupe::streams;

constexpr std::size_t block_bytes = 256 * 1024;
constexpr std::size_t line_bytes_max = 4 * 1024;
constexpr std::size_t station_bytes_max = 100;

struct Options {
  std::string input, report;
  std::uint64_t rows = 1'000'000;  // of an input of our own
  bool progress = false;
};

// What is known of a station, in tenths of a degree.
struct Summary {
  std::int64_t least = INT64_MAX, most = INT64_MIN, sum = 0;
  std::uint64_t count = 0;
  void add(std::int64_t tenths) {
    least = std::min(least, tenths);
    most = std::max(most, tenths);
    sum += tenths;
    ++count;
  }
  void add(const Summary& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
    sum += other.sum;
    count += other.count;
  }
};

struct Totals {
  std::map<std::string, Summary, std::less<>> stations;
  std::uint64_t bytes = 0, rows = 0, bad_rows = 0;
  void add(const Totals& other) {
    for (const auto& [name, summary] : other.stations) stations[name].add(summary);
    bytes += other.bytes;
    rows += other.rows;
    bad_rows += other.bad_rows;
  }
};

// "-3.5" as -35; nothing if it is no such number.
std::optional<std::int64_t> tenths_of(std::string_view text) {
  std::int64_t whole = 0;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto [rest, failed] = std::from_chars(text.data(), text.data() + text.size(), whole);
  const std::string_view fraction(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  const bool is_whole = fraction.empty();
  const bool has_tenth =
      fraction.size() == 2 && fraction[0] == '.' && fraction[1] >= '0' && fraction[1] <= '9';
  if (failed != std::errc() || whole < 0 || whole > 1'000'000 || (!is_whole && !has_tenth))
    return std::nullopt;
  const std::int64_t tenths = 10 * whole + (has_tenth ? fraction[1] - '0' : 0);
  return negative ? -tenths : tenths;
}

void parse_line(std::string_view line, Totals& into) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) return;
  const std::size_t comma = line.find(',');
  const auto tenths =
      comma == std::string_view::npos ? std::nullopt : tenths_of(line.substr(comma + 1));
  if (!tenths || comma == 0 || comma > station_bytes_max) {
    ++into.bad_rows;
    return;
  }
  ++into.rows;
  const std::string_view name = line.substr(0, comma);
  auto at = into.stations.find(name);
  if (at == into.stations.end()) at = into.stations.emplace(name, Summary()).first;
  at->second.add(*tenths);
}

// A task of its own, which any worker runs.
troupe::task<Totals> parse(std::string block) {
  Totals found;
  found.bytes = block.size();
  for (std::string_view rest = block; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    parse_line(rest.substr(0, end), found);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  co_return found;
}

// The file in blocks that end with a line.
troupe::async_generator<std::string> whole_lines(troupe::file from) {
  std::string kept;
  for (;;) {
    std::string block = std::move(kept);
    const std::size_t had = block.size();
    block.resize(had + block_bytes);
    const std::size_t count = co_await from.read(std::span<char>(block).subspan(had));
    block.resize(had + count);
    if (count == 0) {
      if (!block.empty()) co_yield std::move(block);
      break;
    }
    const std::size_t end = block.rfind('\n') + 1;  // 0 if there is no end of a line
    kept.assign(block, end);
    if (kept.size() > line_bytes_max) throw std::runtime_error("a line is too long");
    block.resize(end);
    if (!block.empty()) co_yield std::move(block);
  }
}

class Progress {
 public:
  Progress(std::uint64_t bytes, bool shown) : whole_(bytes), shown_(shown) {}
  void show(std::uint64_t bytes) {
    const auto percent = static_cast<int>(whole_ == 0 ? 100 : bytes * 100 / whole_);
    if (!shown_ || percent == last_) return;
    last_ = percent;
    const auto filled = static_cast<std::size_t>(percent / 4);
    std::cerr << "\r[" << std::string(filled, '#') << std::string(25 - filled, ' ') << "] "
              << percent << " %" << (percent == 100 ? "\n" : "") << std::flush;
  }

 private:
  std::uint64_t whole_;
  bool shown_;
  int last_ = -1;
};

std::string degrees(std::int64_t tenths) {
  std::array<char, 32> text{};
  const std::int64_t plain = tenths < 0 ? -tenths : tenths;
  const int bytes =
      std::snprintf(text.data(), text.size(), "%s%lld.%lld", tenths < 0 ? "-" : "",
                    static_cast<long long>(plain / 10), static_cast<long long>(plain % 10));
  return std::string(text.data(), static_cast<std::size_t>(bytes));
}

std::string line_of(const std::string& station, const Summary& of) {
  const auto count = static_cast<std::int64_t>(of.count);
  return station + ": least " + degrees(of.least) + ", mean " + degrees(of.sum / count) +
         ", most " + degrees(of.most) + ", of " + std::to_string(of.count) + "\n";
}

// Writes a block of lines at a time, each when the last one is on its way to the disk.
troupe::task<> write_report(Totals totals, std::string path) {
  troupe::open_options create;
  create.write = create.create = create.truncate = true;
  troupe::file to = co_await troupe::file::open(path, create);
  auto line = [](const auto& one) { return line_of(one.first, one.second); };
  auto write = [&to](const std::vector<std::string>& lines) -> troupe::task<> {
    std::string text;
    for (const std::string& one : lines) text += one;
    co_await to.write_all(std::move(text));
  };
  co_await (totals.stations | streams::map(line) | streams::chunks(1'000) |
            streams::for_each(write));
  co_await to.close();
}

troupe::task<Totals> run_pipeline(Options options) {
  troupe::file input = co_await troupe::file::open(options.input);
  const std::uint64_t bytes = co_await input.size();
  Progress progress(bytes, options.progress);
  const std::size_t at_once = 2 * std::max(1u, std::thread::hardware_concurrency());
  auto begin = [](std::string block) { return troupe::spawn(parse(std::move(block))); };
  auto add = [&progress](Totals all, const Totals& part) {
    all.add(part);
    progress.show(all.bytes);
    return all;
  };
  Totals all = co_await (whole_lines(std::move(input)) | streams::map(begin) |
                         streams::buffered(at_once) | streams::fold(Totals(), add));
  progress.show(bytes);
  co_await write_report(all, options.report);
  co_return all;
}

// Rows of 40 stations, the same in each run.
troupe::generator<std::string> made_rows(std::uint64_t count) {
  std::uint64_t state = 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    state = state * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
    const std::uint64_t station = (state >> 33) % 40;
    const auto tenths = static_cast<std::int64_t>((state >> 40) % 600) - 200;
    co_yield "station " + std::to_string(station) + "," + degrees(tenths) + "\n";
  }
}

troupe::task<> make_input(std::string path, std::uint64_t rows) {
  troupe::open_options create;
  create.write = create.create = create.truncate = true;
  troupe::file to = co_await troupe::file::open(path, create);
  auto write = [&to](const std::vector<std::string>& lines) -> troupe::task<> {
    std::string text;
    for (const std::string& one : lines) text += one;
    co_await to.write_all(std::move(text));
  };
  co_await (made_rows(rows) | streams::chunks(10'000) | streams::for_each(write));
  co_await to.close();
}

constexpr const char* usage =
    "usage: pipeline [--rows N] [--progress] [INPUT [REPORT]]\n"
    "  --rows N     without an INPUT: the rows of the one that it makes (default 1000000)\n"
    "  --progress   show the progress even if standard error is no terminal\n"
    "Without an INPUT it makes pipeline.csv in the folder for temporary files, and removes it\n"
    "afterwards. The REPORT is report.txt if it is not given.\n"
    "Ends with 0; with 1 if a file cannot be read or written; with 2 for other arguments.\n";

// Returns nothing if the arguments are wrong.
std::optional<Options> parse_arguments(std::span<char* const> words) {
  Options chosen;
  chosen.progress = ::isatty(STDERR_FILENO) != 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--progress") {
      chosen.progress = true;
    } else if (word == "--rows" && i + 1 < words.size()) {
      const std::string_view number = words[++i];
      const char* const end = number.data() + number.size();
      const auto [rest, failed] = std::from_chars(number.data(), end, chosen.rows);
      if (failed != std::errc() || rest != end) return std::nullopt;
    } else if (word.starts_with('-') || !chosen.report.empty()) {
      return std::nullopt;
    } else {
      (chosen.input.empty() ? chosen.input : chosen.report) = word;
    }
  }
  if (chosen.report.empty()) chosen.report = "report.txt";
  return chosen;
}

int main(int argc, char** argv) try {
  auto options =
      parse_arguments(std::span<char* const>(argv, static_cast<std::size_t>(argc)).subspan(1));
  if (!options) {
    std::cerr << usage;
    return 2;
  }
  troupe::runtime rt;
  const bool makes = options->input.empty();
  if (makes) {
    options->input = (std::filesystem::temp_directory_path() /
                      ("pipeline-" + std::to_string(::getpid()) + ".csv"))
                         .string();
    auto made = rt.spawn(make_input(options->input, options->rows));
    rt.run();
    made.get();
  }
  auto done = rt.spawn(run_pipeline(*options));
  rt.run();
  if (makes) std::filesystem::remove(options->input);
  const Totals totals = done.get();
  std::cout << totals.rows << " rows of " << totals.stations.size() << " stations, "
            << totals.bad_rows << " bad rows, " << totals.bytes << " bytes: " << options->report
            << '\n';
  return 0;
} catch (const std::exception& failure) {
  std::cerr << "pipeline: " << failure.what() << '\n';
  return 1;
}
