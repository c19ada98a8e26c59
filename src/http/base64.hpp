// base64: text of bytes, with padding (RFC 4648).
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::http {

inline std::string in_base64(std::string_view bytes) {
  std::string letters(4 * bytes.size() / 3 + 5, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(letters.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  letters.resize(static_cast<std::size_t>(length));
  return letters;
}

}  // namespace troupe::http
