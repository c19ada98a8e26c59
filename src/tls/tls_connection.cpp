#include "tls/tls_connection.hpp"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/invariant.hpp"
#include "io/suspensions/at_once.hpp"
#include "troupe/base/error.hpp"

namespace troupe::tls {
namespace {

bool is_address(const std::string& host) noexcept {
  std::array<unsigned char, 16> room;
  return ::inet_pton(AF_INET, host.c_str(), room.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), room.data()) == 1;
}

// Returns the host as certificates write it: without a final dot, and without the brackets of an
// address.
std::string plain_host(std::string host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    return host.substr(1, host.size() - 2);
  if (host.ends_with('.')) host.pop_back();
  return host;
}

}  // namespace

void refuse_lock(lock_kind which) {
  throw usage_error(which == lock_kind::reader
                        ? "troupe: tls_stream: a read is under way already: await it first"
                        : "troupe: tls_stream: a write is under way already: await it first");
}

connection::connection(std::shared_ptr<context_state> context, stream&& in, stream&& out,
                       std::string host)
    : context_(std::move(context)),
      incoming_(std::move(in)),
      outgoing_(std::move(out)),
      host_(plain_host(std::move(host))),
      name_(context_->server() ? "a client"
            : host_.empty()    ? "a server"
                               : host_),
      two_ways_(!outgoing_.is_open()),
      random_(incoming_),
      ssl_(SSL_new(context_->get())) {
  ERR_clear_error();
  BIO* bio = ssl_ == nullptr ? nullptr : BIO_new(bio_method());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);  // the SSL object owns `bio`
  SSL_set_app_data(ssl_.get(), this);
  if (context_->server()) {
    SSL_set_accept_state(ssl_.get());
    return;
  }
  SSL_set_connect_state(ssl_.get());
  verify_host();
  if (context_->tickets()) {
    if (const session_ptr before = context_->take_session(host_))
      SSL_set_session(ssl_.get(), before.get());
  }
  ERR_clear_error();
}

connection::~connection() {
  // Otherwise OpenSSL takes the session for one that was cut off, and such a session may not be
  // resumed.
  if (!failure_) SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

void connection::verify_host() {
  if (host_.empty()) {
    if (context_->verifies())
      throw option_error(
          "troupe: tls_stream::client: the host is empty; give the name that the server's "
          "certificate must have");
    return;
  }
  // A dot in front would accept all names below the host's.
  const auto odd = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f;
  };
  if (host_.front() == '.' || std::any_of(host_.begin(), host_.end(), odd)) {
    throw option_error("troupe: tls_stream::client: \"" + host_ + "\" is not the name of a host");
  }
  const bool address = is_address(host_);
  // The same as SSL_set_tlsext_host_name, without its C-style cast.
  void* name = const_cast<char*>(host_.c_str());
  if (!address &&
      SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name) != 1) {
    throw option_error("troupe: tls_stream::client: \"" + host_ + "\" is too long for a host");
  }
  if (!context_->verifies()) return;
  X509_VERIFY_PARAM* wanted = SSL_get0_param(ssl_.get());
  X509_VERIFY_PARAM_set_hostflags(
      wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const int set = address ? X509_VERIFY_PARAM_set1_ip_asc(wanted, host_.c_str())
                          : X509_VERIFY_PARAM_set1_host(wanted, host_.c_str(), 0);
  if (set != 1) throw std::bad_alloc();
}

void connection::close() noexcept {
  incoming_.close();
  outgoing_.close();
}

step connection::shake() {
  const inside lock(*this);
  if (failure_) return step::failed;
  ERR_clear_error();
  const step how = must_not_end(after(SSL_do_handshake(ssl_.get()), "handshake"), "handshake");
  if (how == step::done && progress_.establish()) keep_renewed_session();
  return how;
}

// When a server renews the ticket of a session of TLS 1.2 that it resumes, OpenSSL makes the old
// session unusable, but does not report the new one.
void connection::keep_renewed_session() noexcept {
  if (context_->server() || !context_->tickets() || SSL_session_reused(ssl_.get()) == 0 ||
      SSL_version(ssl_.get()) >= TLS1_3_VERSION)
    return;
  context_->keep_session(host_, session_ptr(SSL_get1_session(ssl_.get())));
}

void connection::put_back(std::span<const std::byte> taken, std::size_t behind) {
  std::lock_guard lock(mutex_);
  const auto at = static_cast<std::ptrdiff_t>(std::min(behind, put_back_.size()));
  put_back_.insert(put_back_.begin() + at, taken.begin(), taken.end());
}

void connection::drop_put_back(std::size_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  const auto end = static_cast<std::ptrdiff_t>(std::min(bytes, put_back_.size()));
  put_back_.erase(put_back_.begin(), put_back_.begin() + end);
}

step connection::read(std::span<std::byte> buffer, std::size_t behind, std::size_t& bytes) {
  const inside lock(*this);
  if (put_back_.size() > behind) [[unlikely]] {
    bytes = std::min(buffer.size(), put_back_.size() - behind);
    const auto first = put_back_.begin() + static_cast<std::ptrdiff_t>(behind);
    const auto end = first + static_cast<std::ptrdiff_t>(bytes);
    std::copy(first, end, buffer.begin());
    put_back_.erase(first, end);
    return step::done;
  }
  if (failure_) return step::failed;
  ERR_clear_error();
  const std::size_t unsent = pending_.rest().size();
  const step how = after(SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &bytes), "read");
  if (how == step::failed || pending_.rest().size() == unsent) return how;
  if (context_->server() && SSL_version(ssl_.get()) < TLS1_3_VERSION) {
    // OpenSSL has refused to renegotiate, and the client waits for more than that.
    failure_.emplace(tls_failure::protocol, "read", name_, "the client wants to renegotiate");
    return step::failed;
  }
  // Answers that reading produces are sent with the next write, if another write comes.
  if (pending_.rest().size() <= unsent_bytes_max) return how;
  failure_.emplace(tls_failure::protocol, "read", name_,
                   "the peer wants more answers than it gets");
  return step::failed;
}

step connection::write(std::string_view chunk) {
  const inside lock(*this);
  if (failure_) return step::failed;
  if ((SSL_get_shutdown(ssl_.get()) & SSL_SENT_SHUTDOWN) != 0) {
    throw usage_error("troupe: tls_stream: nothing can be written after shutdown()");
  }
  ERR_clear_error();
  if (progress_.begin_to_write() && context_->server() && context_->tickets())
    SSL_new_session_ticket(ssl_.get());
  std::size_t written = 0;
  // The caller has the writer lock (T3), and everything before was sent. Bytes that the system
  // takes at once therefore need not be copied.
  sends_at_once_ = flying_.empty() && pending_.empty();
  const step how = after(SSL_write_ex(ssl_.get(), chunk.data(), chunk.size(), &written), "write");
  sends_at_once_ = false;
  return must_not_end(how, "write");
}

void connection::say_last(std::string_view chunk) noexcept {
  try {
    {
      const inside lock(*this);
      if (failure_ || SSL_get_shutdown(ssl_.get()) != 0) return;
      ERR_clear_error();
      std::size_t written = 0;
      const int result = SSL_write_ex(ssl_.get(), chunk.data(), chunk.size(), &written);
      if (after(result, "write") != step::done) return;
    }
    if (say_goodbye() == step::failed || !take_lock(lock_kind::writer)) return;
    const held_lock sends(*this, lock_kind::writer, held_lock::taken{});
    io::at_once::write_last(out(), outgoing());
  } catch (const std::bad_alloc&) {  // the peer sees the end of the stream
  }
}

step connection::say_goodbye() {
  const inside lock(*this);
  if (failure_) return step::failed;
  // A second call would make OpenSSL wait for the peer's close_notify.
  if ((SSL_get_shutdown(ssl_.get()) & SSL_SENT_SHUTDOWN) != 0) return step::done;
  ERR_clear_error();
  const int result = SSL_shutdown(ssl_.get());
  return result == 0 ? step::done : must_not_end(after(result, "shutdown"), "shutdown");
}

// The peer's close_notify ends only reading. For any other operation an end is a failure.
step connection::must_not_end(step how, const char* operation) {
  if (how != step::ended) return how;
  fail(operation);
  return step::failed;
}

bool connection::peer_is_done() {
  std::lock_guard lock(mutex_);
  return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0;
}

bool connection::has_input() noexcept {
  const inside lock(*this);
  if (failure_ || !put_back_.empty()) return true;
  ERR_clear_error();
  std::byte first{};
  std::size_t bytes = 0;
  const int looked = SSL_peek_ex(ssl_.get(), &first, 1, &bytes);
  const bool waits = SSL_get_error(ssl_.get(), looked) == SSL_ERROR_WANT_READ;
  ERR_clear_error();
  return !waits;
}

void connection::check_usable() {
  std::unique_lock lock(mutex_);
  if (failure_) {
    lock.unlock();
    throw_failure();
  }
  if (!progress_.is_established()) throw usage_error("troupe: tls_stream: await handshake() first");
}

step connection::after(int result, const char* operation) {
  const int how = SSL_get_error(ssl_.get(), result);
  if (memory_failed_) throw std::bad_alloc();
  switch (how) {
    case SSL_ERROR_NONE:
      return step::done;
    case SSL_ERROR_WANT_READ:
      return step::wants_input;
    case SSL_ERROR_ZERO_RETURN:
      return step::ended;
    default:
      fail(operation);
      return step::failed;
  }
}

void connection::fail(const char* operation) {
  const unsigned long first = ERR_peek_error();
  const int reason = ERR_GET_LIB(first) == ERR_LIB_SSL ? ERR_GET_REASON(first) : 0;
  const long verified = SSL_get_verify_result(ssl_.get());
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    const char* why = X509_verify_cert_error_string(verified);
    failure_.emplace(tls_failure::certificate, operation, name_,
                     take_reasons("") + " (" + why + ")", verified);
  } else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    failure_.emplace(tls_failure::certificate, operation, name_, take_reasons(""));
  } else if (!progress_.is_established() && first == 0 &&
             (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0) {
    failure_.emplace(tls_failure::truncated, operation, name_,
                     "the peer said goodbye during the handshake");
  } else if (!progress_.is_established() && begins_like_http()) {
    failure_.emplace(tls_failure::plain_http, operation, name_,
                     "the client speaks HTTP without TLS");
  } else if (last_input_ == arrival::end &&
             (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING || first == 0)) {
    failure_.emplace(tls_failure::truncated, operation, name_,
                     progress_.is_established() ? "the stream ended without the peer's close_notify"
                                                : "the peer closed during the handshake");
  } else if (reason >= SSL_AD_REASON_OFFSET) {
    failure_.emplace(tls_failure::refused_by_peer, operation, name_, take_reasons(""));
  } else {
    failure_.emplace(tls_failure::protocol, operation, name_,
                     take_reasons("OpenSSL gives no reason"));
  }
  ERR_clear_error();
}

void connection::throw_failure() {
  std::unique_lock lock(mutex_);
  const tls_error failure = *failure_;
  lock.unlock();
  throw failure;
}

std::span<std::byte> connection::room() {
  std::lock_guard lock(mutex_);
  if (last_input_ == arrival::full) {
    const std::span<std::byte> all = large_.room();
    input_ = all.data();
    return all;
  }
  large_.release();
  if (small_ == nullptr) small_ = std::make_unique_for_overwrite<small_block>();
  input_ = small_->data();
  return *small_;
}

void connection::rest() noexcept {
  std::lock_guard lock(mutex_);
  if (reader_.is_held() || input_begin_ != input_end_) return;
  small_.reset();
  large_.release();
  if (last_input_ == arrival::full) last_input_ = arrival::partial;
}

void connection::arrived(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  TROUPE_INVARIANT(reader_.is_held() && input_begin_ == input_end_, "T2");
  const std::size_t room = large_.has_block() ? block_bytes : small_bytes;
  last_input_ = bytes == 0 ? arrival::end : bytes == room ? arrival::full : arrival::partial;
  input_begin_ = 0;
  input_end_ = bytes;
  if (!progress_.is_established()) count_handshake(bytes);
  tell_news();
}

// OpenSSL limits each message of a handshake, but not all together.
void connection::count_handshake(std::size_t bytes) {
  if (handshake_bytes_ == 0 && bytes != 0) first_byte_ = static_cast<char>(*input_);
  handshake_bytes_ += bytes;
  if (handshake_bytes_ <= context_->handshake_bytes_max() || failure_) return;
  failure_.emplace(tls_failure::protocol, "handshake", name_,
                   "the peer's handshake is larger than handshake_bytes");
}

std::string_view connection::outgoing() {
  if (!flying_.empty()) return flying_.rest();
  std::lock_guard lock(mutex_);
  TROUPE_INVARIANT(writing_, "T3");
  flying_.release();
  flying_.swap(pending_);
  return flying_.rest();
}

bool connection::take_lock(lock_kind which) noexcept {
  std::lock_guard lock(mutex_);
  return which == lock_kind::reader ? reader_.take() : !std::exchange(writing_, true);
}

void connection::release_lock(lock_kind which) noexcept {
  std::lock_guard lock(mutex_);
  if (which == lock_kind::writer) {
    writing_ = false;
    return;
  }
  reader_.release();
  tell_news();
}

std::optional<future<>> connection::lock_or_news() {
  std::lock_guard lock(mutex_);
  std::optional<future<>> news = take_or_await_news();
  if (!news) reader_.lend_to_writer();
  return news;
}

std::optional<future<>> connection::lock_after_writer() {
  std::lock_guard lock(mutex_);
  if (reader_.is_held() && !reader_.is_writers()) refuse_lock(lock_kind::reader);
  return take_or_await_news();
}

std::optional<future<>> connection::take_or_await_news() {
  if (reader_.take()) return std::nullopt;
  if (!news_) news_.emplace();
  return news_->wait();
}

void connection::tell_news() noexcept {
  if (!news_) return;
  news_->set();
  news_.reset();
}

void connection::keep_session(session_ptr session) noexcept {
  context_->keep_session(host_, std::move(session));
}

const BIO_METHOD* connection::bio_method() {
  static const BIO_METHOD* troupe_method = [] {
    BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "troupe");
    if (method == nullptr) throw std::bad_alloc();
    BIO_meth_set_read_ex(method, &bio_read);
    BIO_meth_set_write_ex(method, &bio_write);
    BIO_meth_set_ctrl(method, &bio_control);
    return method;
  }();
  return troupe_method;
}

int connection::bio_read(BIO* bio, char* to, std::size_t room, std::size_t* count) noexcept {
  auto& self = *static_cast<connection*>(BIO_get_data(bio));
  TROUPE_INVARIANT(self.is_inside_, "T1");
  BIO_clear_retry_flags(bio);
  *count = std::min(room, self.input_end_ - self.input_begin_);
  if (*count == 0) {
    if (self.last_input_ != arrival::end) BIO_set_retry_read(bio);
    return 0;
  }
  std::memcpy(to, self.input_ + self.input_begin_, *count);
  self.input_begin_ += *count;
  return 1;
}

int connection::bio_write(BIO* bio, const char* from, std::size_t count,
                          std::size_t* written) noexcept {
  auto& self = *static_cast<connection*>(BIO_get_data(bio));
  TROUPE_INVARIANT(self.is_inside_, "T1");
  BIO_clear_retry_flags(bio);
  *written = count;
  try {
    if (self.sends_at_once_ && self.pending_.empty()) {
      const std::size_t sent = io::at_once::write(self.out(), {from, count});
      from += sent;
      count -= sent;
    }
    if (count != 0) self.pending_.append(from, count);
  } catch (...) {
    self.memory_failed_ = true;
    return 0;
  }
  return 1;
}

long connection::bio_control(BIO* bio, int command, long, void*) noexcept {
  const auto& self = *static_cast<const connection*>(BIO_get_data(bio));
  switch (command) {
    case BIO_CTRL_FLUSH:
      return 1;
    case BIO_CTRL_EOF:
      return self.last_input_ == arrival::end && self.input_begin_ == self.input_end_ ? 1 : 0;
    case BIO_CTRL_PENDING:
      return static_cast<long>(self.input_end_ - self.input_begin_);
    default:
      return 0;
  }
}

}  // namespace troupe::tls
