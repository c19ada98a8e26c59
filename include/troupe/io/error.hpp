// error: the errors of I/O.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>

#include "troupe/base/error.hpp"
#include "troupe/base/literal.hpp"

namespace troupe {

// The system refused an operation. The text names the operation, the peer (or path), and the
// reason.
//
// Example:
//     try {
//       throw troupe::io_error("connect", "127.0.0.1:1", ECONNREFUSED);
//     } catch (const troupe::io_error& e) {
//       std::cerr << e.what() << (e.code() == std::errc::connection_refused) << '\n';
//     }
class io_error : public error {
 public:
  io_error(literal operation, const std::string& peer, int number);

  // In the generic category: compare it with std::errc.
  std::error_code code() const noexcept { return {number_, std::generic_category()}; }
  // "connect", "read", …
  const char* operation() const noexcept { return operation_.text(); }
  verdict judged() const noexcept override;

 private:
  literal operation_;
  int number_;
};

// The peer closed the stream before all requested bytes had arrived. The buffer holds the bytes
// that have arrived.
class end_of_stream : public error {
 public:
  end_of_stream(const char* operation, const std::string& peer, std::size_t bytes);
  verdict judged() const noexcept override;
  // The number of bytes that arrived.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
};

// A file has fewer bytes than were requested. The existing bytes were read, or sent.
class end_of_file : public error {
 public:
  end_of_file(const char* operation, const std::string& path, std::size_t bytes);
  verdict judged() const noexcept override;
  // The number of existing bytes.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
};

}  // namespace troupe
