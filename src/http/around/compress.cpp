#include "troupe/http/around/compress.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "http/coding/encoder.hpp"
#include "http/routing/response_parts.hpp"
#include "http/values/parts.hpp"
#include "troupe/http/message.hpp"
#include "troupe/http/values/accept.hpp"
#include "troupe/io/error.hpp"
#include "troupe/sync/mutex.hpp"

namespace troupe::http {

namespace {

// Whether bodies of that type become smaller, as those of pictures and films do not.
bool is_worth_it(std::string_view type) noexcept {
  type = trimmed(type.substr(0, type.find(';')));
  constexpr std::array<std::string_view, 6> others{"application/json", "application/javascript",
                                                   "application/xml",  "application/x-ndjson",
                                                   "application/wasm", "application/manifest+json"};
  const auto ends = [&](std::string_view with) {
    return type.size() > with.size() && same_word(type.substr(type.size() - with.size()), with);
  };
  return same_word(type.substr(0, 5), "text/") || ends("+json") || ends("+xml") ||
         std::ranges::any_of(others, [&](std::string_view one) { return same_word(one, type); });
}

// The coding for the answer; nothing: as it is. `at_any_cost`: the client refuses it as it is.
struct choice {
  std::optional<coding> best;
  bool at_any_cost = false;
};

choice choose(std::string_view accepted) noexcept {
  choice made;
  quality highest = 0;
  for (const coding one : {coding::brotli, coding::zstd, coding::gzip}) {
    const quality wanted = has_coding(one) ? quality_of_coding(accepted, name_of(one)) : 0;
    if (wanted <= highest) continue;
    highest = wanted;
    made.best = one;
  }
  const quality plain = quality_of_coding(accepted, "identity");
  made.at_any_cost = plain == 0;
  // A client that says nothing of identity takes it, but prefers what it has named.
  if (plain > highest && names_identity(accepted)) made.best.reset();
  return made;
}

// A stream that sends what it gets through an encoder to another one.
class encoded_transport final : public transport {
 public:
  encoded_transport(body_writer& to, coding by) : to_(to), encoder_(make_encoder(by)) {}

  task<std::size_t> receive(std::span<char>, std::chrono::nanoseconds) override { co_return 0; }
  task<std::uint64_t> send_file(const file&, std::uint64_t, std::uint64_t) override { co_return 0; }
  task<> send(std::string_view bytes) override { return send_owned(std::string(bytes)); }
  task<> send_owned(std::string bytes) override {
    return encode(std::move(bytes), encoder::until::flush);
  }
  task<> finish() { return encode(std::string(), encoder::until::end); }

 private:
  // Branches may write at the same time, so what one has encoded has to be sent before the next.
  task<> encode(std::string bytes, encoder::until what) {
    const mutex::guard held = co_await busy_.lock();
    // A piece that was encoded and not sent is missing from all that would follow.
    if (broken_) throw cancelled("a piece of the answer was not sent");
    broken_ = true;
    std::string made;
    encoder_->add(bytes, made, what);
    co_await to_.write(made);
    broken_ = false;
  }

  body_writer& to_;
  const std::unique_ptr<encoder> encoder_;
  mutex busy_;
  bool broken_ = false;
};

task<> send_encoded(stream_function how, coding by, body_writer& to) {
  encoded_transport over(to, by);
  body_writer inner(over, false, false);
  co_await how(inner);
  to.trailer_lines() += inner.trailer_lines();
  co_await over.finish();
}

task<> send_events(event_function how, body_writer& to) {
  event_writer events(to);
  co_await how(events);
}

std::string encoded(std::string_view body, coding by) {
  thread_local std::array<std::unique_ptr<encoder>, 3> kept;
  // Taken out while it works: what it throws leaves no half-used one behind.
  std::unique_ptr<encoder> with = std::move(kept[static_cast<std::size_t>(by)]);
  if (with == nullptr) with = make_encoder(by);
  std::string made;
  with->add(body, made, encoder::until::end);
  with->reset();
  kept[static_cast<std::size_t>(by)] = std::move(with);
  return made;
}

}  // namespace

// What the function behind handlers may do with an answer.
struct response::compression {
  explicit compression(response& of) : answer(of) {}

  std::string_view type() const noexcept {
    return answer.type_.empty() ? answer.field("Content-Type") : answer.type_;
  }
  bool is_stream() const noexcept {
    return answer.special_ != nullptr && (answer.special_->what == special::kind::stream ||
                                          answer.special_->what == special::kind::events);
  }
  bool may_change() const noexcept {
    const int status = answer.status_;
    if (status < 200 || status == 204 || status == 205 || status == 206 || status == 304)
      return false;
    if (answer.special_ != nullptr && !is_stream()) return false;
    return !answer.has_field("Content-Encoding") && !answer.has_field("Content-Range") &&
           !lists_word(answer.field("Cache-Control"), "no-transform") && is_worth_it(type());
  }

  void encode(coding by) {
    if (!is_stream()) {
      answer.body_ = encoded(answer.body(), by);
      answer.view_ = {};
    } else if (answer.special_->what == special::kind::events) {
      wrap_stream(by, [how = std::move(answer.special_->events)](body_writer& to) mutable {
        return send_events(std::move(how), to);
      });
    } else {
      wrap_stream(by, std::move(answer.special_->stream));
    }
    answer.field("Content-Encoding", name_of(by));
    weaken_tag();
  }

  response& answer;

 private:
  void wrap_stream(coding by, stream_function how) {
    answer.special_->what = special::kind::stream;
    answer.special_->stream = [by, how = std::move(how)](body_writer& to) mutable {
      return send_encoded(std::move(how), by, to);
    };
  }
  // The bytes are others now than those that the strong one names.
  void weaken_tag() {
    const std::string_view tag = answer.field("ETag");
    if (tag.empty() || tag.front() != '"') return;
    answer.fields_.insert(static_cast<std::size_t>(tag.data() - answer.fields_.data()), "W/");
  }
};

void compress::operator()(const request& asked, response& answer) const {
  response::compression of(answer);
  if (!of.may_change()) return;
  const std::size_t bytes = answer.body().size();
  if (!of.is_stream() && (bytes == 0 || bytes > bytes_max)) return;
  const choice made = choose(asked.field("Accept-Encoding"));
  if (!of.is_stream() && bytes < bytes_min && !made.at_any_cost) return;
  if (!lists_word(answer.field("Vary"), "Accept-Encoding") && answer.field("Vary") != "*")
    answer.field("Vary", "Accept-Encoding");
  if (made.best) of.encode(*made.best);
}

}  // namespace troupe::http
