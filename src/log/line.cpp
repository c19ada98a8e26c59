#include "log/line.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/text/hex.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/task/trace_context.hpp"

namespace troupe::log {
namespace {

// A text that is kept or written, cut off.
std::string_view cut(std::string_view text) noexcept { return text.substr(0, value_bytes_max); }

std::int64_t unix_ns_of(const ::timespec& time) noexcept {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// 2026-01-02T03:04:05.678901Z. Rejected: the text of the last second in each thread, 32 bytes of
// scarce thread-local storage (docs/decisions/loading.md).
void add_time(std::string& line_text, const ::timespec& now) {
  namespace chrono = std::chrono;
  const chrono::sys_seconds second{chrono::seconds(now.tv_sec)};
  const auto day = chrono::floor<chrono::days>(second);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss time(second - day);
  std::array<char, 27> text;
  char* at = text.data();
  const auto add = [&at](long number, int digits, char behind) {
    for (int i = digits; i-- > 0; number /= 10) at[i] = static_cast<char>('0' + number % 10);
    at += digits;
    *at++ = behind;
  };
  add(static_cast<int>(date.year()), 4, '-');
  add(static_cast<unsigned>(date.month()), 2, '-');
  add(static_cast<unsigned>(date.day()), 2, 'T');
  add(time.hours().count(), 2, ':');
  add(time.minutes().count(), 2, ':');
  add(time.seconds().count(), 2, '.');
  add(now.tv_nsec / 1000, 6, 'Z');
  line_text.append(text.data(), text.size());
}

bool is_plain(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](char letter) { return letter >= ' ' && letter < 127; });
}

// Whether a value needs quotes in the form for people.
bool is_word(std::string_view text) noexcept {
  return !text.empty() && is_plain(text) && text.find_first_of(" \"=\\") == std::string_view::npos;
}

template <std::size_t Bytes>
std::array<char, 2 * Bytes> hex_of(const std::array<std::uint8_t, Bytes>& bytes) noexcept {
  std::array<char, 2 * Bytes> text;
  for (std::size_t i = 0; i < Bytes; ++i) {
    const auto digits = base::hex_of(bytes[i]);
    text[2 * i] = digits[0];
    text[2 * i + 1] = digits[1];
  }
  return text;
}

std::string text_of(const std::exception_ptr& failure) {
  if (failure == nullptr) return "none";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace

void add_field(line& target, const field& added) { target.add(added); }

// A cut inside a character leaves bytes that are no UTF-8, which JSON's writer replaces.
void line::add_text(std::string_view text) {
  text = cut(text);
  if (as_ == form::json) {
    json_.value(text);
  } else if (is_word(text)) {
    text_ += text;
  } else {
    base::add_json_string(text_, text);
  }
}

// Text for people, in which a line break or a terminal's control sequence does no harm.
void line::add_plain(std::string_view text) {
  text = cut(text);
  if (is_plain(text)) {
    text_ += text;
  } else {
    base::add_json_characters(text_, text);
  }
}

void line::add_name(std::string_view name) {
  if (as_ == form::json) {
    json_.key(cut(name));
    return;
  }
  text_ += ' ';
  add_plain(name);
  text_ += '=';
}

void line::add_member(std::string_view name, std::string_view value) {
  add_name(name);
  add_text(value);
}

void line::begin(level severity, std::string_view logger, std::string_view text) {
  text_.reserve(256 + text.size());
  ::timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (kept_ != nullptr) {
    kept_->unix_ns = unix_ns_of(now);
    kept_->severity = severity;
    kept_->text = cut(text);
  }
  if (as_ == form::json) {
    json_.open('{').key("time").value_by([&now](std::string& out) {
      out += '"';
      add_time(out, now);
      out += '"';
    });
    json_.member("level", name_of(severity));
    if (!logger.empty()) add_member("logger", logger);
    add_member("text", text);
    return;
  }
  add_time(text_, now);
  (text_ += ' ') += name_of(severity);
  text_.append(8 - name_of(severity).size(), ' ');
  if (!logger.empty()) {
    add_plain(logger);
    text_ += ": ";
  }
  add_plain(text);
}

// In both forms alike, but for the comma of JSON.
template <class Value>
void line::add_bare(Value value) {
  if (as_ == form::json) {
    json_.value(value);
  } else {
    base::json_writer<std::string&>(text_).value(value);
  }
}

void line::add_number(double number) {
  if (std::isfinite(number)) {
    add_bare(number);
  } else {  // JSON has no such numbers
    add_text(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
  }
}

void line::add_duration(double seconds) {
  if (as_ == form::json) return add_number(seconds);
  const double size = std::abs(seconds);
  const auto [factor, unit] = size >= 1 || size == 0 ? std::pair(1.0, "s")
                              : size >= 1e-3         ? std::pair(1e3, "ms")
                              : size >= 1e-6         ? std::pair(1e6, "us")
                                                     : std::pair(1e9, "ns");
  std::array<char, 32> digits;
  std::snprintf(digits.data(), digits.size(), "%.6g", seconds * factor);
  (text_ += digits.data()) += unit;
}

void line::add_value(const field& shown) {
  switch (shown.kind_) {
    case field::kind::integer:
      return add_bare(shown.value_.integer);
    case field::kind::natural:
      return add_bare(shown.value_.natural);
    case field::kind::truth:
      return add_bare(shown.value_.truth);
    case field::kind::real:
      return add_number(shown.value_.real);
    case field::kind::text:
      return add_text({shown.value_.text.data, shown.value_.text.size});
    case field::kind::duration:
      return add_duration(shown.value_.real);
    case field::kind::exception:
      return add_text(static_cast<const std::exception*>(shown.value_.object)->what());
    case field::kind::exception_ptr:
      return add_text(text_of(*static_cast<const std::exception_ptr*>(shown.value_.object)));
    case field::kind::error_code:
      return add_text(static_cast<const std::error_code*>(shown.value_.object)->message());
    case field::kind::callable:
      return;
  }
}

void line::keep(const field& given) {
  record_field& kept = kept_->fields.emplace_back();
  kept.name = cut(given.name_);
  const auto keep_text = [&kept](std::string_view text) { kept.value = std::string(cut(text)); };
  switch (given.kind_) {
    case field::kind::integer:
      kept.value = given.value_.integer;
      break;
    case field::kind::natural:
      kept.value = given.value_.natural;
      break;
    case field::kind::truth:
      kept.value = given.value_.truth;
      break;
    case field::kind::real:
    case field::kind::duration:
      kept.value = given.value_.real;
      break;
    case field::kind::text:
      return keep_text({given.value_.text.data, given.value_.text.size});
    case field::kind::exception:
      return keep_text(static_cast<const std::exception*>(given.value_.object)->what());
    case field::kind::exception_ptr:
      return keep_text(text_of(*static_cast<const std::exception_ptr*>(given.value_.object)));
    case field::kind::error_code:
      return keep_text(static_cast<const std::error_code*>(given.value_.object)->message());
    case field::kind::callable:
      break;
  }
}

// A callable that throws gives the text of its exception.
void line::add(const field& added) {
  if (added.kind_ == field::kind::callable) {
    const std::size_t before = text_.size();
    const bool had_fields = has_fields_;
    const std::size_t kept_before = kept_ == nullptr ? 0 : kept_->fields.size();
    try {
      return added.value_.callable.add(added.value_.callable.make, added.name_, *this);
    } catch (...) {
      text_.resize(before);
      json_.resume_after_value();
      has_fields_ = had_fields;
      if (kept_ != nullptr) kept_->fields.resize(kept_before);
      return add(field(added.name_, std::current_exception()));
    }
  }
  if (as_ == form::json && !has_fields_) json_.key("fields").open('{');
  has_fields_ = true;
  if (kept_ != nullptr) keep(added);
  add_name(added.name_);
  add_value(added);
}

void line::end() {
  const bool json = as_ == form::json;
  if (json && has_fields_) json_.close('}');
  if (const actor::cell* const writer = actor::current_cell()) {
    add_name("actor");
    if (json) {
      add_text(writer->type->name);
      add_name("actor_id");
    } else {
      add_plain(writer->type->name);
      text_ += '#';
    }
    add_bare(actor::id_of(*writer));
    if (kept_ != nullptr) {
      kept_->actor = writer->type->name;
      kept_->actor_id = actor::id_of(*writer);
    }
  }
  if (const auto trace = this_call::trace()) {
    const auto id = hex_of(trace->trace_id);
    const auto span = hex_of(trace->span_id);
    add_member(json ? "trace_id" : "trace", {id.data(), id.size()});
    add_member(json ? "span_id" : "span", {span.data(), span.size()});
    if (kept_ != nullptr) kept_->trace = trace;
  }
  if (json) json_.close('}');
  text_ += '\n';
}

}  // namespace troupe::log
