// wordcount: counts the words of files and folders, with an actor for each file that it finds.
//
//     ./run examples/wordcount.cpp --top 20 include src
//
// A word is a run of the letters A-Z and a-z, as long as can be, in lower case; any other byte ends
// it, and so does the end of its file. For one file, the table is the same, blank for blank, as the
// output of:
//
//     export LC_ALL=C
//     tr -cs A-Za-z '\n' < FILE | tr A-Z a-z | grep . | sort | uniq -c | sort -k1,1nr -k2
//
// A Folder lists one folder and makes a Folder or a File for each entry; a File reads its file and
// sends the words to the Shards, which count; the Desk gives permits to open files; the Report on
// the main thread prints. No actor has to say that all is done: run() returns when the program is
// out of work.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "troupe/troupe.hpp"

namespace fs = std::filesystem;

// A block is read in one turn. Other actors run between two turns.
constexpr std::size_t block_bytes = 64 * 1024;
constexpr int entries_per_turn = 256;  // entries of a folder
constexpr int open_max = 64;           // files and folders that are open at the same time
constexpr auto progress_every = std::chrono::milliseconds(100);

struct Tally {
  std::uint64_t files = 0, words = 0, bytes = 0, skipped = 0;
};

using Rows = std::vector<std::pair<std::string, std::uint64_t>>;  // words and their counts

// Sorts the rows, most frequent first, and keeps `top` of them, or all if that is 0.
void keep_top(Rows& rows, std::size_t top) {
  const auto order = [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  };
  if (top == 0 || top > rows.size()) top = rows.size();
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(top), rows.end(),
                    order);
  rows.resize(top);
}

// Owns the terminal, and so lives on the main thread.
class Report {
 public:
  Report(bool shows_progress, std::size_t top) : shows_progress_(shows_progress), top_(top) {}

  void skipped(fs::path path, std::string why) {
    clear_line();
    std::cerr << "wordcount: skipped " << path << ": " << why << '\n';
  }

  void progress(Tally now) {
    total_ = now;
    if (!shows_progress_) return;
    clear_line();
    std::cerr << now.files << " files, " << now.bytes / 1'000'000 << " MB, " << now.words
              << " words" << std::flush;
  }

  // Takes the most frequent words of one shard, and the number of its words.
  void share(Rows rows, std::size_t distinct) {
    std::move(rows.begin(), rows.end(), std::back_inserter(rows_));
    distinct_ += distinct;
  }

  void print() {
    clear_line();
    keep_top(rows_, top_);
    for (const auto& [word, count] : rows_)
      std::cout << std::setw(7) << count << ' ' << word << '\n';
    std::cout << total_.files << " files, " << total_.words << " words, " << distinct_
              << " distinct, " << total_.bytes << " bytes, " << total_.skipped << " skipped"
              << std::endl;
    if (!std::cout) throw std::runtime_error("cannot write the table to standard output");
  }

 private:
  void clear_line() const { std::cerr << (shows_progress_ ? "\r\x1b[K" : ""); }

  bool shows_progress_;
  std::size_t top_, distinct_ = 0;
  Tally total_;
  Rows rows_;
};

// Counts the words whose hashes belong to it.
class Shard {
 public:
  // Each word of the batch is followed by a newline.
  void count(std::string batch, std::function<void()> counted) {
    for (std::string_view rest = batch; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(word.size() + 1);
      if (const auto known = counts_.find(word); known != counts_.end()) {
        ++known->second;
      } else {
        counts_.emplace(word, 1);
      }
    }
    counted();
  }

  void report(std::size_t top, troupe::ref<Report> to) {
    Rows rows(counts_.begin(), counts_.end());
    keep_top(rows, top);
    to.tell<&Report::share>(std::move(rows), counts_.size());
  }

 private:
  // Finds a string_view without making a string.
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> counts_;
};

// Gives permits to open a file or folder, so that the process does not run out of descriptors, and
// counts the results.
class Desk {
 public:
  explicit Desk(troupe::ref<Report> report) : report_(std::move(report)) {}

  // Calls `go` once it has a permit, which give_back() returns.
  void ask(std::function<void()> go) {
    waiting_.push_back(std::move(go));
    admit();
  }
  void give_back() {
    ++leaves_;
    admit();
  }

  // Reports to the main thread only from time to time: waking it costs more than counting a file.
  void note(Tally more) {
    total_.files += more.files, total_.words += more.words, total_.bytes += more.bytes,
        total_.skipped += more.skipped;
    if (const auto now = std::chrono::steady_clock::now(); now >= next_report_) {
      report();
      next_report_ = now + progress_every;
    }
  }
  void report() { report_.tell<&Report::progress>(total_); }

 private:
  void admit() {
    for (; leaves_ > 0 && !waiting_.empty(); --leaves_, waiting_.pop_front()) waiting_.front()();
  }

  int leaves_ = open_max;
  std::deque<std::function<void()>> waiting_;
  Tally total_;
  std::chrono::steady_clock::time_point next_report_{};
  troupe::ref<Report> report_;
};

// What every File and Folder refers to.
struct Crew {
  troupe::runtime& rt;
  troupe::ref<Report> report;
  troupe::ref<Desk> desk;
  std::vector<troupe::ref<Shard>> shards;

  void skip(const fs::path& path, const std::string& why) const {
    report.tell<&Report::skipped>(path, why);
    desk.tell<&Desk::note>(Tally{.skipped = 1});
  }
};
using SharedCrew = std::shared_ptr<const Crew>;

// Reads one file, one block in each turn. It ends when no ref to it is left.
class File {
 public:
  File(SharedCrew crew, fs::path path) : crew_(std::move(crew)), path_(std::move(path)) {}

  // Called when the Desk has given a permit.
  void open() {
    file_.reset(std::fopen(path_.c_str(), "re"));
    if (file_ == nullptr) return skip(std::generic_category().message(errno));
    batches_.resize(crew_->shards.size());
    read();
  }

 private:
  void read() {
    std::array<char, block_bytes> block;
    const std::string_view text(block.data(),
                                std::fread(block.data(), 1, block.size(), file_.get()));
    if (std::ferror(file_.get()) != 0) return skip(std::generic_category().message(errno));
    if (!begun_ && text.find('\0') != text.npos) return skip("binary");
    begun_ = true;
    ended_ = std::feof(file_.get()) != 0;

    Tally done{.files = ended_ ? 1u : 0u, .bytes = text.size()};
    for (const char c : text) done.words += take(c);
    if (ended_) done.words += take('\n');
    crew_->desk.tell<&Desk::note>(done);
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      if (batches_[i].empty()) continue;
      ++under_way_;
      crew_->shards[i].tell<&Shard::count>(std::exchange(batches_[i], {}),
                                           troupe::self(this).bind<&File::counted>());
    }
    go_on();
  }

  // Adds a byte to the current word. Returns true when the byte ends a word. A word that continues
  // in the next block waits here for its rest.
  bool take(char c) {
    const char lower = static_cast<char>(c | 0x20);
    if (lower >= 'a' && lower <= 'z') {
      word_ += lower;
      return false;
    }
    if (word_.empty()) return false;
    std::string& batch = batches_[std::hash<std::string>{}(word_) % batches_.size()];
    (batch += word_) += '\n';
    word_.clear();
    return true;
  }

  void counted() {
    --under_way_;
    if (waits_) go_on();
  }

  // Waits for the shards if they are a block behind. Together with the Desk's limit this limits the
  // memory.
  void go_on() {
    waits_ = under_way_ > (ended_ ? 0 : batches_.size());
    if (waits_) return;
    if (ended_) return finish();
    troupe::self(this).tell<&File::read>();
  }

  void skip(const std::string& why) {
    crew_->skip(path_, why);
    finish();
  }
  void finish() {
    file_.reset();
    crew_->desk.tell<&Desk::give_back>();
  }

  SharedCrew crew_;
  fs::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, &std::fclose};
  bool begun_ = false, ended_ = false, waits_ = false;
  std::size_t under_way_ = 0;  // batches that no shard has answered yet
  std::string word_;
  std::vector<std::string> batches_;  // one for each shard
};

// Lists one folder.
class Folder {
 public:
  Folder(SharedCrew crew, fs::path path) : crew_(std::move(crew)), path_(std::move(path)) {}

  // Called when the Desk has given a permit.
  void open() {
    entries_ = fs::directory_iterator(path_, error_);
    list();
  }

  // Makes the actor for `path`.
  static void visit(const SharedCrew& crew, const fs::path& path, fs::file_type type) {
    if (type == fs::file_type::directory) {
      crew->desk.tell<&Desk::ask>(crew->rt.spawn<Folder>(crew, path).bind<&Folder::open>());
    } else if (type == fs::file_type::regular) {
      crew->desk.tell<&Desk::ask>(crew->rt.spawn<File>(crew, path).bind<&File::open>());
    } else {  // a pipe or a device may never end, and links may form a circle
      crew->skip(path, type == fs::file_type::symlink ? "symbolic link" : "not a regular file");
    }
  }

 private:
  void list() {
    for (int i = 0; i < entries_per_turn && entries_ != fs::directory_iterator();
         ++i, entries_.increment(error_)) {
      std::error_code gone;  // then there is no type
      visit(crew_, entries_->path(), entries_->symlink_status(gone).type());
    }
    if (entries_ != fs::directory_iterator()) return troupe::self(this).tell<&Folder::list>();
    if (error_) crew_->skip(path_, error_.message());
    crew_->desk.tell<&Desk::give_back>();
  }

  SharedCrew crew_;
  fs::path path_;
  std::error_code error_;
  fs::directory_iterator entries_;
};

struct Options {
  std::size_t top = 10;
  bool progress = ::isatty(STDERR_FILENO) != 0;
  std::vector<fs::path> paths{};
};

int count_words(const Options& options) {
  troupe::runtime rt;
  const auto report = rt.spawn<Report>(troupe::on_main(), options.progress, options.top);
  const auto crew = std::make_shared<Crew>(rt, report, rt.spawn<Desk>(report));
  for (unsigned i = 0; i < 2 * rt.workers(); ++i) crew->shards.push_back(rt.spawn<Shard>());

  int status = 0;
  for (const fs::path& path : options.paths) {
    std::error_code error;
    const fs::file_type type =
        fs::status(path, error).type();  // follows a link here, since the user named it
    if (type == fs::file_type::directory || type == fs::file_type::regular) {
      Folder::visit(crew, path, type);
    } else {
      crew->skip(path, error ? error.message() : "not a regular file");
      status = 1;
    }
  }
  rt.run();  // returns when every word of every file has been counted

  crew->desk.tell<&Desk::report>();
  for (const auto& shard : crew->shards) shard.tell<&Shard::report>(options.top, report);
  rt.run();  // returns when the report has all it needs
  report.tell<&Report::print>();
  rt.run();
  return status;
}

// Returns nothing if the arguments are wrong.
std::optional<Options> parse(int argc, char** argv) {
  Options chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--progress") {
      chosen.progress = true;
    } else if (word == "--top" && i + 1 < argc) {
      const std::string_view number = argv[++i];
      const char* const end = number.data() + number.size();
      const auto [rest, bad] = std::from_chars(number.data(), end, chosen.top);
      if (bad != std::errc{} || rest != end) return std::nullopt;
    } else if (word.starts_with('-')) {
      return std::nullopt;
    } else {
      chosen.paths.emplace_back(word);
    }
  }
  if (chosen.paths.empty()) return std::nullopt;
  return chosen;
}

constexpr const char* usage =
    "usage: wordcount [--top N] [--progress] PATH...\n"
    "  --top N      print the N most frequent words (default 10; 0: all)\n"
    "  --progress   show the progress even if standard error is no terminal\n"
    "A folder stands for all the files in it and below; symbolic links in it are not followed. "
    "Files "
    "that\n"
    "are binary (a zero byte in the first 64 KiB) or cannot be read are named, skipped and "
    "counted.\n"
    "Ends with 0; with 1 if a PATH is neither file nor folder, or the table cannot be printed.\n";

int main(int argc, char** argv) try {
  if (std::find(argv + 1, argv + argc, std::string_view("--help")) != argv + argc) {
    std::cout << usage;
    return 0;
  }
  const auto options = parse(argc, argv);
  if (options) return count_words(*options);
  std::cerr << usage;
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "wordcount: " << failure.what() << '\n';
  return 1;
}
