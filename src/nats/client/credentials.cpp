#include "nats/client/credentials.hpp"

#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "nats/protocol/nkey.hpp"
#include "troupe/nats/error.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::nats {
namespace {

constexpr std::size_t file_bytes_max = 1024 * 1024;

[[noreturn]] void fail(const std::string& reason) {
  throw error(failure::denied, "troupe: nats: " + reason);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(file_bytes_max, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty()) fail("the file " + path + " cannot be read, or is empty");
  return text;
}

// The text of the option, or of the file that it names.
task<std::string> text_of(std::string text, std::string path) {
  if (path.empty()) co_return text;
  auto reads = [path = std::move(path)] { return read_file(path); };
  auto later = blocking(std::move(reads));
  co_return co_await std::move(later);
}

void sign(identity& login, const std::string& seed, const std::string& nonce) {
  const std::optional<nkey> key = nkey::from_seed(seed);
  if (!key || key->kind() != key_kind::user) fail("the seed of the user is no nkey (\"SU…\")");
  if (nonce.empty()) fail("the server asks for no signature, so that an nkey is of no use");
  if (login.jwt.empty()) login.nkey = key->public_key();
  login.signature = base64url(key->sign(nonce));
}

}  // namespace

task<identity> make_identity(const server& target, std::string nonce,
                             std::shared_ptr<const options> by) {
  const options& chosen = *by;
  identity login;
  login.user = chosen.user;
  login.password = chosen.password;
  login.token = chosen.token;
  if (login.user.empty() && login.token.empty()) {
    (target.password.empty() ? login.token : login.user) = target.user;
    login.password = target.password;
  }
  if (!chosen.credentials.empty() || !chosen.credentials_file.empty()) {
    task<std::string> reads = text_of(chosen.credentials, chosen.credentials_file);
    credentials found = credentials::parse(co_await std::move(reads));
    if (found.jwt.empty()) fail("the credentials have no JWT");
    login.jwt = std::move(found.jwt);
    sign(login, found.seed, nonce);
  } else if (!chosen.nkey_seed.empty() || !chosen.nkey_file.empty()) {
    task<std::string> reads = text_of(chosen.nkey_seed, chosen.nkey_file);
    const std::string text = co_await std::move(reads);
    sign(login, seed_in(text), nonce);
  }
  co_return login;
}

}  // namespace troupe::nats
