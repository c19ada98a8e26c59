#include "troupe/http/around/compress.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "http/coding/encoder.hpp"
#include "http/routing/response_parts.hpp"
#include "http/values/value_parts.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/http/values/accept.hpp"

namespace troupe::http {

namespace {

// Whether bodies of that type become smaller; pictures and films do not.
bool is_worth_it(std::string_view type) noexcept {
  type = trimmed(type.substr(0, type.find(';')));
  constexpr std::array<std::string_view, 6> others{"application/json", "application/javascript",
                                                   "application/xml",  "application/x-ndjson",
                                                   "application/wasm", "application/manifest+json"};
  const auto ends = [&](std::string_view with) {
    return type.size() > with.size() && same_word(type.substr(type.size() - with.size()), with);
  };
  return same_word(type.substr(0, 5), "text/") || ends("+json") || ends("+xml") ||
         std::ranges::any_of(others,
                             [&](std::string_view other) { return same_word(other, type); });
}

// The coding for the answer; nothing: as it is. `at_any_cost`: the client refuses it as it is.
struct choice {
  std::optional<coding> best;
  bool at_any_cost = false;
};

choice choose(std::string_view accepted) noexcept {
  choice result;
  quality highest = 0;
  for (const coding candidate : {coding::brotli, coding::zstd, coding::gzip}) {
    const quality wanted =
        has_coding(candidate) ? quality_of_coding(accepted, name_of(candidate)) : 0;
    if (wanted <= highest) continue;
    highest = wanted;
    result.best = candidate;
  }
  const quality plain = quality_of_coding(accepted, "identity");
  result.at_any_cost = plain == 0;
  // A client that does not mention identity takes it, but prefers the codings that it has named.
  if (plain > highest && names_identity(accepted)) result.best.reset();
  return result;
}

std::string encoded(std::string_view body, coding chosen) {
  thread_local std::array<std::unique_ptr<encoder>, 3> kept;
  // Taken out while it works: an exception leaves no half-used encoder behind.
  std::unique_ptr<encoder> with = std::move(kept[static_cast<std::size_t>(chosen)]);
  if (with == nullptr) with = make_encoder(chosen);
  std::string encoded_bytes;
  with->add(body, encoded_bytes, encoder::until::end);
  with->reset();
  kept[static_cast<std::size_t>(chosen)] = std::move(with);
  return encoded_bytes;
}

}  // namespace

// The access of the function behind handlers to an answer.
struct response::compression {
  explicit compression(response& target) : answer(target) {}

  std::string_view type() const noexcept {
    return answer.type_.empty() ? answer.field("Content-Type") : answer.type_.view();
  }
  bool is_stream() const noexcept {
    return answer.special_ != nullptr && answer.special_->answer_kind == special::kind::streamed;
  }
  bool may_change() const noexcept {
    const int status = answer.status_;
    if (status < 200 || status == 204 || status == 205 || status == 206) return false;
    if (answer.special_ != nullptr && !is_stream()) return false;
    return !answer.has_field("Content-Encoding") && !answer.has_field("Content-Range") &&
           !has_word("Cache-Control", "no-transform") && (is_not_modified() || is_worth_it(type()));
  }
  // It has no body, and the same fields about its representations as the answer with a body.
  bool is_not_modified() const noexcept { return answer.status_ == 304; }
  // Whether one of the fields with that name lists the word.
  bool has_word(std::string_view name, std::string_view word) const noexcept {
    for (std::string_view left = answer.fields_; !left.empty();) {
      const std::string_view line = left.substr(0, left.find("\r\n"));
      const std::string_view list = take_field_name(left);
      if (same_word(list, name) && lists_word(line.substr(list.size() + 2), word)) return true;
    }
    return false;
  }

  void encode(coding by) {
    if (!is_stream()) {
      answer.body_ = encoded(answer.body(), by);
      answer.view_ = {};
    } else {
      answer.special_->streamed.coded_by = by;
    }
    answer.field("Content-Encoding", name_of(by));
    weaken_tag();
  }
  // The bytes are others then than those that the strong one names.
  void weaken_tag() {
    const std::string_view tag = answer.field("ETag");
    if (tag.empty() || tag.front() != '"') return;
    answer.fields_.insert(static_cast<std::size_t>(tag.data() - answer.fields_.data()), "W/");
  }

  response& answer;
};

void compress::operator()(const request& asked, response& answer) const {
  response::compression compression(answer);
  if (!compression.may_change()) return;
  const std::size_t bytes = answer.body().size();
  const bool has_body = !compression.is_stream() && !compression.is_not_modified();
  if (has_body && (bytes == 0 || bytes > bytes_max)) return;
  const choice chosen = choose(asked.fields().list("Accept-Encoding"));
  if (has_body && bytes < bytes_min && !chosen.at_any_cost) return;
  if (!compression.has_word("Vary", "Accept-Encoding") && !compression.has_word("Vary", "*"))
    answer.field("Vary", "Accept-Encoding");
  if (!chosen.best) return;
  // A stream has an encoder for as long as its client likes. Without room for one it is sent as it
  // is, even to a client that refuses that.
  if (compression.is_stream() && !asked.source_->reserve_encoder(small_encoder_bytes(*chosen.best)))
    return;
  compression.is_not_modified() ? compression.weaken_tag() : compression.encode(*chosen.best);
}

}  // namespace troupe::http
