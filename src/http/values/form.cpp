#include "troupe/http/values/form.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/text/release.hpp"
#include "base/text/zero_byte.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/http/values/media_type.hpp"
#include "troupe/http/values/status_error.hpp"
#include "troupe/io/error.hpp"

namespace troupe::http {

namespace {

[[noreturn]] void fail_large(std::string_view name, const std::string& why) {
  throw status_error(413, "form" + (name.empty() ? "" : " field '" + std::string(name) + "'") +
                              ": more than " + why);
}

// A file without a name, which the system removes when it is closed.
troupe::file make_nameless(std::string_view folder) {
  const char* const given = std::getenv("TMPDIR");
  const std::string where = !folder.empty()    ? std::string(folder)
                            : given != nullptr ? given
                                               : "/tmp";
  base::refuse_zero_byte(where, "http::form_limits", "the folder's path");
  int fd = ::open(where.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
    // Some file systems cannot make a file without a name.
    std::string path = where + "/troupe-form-XXXXXX";
    fd = ::mkostemp(path.data(), O_CLOEXEC);
    if (fd >= 0) ::unlink(path.c_str());
  }
  if (fd < 0) throw io_error("open", where, errno);
  return troupe::file::adopt(fd, where + "/(a file of a form)");
}

}  // namespace

// Fills a form within its limits.
class form_maker {
 public:
  // `asked`: the request whose body the form is; null if it is a text.
  explicit form_maker(const form_limits& limits, request* asked = nullptr)
      : limits_(limits), asked_(asked) {}

  void count_field() {
    if (++count_ > limits_.fields) fail_large("", std::to_string(limits_.fields) + " fields");
  }
  void use_memory(std::size_t bytes) {
    memory_ += bytes;
    if (memory_ > limits_.memory_bytes)
      fail_large("", std::to_string(limits_.memory_bytes) + " bytes in memory");
  }
  void check_field(std::string_view name, std::size_t bytes) const {
    if (bytes > limits_.field_bytes)
      fail_large(name, std::to_string(limits_.field_bytes) + " bytes");
  }
  void add(std::string name, std::string value) {
    count_field();
    check_field(name, value.size());
    use_memory(name.size() + value.size());
    form_.fields_.emplace_back(std::move(name), std::move(value));
  }
  task<> add_part(multipart_reader& parts) {
    if (parts.part().is_file) {
      co_await add_file(parts);
      co_return;
    }
    std::string name = parts.part().name, value;
    for (;;) {
      const std::string_view piece = co_await parts.read();
      if (piece.empty()) break;
      check_field(name, value.size() + piece.size());
      value += piece;
      count_kept(name.size() + value.size());
    }
    add(std::move(name), std::move(value));
    count_kept();
  }
  form finish() { return std::move(form_); }

 private:
  task<> add_file(multipart_reader& parts) {
    count_field();
    if (form_.files_.size() == limits_.files)
      fail_large(parts.part().name, std::to_string(limits_.files) + " files");
    form_file file;
    file.head_ = parts.part();
    use_memory(file.head_.name.size() + file.head_.file_name.size() + file.head_.type.size());
    for (;;) {
      const std::string_view piece = co_await parts.read();
      if (piece.empty()) break;
      if (file.bytes_ + piece.size() > limits_.file_bytes)
        fail_large(file.name(), std::to_string(limits_.file_bytes) + " bytes");
      if (file.in_memory() && file.bytes_ + piece.size() <= limits_.kept_bytes) {
        use_memory(piece.size());
        file.text_ += piece;
        count_kept();
      } else {
        if (file.in_memory()) {
          file.on_disk_ = make_nameless(limits_.folder);
          ++on_disk_;
          count_kept();
          co_await file.on_disk_.write_all_at(0, std::string_view(file.text_));
          memory_ -= file.text_.size();
          base::release(file.text_);
        }
        co_await file.on_disk_.write_all_at(file.bytes_, piece);
      }
      file.bytes_ += piece.size();
    }
    form_.files_.push_back(std::move(file));
  }

  // `unfinished_bytes`: of a part that is not a part of the form yet.
  void count_kept(std::size_t unfinished_bytes = 0) {
    if (asked_ == nullptr) return;
    const std::size_t heads = form_.fields_.capacity() * sizeof form_.fields_[0] +
                              form_.files_.capacity() * sizeof(form_file);
    form_.kept_.keep(*asked_, memory_ + heads + unfinished_bytes, on_disk_);
  }

  const form_limits& limits_;
  request* const asked_;
  form form_;
  std::size_t count_ = 0, memory_ = 0, on_disk_ = 0;
};

bool form::find(std::string_view name, std::size_t& at, std::string& to) const {
  for (; at < fields_.size(); ++at) {
    if (fields_[at].first != name) continue;
    to = fields_[at++].second;
    return true;
  }
  return false;
}

form_file& form::file(std::string_view name) {
  for (form_file& file : files_) {
    if (file.name() == name) return file;
  }
  values::fail_missing({"form file", name});
}

form parse_form(std::string_view text, const form_limits& limits) {
  form_maker maker(limits);
  while (!text.empty()) {
    const std::size_t end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    std::string name, value;
    if (!decode_percent(pair.substr(0, equals), name, true))
      throw status_error(400, "the name of a form field is not encoded correctly");
    if (equals != std::string_view::npos && !decode_percent(pair.substr(equals + 1), value, true))
      values::fail_malformed({"form field", name});
    maker.add(std::move(name), std::move(value));
  }
  return maker.finish();
}

task<form> read_form(request& asked, form_limits limits) {
  const std::string_view type = type_of_media(asked.field("Content-Type"));
  if (same_word(type, "application/x-www-form-urlencoded")) {
    const std::string_view body = co_await asked.read_all();
    co_return parse_form(body, limits);
  }
  if (!same_word(type, "multipart/form-data")) {
    throw status_error(415,
                       "Content-Type: application/x-www-form-urlencoded or multipart/form-data is "
                       "needed");
  }
  multipart_limits within;
  within.parts = limits.fields;
  within.head_bytes = limits.head_bytes;
  multipart_reader parts(asked, within);
  form_maker maker(limits, &asked);
  while (co_await parts.next()) co_await maker.add_part(parts);
  co_return maker.finish();
}

task<> form_file::save(std::string path) {
  open_options fresh;
  fresh.write = fresh.create = fresh.exclusive = true;
  fresh.read = false;
  troupe::file target = co_await troupe::file::open(path, fresh);
  if (in_memory()) {
    co_await target.write_all_at(0, std::string_view(text_));
  } else {
    constexpr std::size_t piece_bytes = 64 * 1024;
    const auto room = std::make_unique<std::array<char, piece_bytes>>();
    for (std::uint64_t at = 0; at < bytes_;) {
      const std::size_t bytes = co_await on_disk_.read_at(at, *room);
      if (bytes == 0) break;
      co_await target.write_all_at(at, std::string_view(room->data(), bytes));
      at += bytes;
    }
  }
  co_await target.close();
}

}  // namespace troupe::http
