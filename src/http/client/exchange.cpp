#include "http/client/exchange.hpp"

#include <utility>

#include "base/text/release.hpp"
#include "http/fields/field_line.hpp"
#include "http/server/calls/call_end.hpp"
#include "troupe/parallel/submitted.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::http {
namespace {

constexpr const char* is_under_way =
    "troupe: http::client_response: a read is under way already: await it first";

}  // namespace

task<> exchange::read_head(http::method asked) {
  try {
    co_await read_head_within(asked, life_.within(core_->options.head_time));
  } catch (const timed_out&) {
    throw timed_out(
        "troupe: http: " + where_ +
        ": no answer in time: try again, or allow more (client_options::head_time, or the " +
        "request's own)");
  }
}

namespace {

// Copies the fields to `text`, and their positions in it to `positions`.
void copy_fields(const http::fields& from, std::string& text,
                 std::vector<http::fields::position>& positions) {
  for (const field field : from) {
    const auto name = static_cast<std::uint32_t>(text.size());
    text += field.name;
    const auto value = static_cast<std::uint32_t>(text.size());
    text += field.value;
    positions.push_back({name, static_cast<std::uint32_t>(field.name.size()), value,
                         static_cast<std::uint32_t>(field.value.size())});
  }
}

}  // namespace

void exchange::keep_head(int status, std::string_view reason, const http::fields& fields) {
  status_ = status;
  reason_ = reason;
  copy_fields(fields, head_text_, head_positions_);
}

void exchange::keep_trailer(const http::fields& trailer) {
  copy_fields(trailer, trailer_text_, trailer_positions_);
}

void exchange::throw_slow() const {
  throw client_error(client_failure::too_slow, where_, "the body comes too slowly");
}

void exchange::throw_too_much_kept() const {
  throw client_error(client_failure::too_much_kept, where_,
                     "too much is kept of answers that were not read, and most of this one");
}

void exchange::count_kept(std::size_t collected) {
  collected_bytes_ = collected;
  const std::size_t decoding = decoded_ == nullptr ? 0 : decoded_->memory();
  kept_.count(
      core_->kept, [this] { return at_.origin(); }, collected_bytes_ + decoding);
  core_->holders.free_ended();
  if (!kept_.was_ended()) return;
  kept_.end();
  forget_collected();
  if (!progress_.is_complete()) give_up();
  throw_too_much_kept();
}

void exchange::forget_collected() noexcept {
  is_taken_ = false;
  base::release(collected_);
  collected_bytes_ = 0;
  kept_.shrink(decoded_ == nullptr ? 0 : decoded_->memory());
}

task<> exchange::check_given_up() {
  const bool given_up = co_await submissions::being_cancelled();
  if (given_up) throw cancelled("troupe: http: " + where_ + ": the read was given up");
}

void exchange::begin_decoding(http::method asked) {
  // A part of a body cannot be decoded on its own.
  if (asked == method::head || status_ == 204 || status_ == 206 || status_ == 304) return;
  const http::fields all = fields();
  const std::optional<coding> by =
      all.count("Content-Encoding") == 1 ? coding_named(all["Content-Encoding"]) : std::nullopt;
  if (!by) return;
  decoded_ = std::make_unique<decoded_body>(*by, core_->options.decoded_body_bytes);
  length_.reset();
  std::erase_if(head_positions_, [&](const http::fields::position& position) {
    const std::string_view name =
        std::string_view(head_text_).substr(position.name, position.name_bytes);
    return same_word(name, "Content-Encoding") || same_word(name, "Content-Length");
  });
}

task<std::string_view> exchange::next_decoded() {
  for (;;) {
    const std::string_view piece = decoded_->next();
    check_decoded();
    count_kept(collected_bytes_);
    if (!piece.empty()) co_return piece;
    const std::string_view came = co_await next_encoded();
    decoded_->came(came);
    if (!came.empty()) continue;
    decoded_->ended();
    check_decoded();
    co_return std::string_view();
  }
}

void exchange::check_decoded() {
  const fault wrong = decoded_->wrong();
  if (wrong == fault::none) return;
  if (!progress_.is_complete()) give_up();
  if (wrong == fault::body_too_large)
    throw client_error(client_failure::decoded_too_large, where_,
                       "the body becomes more than " +
                           std::to_string(core_->options.decoded_body_bytes) + " bytes");
  throw client_error(client_failure::bad_response, where_, text_of(wrong), wrong);
}

task<> exchange::collect() {
  for (;;) {
    const std::string_view piece = co_await next_piece();
    if (piece.empty()) break;
    if (piece.size() > core_->options.body_bytes - collected_.size()) {
      give_up();
      throw client_error(
          client_failure::body_too_large, where_,
          "the body has more than " + std::to_string(core_->options.body_bytes) + " bytes");
    }
    collected_ += piece;
    count_kept(collected_.capacity());
  }
  co_await check_given_up();
}

task<std::string> exchange::read_all() {
  const one_at_a_time alone(collecting_, is_under_way);
  if (is_taken_) forget_collected();
  try {
    co_await collect();
  } catch (const cancelled&) {  // the next call gets the collected pieces
    throw;
  } catch (...) {
    forget_collected();
    throw;
  }
  std::string all = std::move(collected_);
  forget_collected();
  co_return all;
}

task<std::string_view> exchange::read() {
  if (is_taken_) forget_collected();
  if (collected_.empty()) co_return co_await next_piece();
  const one_at_a_time alone(collecting_, is_under_way);
  co_await check_given_up();
  count_kept(collected_.capacity());
  is_taken_ = true;
  co_return collected_;
}

namespace {

task<> end_with(task<> server_end, call_end& ends) {
  co_await std::move(server_end);
  ends.end(call_end::cause::peer_gone);
}

}  // namespace

task<bool> exchange::run_upload(task<> function, task<> server_end) {
  call_end ends;
  task<bool> running = ends.run(std::move(function), end_with(std::move(server_end), ends));
  co_return co_await std::move(running);
}

bool names_field(std::string_view lines, std::string_view name) noexcept {
  while (!lines.empty()) {
    if (same_word(lines.substr(0, lines.find(':')), name)) return true;
    lines.remove_prefix(lines.find('\n') + 1);
  }
  return false;
}

bool has_length_line(client_request& asked) noexcept {
  const std::string& method = asked.method();
  return client_access::has_body(asked) || method == "POST" || method == "PUT" || method == "PATCH";
}

std::string cookie_line(const client_resources& core, client_request& asked, const url& to,
                        request_site site) {
  if (!core.options.cookies || names_field(client_access::fields(asked), "Cookie")) return "";
  const std::string field = core.options.cookies->field_for(to, site, asked.method());
  std::string line;
  if (!field.empty()) append_field(line, "Cookie", field, "cookie_jar");
  return line;
}

void keep_cookies(const client_resources& core, const exchange& answer) {
  if (!core.options.cookies) return;
  for (const field field : answer.fields())
    if (same_word(field.name, "Set-Cookie")) core.options.cookies->store(answer.at(), field.value);
}

}  // namespace troupe::http
