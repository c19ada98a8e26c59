#include "troupe/http/files.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <utility>

#include "base/text/zero_byte.hpp"
#include "http/h1/date.hpp"
#include "http/routing/folder.hpp"
#include "http/routing/response_parts.hpp"
#include "http/values/value_parts.hpp"
#include "kit/clock_and_random.hpp"
#include "troupe/http/values/accept.hpp"
#include "troupe/io/error.hpp"

namespace troupe::http {

namespace {

constexpr std::pair<std::string_view, std::string_view> types[] = {
    {"html", "text/html; charset=utf-8"},
    {"htm", "text/html; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"js", "text/javascript; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"txt", "text/plain; charset=utf-8"},
    {"md", "text/markdown; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"xml", "application/xml"},
    {"svg", "image/svg+xml"},
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"webp", "image/webp"},
    {"avif", "image/avif"},
    {"ico", "image/x-icon"},
    {"pdf", "application/pdf"},
    {"wasm", "application/wasm"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"ttf", "font/ttf"},
    {"mp3", "audio/mpeg"},
    {"ogg", "audio/ogg"},
    {"wav", "audio/wav"},
    {"mp4", "video/mp4"},
    {"webm", "video/webm"},
    {"zip", "application/zip"},
    {"gz", "application/gzip"},
};

std::string_view type_of(std::string_view path) noexcept {
  const std::size_t point = path.rfind('.');
  if (point != std::string_view::npos) {
    for (const auto& [ending, type] : types) {
      if (same_word(path.substr(point + 1), ending)) return type;
    }
  }
  return "application/octet-stream";
}

// opening a pipe does not block
constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// For kernels that cannot keep the look-up within the folder: opens the path step by step, and
// follows no symbolic link at all.
int open_step_by_step(int root, std::pmr::string path) noexcept {
  int at = ::dup(root);
  for (char* name = path.data(); at >= 0;) {
    char* const slash = std::find(name, path.data() + path.size(), '/');
    const bool last = slash == path.data() + path.size();
    *slash = '\0';
    const int next = ::openat(
        at, name, last ? flags | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    ::close(at);
    at = next;
    if (last) break;
    name = slash + 1;
  }
  return at;
}

constexpr int tries_max = 100;

int open_within(int root, const std::pmr::string& path) noexcept {
  open_how how{};
  how.flags = flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long opened = -1;
  // EAGAIN: a link leads upwards, and something was renamed at the same time.
  for (int tries = 0; tries < tries_max; ++tries) {
    opened = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
    if (opened >= 0 || errno != EAGAIN) break;
  }
  if (opened >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL))
    return static_cast<int>(opened);
  return open_step_by_step(root, path);
}

// True when the path consists of plain names, none of which leads upwards. Hidden names are allowed
// only if `hidden` is true.
bool is_plain(std::string_view path, bool hidden) noexcept {
  if (path.find('\\') != std::string_view::npos || path.find('\0') != std::string_view::npos)
    return false;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    if (name.empty() || name == "." || name == ".." || (!hidden && name.front() == '.'))
      return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
  return true;
}

bool hides_slash(std::string_view raw) noexcept {
  for (std::size_t i = 0; i + 2 < raw.size(); ++i) {
    if (raw[i] != '%') continue;
    const std::string_view digits = raw.substr(i + 1, 2);
    if (same_word(digits, "2f") || same_word(digits, "5c")) return true;
  }
  return false;
}

// A text without an allocation: space for three numbers of 20 digits and some words.
struct short_text {
  std::array<char, 80> letters;
  std::size_t bytes = 0;
  void add(std::string_view text) noexcept {
    text.copy(letters.data() + bytes, text.size());
    bytes += text.size();
  }
  void add(std::uint64_t number, int base = 10) noexcept {
    bytes = static_cast<std::size_t>(
        std::to_chars(letters.data() + bytes, letters.data() + letters.size(), number, base).ptr -
        letters.data());
  }
  operator std::string_view() const noexcept { return {letters.data(), bytes}; }
};

short_text etag_of(const struct stat& file, std::string_view coding) {
  const std::uint64_t modified = static_cast<std::uint64_t>(file.st_mtim.tv_sec) * 1'000'000'000u +
                                 static_cast<std::uint64_t>(file.st_mtim.tv_nsec);
  short_text tag;
  tag.add("\"");
  tag.add(modified, 16);
  tag.add("-");
  tag.add(static_cast<std::uint64_t>(file.st_size), 16);
  if (!coding.empty()) tag.add("-");
  tag.add(coding);
  tag.add("\"");
  return tag;
}

// strong: a weak tag never matches; weak: it may match
enum class comparison : std::uint8_t { strong, weak };

bool lists_tag(std::string_view list, std::string_view tag, comparison how) noexcept {
  if (list == "*") return true;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view listed = list.substr(0, comma);
    while (!listed.empty() && (listed.front() == ' ' || listed.front() == '\t'))
      listed.remove_prefix(1);
    while (!listed.empty() && (listed.back() == ' ' || listed.back() == '\t'))
      listed.remove_suffix(1);
    if (how == comparison::weak && listed.starts_with("W/")) listed.remove_prefix(2);
    if (listed == tag) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

// A list may be spread over several fields.
bool names_tag(const request& asked, std::string_view name, std::string_view tag, comparison how) {
  for (const field field : asked.fields()) {
    if (same_word(field.name, name) && lists_tag(field.value, tag, how)) return true;
  }
  return false;
}

struct range {
  bool asked = false, possible = true;
  std::uint64_t first = 0, last = 0;
};

bool read_number(std::string_view text, std::uint64_t& to) noexcept {
  const auto [rest, bad] = std::from_chars(text.data(), text.data() + text.size(), to);
  return !text.empty() && bad == std::errc{} && rest == text.data() + text.size();
}

// Reads one range in bytes. A malformed range, or several ranges, count as none: the whole file is
// sent.
range read_range(std::string_view text, std::uint64_t bytes) noexcept {
  range none;
  if (text.size() < 6 || !same_word(text.substr(0, 6), "bytes=")) return none;
  text.remove_prefix(6);
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos || text.find(',') != std::string_view::npos) return none;
  const std::string_view from = text.substr(0, dash), end = text.substr(dash + 1);
  range result;
  result.asked = true;
  if (from.empty()) {
    std::uint64_t last_ones = 0;
    if (!read_number(end, last_ones)) return none;
    result.possible = last_ones > 0 && bytes > 0;
    result.first = bytes - std::min(bytes, last_ones);
    result.last = bytes - 1;
    return result;
  }
  result.last = bytes - 1;
  std::uint64_t last = 0;
  if (!read_number(from, result.first)) return none;
  if (!end.empty()) {
    if (!read_number(end, last) || last < result.first) return none;
    result.last = std::min(last, result.last);
  }
  result.possible = result.first < bytes;
  return result;
}

// Checks If-Match or If-Unmodified-Since: false when the file is not the one that the client
// expects. RFC 9110, 13.2.2, asks for this check before all others.
bool is_expected(const request& asked, std::string_view tag, std::time_t modified) {
  if (asked.fields().has("if-match")) return names_tag(asked, "if-match", tag, comparison::strong);
  const auto since = read_date(asked.field("if-unmodified-since"), kit::wall_now());
  return !since || modified <= *since;
}

bool is_unchanged(const request& asked, std::string_view tag, std::time_t modified) {
  if (asked.fields().has("if-none-match"))
    return names_tag(asked, "if-none-match", tag, comparison::weak);
  const auto since = read_date(asked.field("if-modified-since"), kit::wall_now());
  return since && modified <= *since;
}

bool wants_range(const request& asked, std::string_view tag, std::time_t modified) {
  const std::string_view still = asked.field("if-range");
  if (still.empty()) return true;
  if (still.starts_with('"')) return still == tag;
  const auto since = read_date(still, kit::wall_now());
  return since && modified == *since;
}

response all_of(const troupe::file& from, std::uint64_t offset, std::uint64_t bytes,
                content_type type) {
  return response::file(from, offset, bytes, std::move(type)).field("Accept-Ranges", "bytes");
}

response what_is_asked_of(const request& asked, const troupe::file& from, std::uint64_t offset,
                          std::uint64_t bytes, content_type type) {
  range wanted;
  if (asked.method() == method::get) wanted = read_range(asked.field("range"), bytes);
  if (!wanted.asked) return all_of(from, offset, bytes, std::move(type));
  if (!wanted.possible) {
    return response(416)
        .field("Content-Range", "bytes */" + std::to_string(bytes))
        .field("Accept-Ranges", "bytes");
  }
  short_text range_text;
  range_text.add("bytes ");
  range_text.add(wanted.first);
  range_text.add("-");
  range_text.add(wanted.last);
  range_text.add("/");
  range_text.add(bytes);
  return response::file(from, offset + wanted.first, wanted.last - wanted.first + 1,
                        std::move(type))
      .status(206)
      .field("Content-Range", range_text)
      .field("Accept-Ranges", "bytes");
}

// A file beside another file, with the same content in fewer bytes.
struct compressed_file {
  std::string_view coding;  // empty: there is none
  troupe::file from;
  struct stat file {};
};

compressed_file find_compressed(const folder& root, const request& asked,
                                const std::pmr::string& path) {
  struct candidate {
    std::string_view coding, ending;
    quality wanted;
    int rank;  // of two that are wanted as much the higher one is served
  };
  const std::string accepted = asked.fields().list("Accept-Encoding");
  std::array<candidate, 3> all{{{"br", ".br", quality_of_coding(accepted, "br"), 2},
                                {"zstd", ".zst", quality_of_coding(accepted, "zstd"), 1},
                                {"gzip", ".gz", quality_of_coding(accepted, "gzip"), 0}}};
  const quality plain = names_identity(accepted) ? quality_of_coding(accepted, "identity") : 0;
  std::ranges::sort(all, std::greater(), [](const candidate& candidate) {
    return std::pair(candidate.wanted, candidate.rank);
  });
  for (const candidate& candidate : all) {
    if (candidate.wanted == 0 || candidate.wanted < plain) break;
    std::pmr::string beside(path, &asked.memory());
    beside += candidate.ending;
    const int fd = open_within(root.fd, beside);
    if (fd < 0) continue;
    compressed_file found{candidate.coding, troupe::file::adopt(fd, std::string()), {}};
    if (::fstat(fd, &found.file) == 0 && S_ISREG(found.file.st_mode)) return found;
  }
  return {};
}

response give(const request& asked, const troupe::file& from, const struct stat& file,
              std::string_view name, const file_options& options, std::string_view coding = {}) {
  const short_text tag = etag_of(file, coding);
  const auto bytes = static_cast<std::uint64_t>(file.st_size);
  // No file is newer than the answer.
  const auto modified = std::min<std::time_t>(file.st_mtim.tv_sec, kit::wall_now());
  const auto dress = [&](response&& answer) {
    // An answer without the file, 412 or 416, has neither its coding nor its age.
    const bool is_of_file = answer.status() < 400;
    const std::array<char, date_bytes> text = write_date(modified);
    answer.field("ETag", tag).field("Last-Modified", {text.data(), text.size()});
    if (!options.cache_control.empty() && is_of_file)
      answer.field("Cache-Control", options.cache_control);
    if (options.precompressed) answer.field("Vary", "Accept-Encoding");
    if (!coding.empty() && is_of_file) answer.field("Content-Encoding", coding);
    return std::move(answer);
  };
  if (!is_expected(asked, tag, modified)) return dress(response(412));
  if (is_unchanged(asked, tag, modified))
    return dress(response(304).field("Accept-Ranges", "bytes"));
  if (!wants_range(asked, tag, modified))
    return dress(all_of(from, 0, bytes, content_type::of_table(type_of(name))));
  return dress(what_is_asked_of(asked, from, 0, bytes, content_type::of_table(type_of(name))));
}

}  // namespace

response find_file(const folder& root, const request& asked, std::string_view rest) {
  const bool is_folder = rest.empty() || rest.ends_with('/');
  std::pmr::string path(is_folder && !rest.empty() ? rest.substr(0, rest.size() - 1) : rest,
                        &asked.memory());
  if (hides_slash(asked.head().path) || !is_plain(path, root.options.hidden)) return response(404);
  if (is_folder) {
    if (root.options.index.empty()) return response(404);
    if (!path.empty()) path += '/';
    path += root.options.index;
  }
  const int fd = open_within(root.fd, path);
  if (fd < 0) return response(errno == EMFILE || errno == ENFILE || errno == EAGAIN ? 503 : 404);
  // The file has no name: names appear only in the texts of errors, which a server does not show.
  const troupe::file from = troupe::file::adopt(fd, std::string());
  struct stat file {};
  if (::fstat(fd, &file) != 0) return response(404);
  if (S_ISDIR(file.st_mode) && !is_folder) {
    const std::string_view query = asked.query();
    return response::redirect(
        std::string(asked.head().path) + "/" + (query.empty() ? "" : "?" + std::string(query)),
        301);
  }
  if (!S_ISREG(file.st_mode)) return response(404);
  if (root.options.precompressed) {
    const compressed_file smaller = find_compressed(root, asked, path);
    if (!smaller.coding.empty())
      return give(asked, smaller.from, smaller.file, path, root.options, smaller.coding);
  }
  return give(asked, from, file, path, root.options);
}

std::shared_ptr<const folder> open_folder(const std::string& path, const file_options& options) {
  base::refuse_zero_byte(path, "http::router::files", "the folder's path");
  const int fd = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw io_error("open", path, errno);
  return std::make_shared<const folder>(fd, options);
}

// An If-Range cannot be compared with anything here: all of the part is sent.
response file_response(const request& asked, const file& from, std::uint64_t offset,
                       std::uint64_t bytes, content_type type) {
  return asked.fields().has("if-range")
             ? all_of(from, offset, bytes, std::move(type))
             : what_is_asked_of(asked, from, offset, bytes, std::move(type));
}

std::size_t read_file(const file_part& part, std::uint64_t offset, std::span<char> room) noexcept {
  std::size_t done = 0;
  while (done < room.size()) {
    const ssize_t got = ::pread(part.from.fd(), room.data() + done, room.size() - done,
                                static_cast<off_t>(part.offset + offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace troupe::http
