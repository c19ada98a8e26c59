// form: the fields and files of a form, of either encoding that browsers have.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/http/request.hpp"
#include "troupe/http/values/kept_share.hpp"
#include "troupe/http/values/multipart.hpp"
#include "troupe/http/values/value_text.hpp"
#include "troupe/io/file.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

// Limits of a form. Beyond one of them the answer is 413, which names the field. The route's
// body_bytes limits all of the body.
struct form_limits {
  // Maximum number of fields and files together. Default 1,000.
  std::size_t fields = 1'000;
  // Maximum bytes of the value of a field, decoded. Default 64 KiB.
  std::size_t field_bytes = 64 * 1024;
  // Maximum bytes of all names, values, and files in memory. Default 1 MiB.
  std::size_t memory_bytes = 1024 * 1024;
  // Maximum bytes of the head of a part of multipart/form-data. Default 4 KiB.
  std::size_t head_bytes = 4 * 1024;
  // Maximum number of files. Default 20.
  std::size_t files = 20;
  // Maximum bytes of one file. Default 1 GiB.
  std::uint64_t file_bytes = 1024 * 1024 * 1024;
  // A larger file is written to the disk as it arrives. Default 64 KiB.
  std::size_t kept_bytes = 64 * 1024;
  // The folder for such files, which have no name there: they last as long as the form, at most
  // until the program ends. Default: the environment's TMPDIR, else /tmp. The text must outlive the
  // reading; it is no std::string, which GCC 12 would destroy twice in a co_await.
  std::string_view folder = {};
};

// A file of a form.
class form_file {
 public:
  const std::string& name() const noexcept { return head_.name; }
  // See multipart_part.
  const std::string& file_name() const noexcept { return head_.file_name; }
  // The type that the client has sent; "" if it has sent none.
  const std::string& type() const noexcept { return head_.type; }
  std::uint64_t size() const noexcept { return bytes_; }
  // The content of a file that is in memory.
  bool in_memory() const noexcept { return !on_disk_.is_open(); }
  std::string_view text() const noexcept { return text_; }
  // The file on the disk, read from offset 0 on; not open if it is in memory.
  troupe::file& content() noexcept { return on_disk_; }
  // Writes the content to a new file. A file of that path must not exist yet. Errors: io_error.
  task<> save(std::string path);

 private:
  friend class form_maker;
  multipart_part head_;
  std::string text_;
  troupe::file on_disk_;
  std::uint64_t bytes_ = 0;
};

// The fields of a form.
class form {
 public:
  // The first value with that name, as request::query<T>() has it: also std::optional<T> and
  // std::vector<T>. Errors: status_error 400, which names the field.
  template <class T>
  T get(std::string_view name) const {
    return values::typed<T>(
        {"form field", name},
        [&, at = std::size_t{0}](std::string& to) mutable { return find(name, at, to); });
  }
  // The same, and `otherwise` if there is none.
  template <class T>
  T get(std::string_view name, T otherwise) const {
    std::optional<T> found = get<std::optional<T>>(name);
    return found ? std::move(*found) : std::move(otherwise);
  }
  // All fields, in their order.
  const std::vector<std::pair<std::string, std::string>>& fields() const noexcept {
    return fields_;
  }
  std::vector<form_file>& files() noexcept { return files_; }
  // The first file with that name. Throws status_error 400, which names the file, if there is none.
  form_file& file(std::string_view name);

 private:
  friend class form_maker;
  bool find(std::string_view name, std::size_t& at, std::string& to) const;
  std::vector<std::pair<std::string, std::string>> fields_;
  std::vector<form_file> files_;
  values::kept_share kept_;
};

// Reads the form that is the body: application/x-www-form-urlencoded or multipart/form-data.
// Errors: status_error 415 for another type, 400 for a body that is malformed, 413 beyond the
// limits; io_error of the files; the errors of request::read(). An abandoned call loses the parts
// of a multipart/form-data that it has read: a second call is then a usage_error. Cost: a large
// file is written in pieces, and takes no more memory than one piece.
//
// Example (declarations):
//     #include <troupe/http/response.hpp>
//     troupe::task<troupe::http::response> upload(troupe::http::request& asked) {
//       auto form = co_await troupe::http::read_form(asked);
//       const int album = form.get<int>("album");
//       troupe::http::form_file& picture = form.file("picture");
//       co_await picture.save("/srv/pictures/" + std::to_string(album) + ".png");
//       co_return troupe::http::response::redirect("/albums");
//     }
task<form> read_form(request& asked, form_limits limits = {});

// Reads a text of application/x-www-form-urlencoded. Errors: as read_form().
form parse_form(std::string_view text, const form_limits& limits = {});

}  // namespace troupe::http
