// json_error: why a text cannot be read as a value.
#pragma once

#include "troupe/base/language.hpp"

#include <string>
#include <string_view>

#include "troupe/base/error.hpp"

namespace troupe::json {

// Thrown by read(). what() names the member: "items[3].price: a number is needed"; it is fit for
// the sender of the text, and has nothing of its values.
//
// Example:
//     #include <troupe/json/read.hpp>
//     try {
//       static_cast<void>(troupe::json::read<std::vector<int>>("[1, 2, true]"));
//     } catch (const troupe::json::json_error& e) {
//       std::cerr << e.what() << '\n';  // [2]: a whole number from -2147483648 to 2147483647 …
//     }
class json_error : public error {
 public:
  json_error(std::string path, std::string_view why)
      : error((path.empty() ? std::string() : path + ": ") + std::string(why)),
        path_(std::move(path)) {}
  verdict judged() const noexcept override {
    return {verdict::party::caller, verdict::effect::none, verdict::again::never};
  }
  // "items[3].price"; "" for the whole text.
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace troupe::json
