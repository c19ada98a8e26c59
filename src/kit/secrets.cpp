#include "kit/secrets.hpp"

#include <sys/random.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "kit/clock_and_random.hpp"

namespace troupe::kit {

unsigned char secret_source::next() {
  if (is_simulated()) return static_cast<unsigned char>(random_number());
  if (left_ == 0) {
    if (::getrandom(bytes_.data(), bytes_.size(), 0) != static_cast<ssize_t>(bytes_.size()))
      throw std::system_error(errno, std::generic_category(),
                              "troupe: the operating system gives no random bytes");
    left_ = bytes_.size();
  }
  // Each byte is used once, and not kept.
  const unsigned char byte = bytes_[--left_];
  bytes_[left_] = 0;
  return byte;
}

std::string secret_source::token() {
  constexpr std::string_view letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  static_assert(letters.size() == 64);
  std::string made(22, ' ');
  for (char& letter : made) letter = letters[next() % letters.size()];
  return made;
}

}  // namespace troupe::kit
