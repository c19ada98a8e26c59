#include "troupe/http/around/log.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <exception>
#include <string>
#include <utility>

#include "base/text/hex.hpp"
#include "base/text/json_text.hpp"
#include "kit/clock_and_random.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/around/limits.hpp"
#include "troupe/http/fault.hpp"
#include "troupe/io/error.hpp"
#include "troupe/log/log.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/trace_context.hpp"

namespace troupe::http {

namespace {

// The address, without the brackets of IPv6.
std::string peer_of(const request& asked) {
  std::string peer;
  try {
    peer = peer_key(asked).value_or("");
  } catch (const io_error&) {  // the peer has disconnected
  }
  std::erase_if(peer, [](char character) { return character == '[' || character == ']'; });
  return peer.empty() ? "-" : peer;
}

void add_escaped(std::string& to, std::string_view text) {
  if (text.empty()) to += '-';
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (code < ' ' || code >= 127 || character == '"' || character == '\\') {
      to += "\\x";
      base::append_hex(to, code);
    } else {
      to += character;
    }
  }
}

std::string time_text(const char* form) {
  const std::time_t now = kit::wall_now();
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 40> text;
  return {text.data(), std::strftime(text.data(), text.size(), form, &parts)};
}

// Rejected: strftime's %b, which follows the locale that the program has chosen.
std::string time_of_combined() {
  constexpr std::array<const char*, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::string text = time_text("%d/%m/%Y:%H:%M:%S +0000");
  const int month = (text[3] - '0') * 10 + (text[4] - '0');
  return text.replace(3, 2, months[static_cast<std::size_t>(month - 1)]);
}

// The status that the server answers with, as far as it answers, when the handler throws this.
int status_of(const request& asked, const std::exception_ptr& thrown) {
  constexpr int client_has_gone = 499;  // as nginx has it
  try {
    std::rethrow_exception(thrown);
  } catch (const refused& e) {
    return asked.is_lost() || e.why() == fault::truncated ? client_has_gone : e.status();
  } catch (const cancelled&) {
    return client_has_gone;
  } catch (...) {
    return asked.is_lost() ? client_has_gone : 500;
  }
}

struct entry {
  const request& asked;
  const response& answer;
  std::string peer;
  std::chrono::nanoseconds took;
};

std::string combined(const entry& exchange) {
  const request& asked = exchange.asked;
  std::string line = exchange.peer + " - - [" + time_of_combined() + "] \"";
  line.append(asked.method_name()).append(" ");
  add_escaped(line, asked.target());
  line += asked.head().major_version == 2 ? " HTTP/2.0"
                                          : " HTTP/1." + std::to_string(asked.head().minor_version);
  line += "\" " + std::to_string(exchange.answer.status()) + " ";
  const std::size_t bytes = exchange.answer.body().size();
  line += bytes == 0 ? "-" : std::to_string(bytes);
  for (const char* name : {"Referer", "User-Agent"}) {
    line += " \"";
    add_escaped(line, asked.field(name));
    line += '"';
  }
  return line;
}

std::string as_json(const entry& exchange) {
  base::json_text line;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) line.member(name, value);
  };
  line.open('{').member("time", time_text("%Y-%m-%dT%H:%M:%SZ"));
  add("peer", exchange.peer);
  add("method", exchange.asked.method_name());
  add("target", exchange.asked.target());
  line.member("status", exchange.answer.status()).member("bytes", exchange.answer.body().size());
  line.member("ms", std::chrono::duration_cast<std::chrono::milliseconds>(exchange.took).count());
  add("referer", exchange.asked.field("Referer"));
  add("agent", exchange.asked.field("User-Agent"));
  add("id", exchange.answer.field("X-Request-Id"));
  line.close('}');
  return std::move(line).take();
}

const log::logger& access_logger() {
  static const log::logger logger("http.access");
  return logger;
}

// Fields of the request that are not there are left out: most have no Referer.
void log_line(const entry& exchange) {
  const request& asked = exchange.asked;
  const std::string_view referer = asked.field("Referer"), agent = asked.field("User-Agent"),
                         id = exchange.answer.field("X-Request-Id");
  const log::field peer("peer", exchange.peer), method("method", asked.method_name()),
      target("target", asked.target()), status("status", exchange.answer.status()),
      bytes("bytes", exchange.answer.body().size()), took("took", exchange.took),
      by("agent", agent);
  const log::logger& logger = access_logger();
  const auto write = [&](auto... more) {
    logger.info("request", {peer, method, target, status, bytes, took, by, more...});
  };
  const log::field from("referer", referer), named("id", id);
  if (referer.empty() && id.empty()) return write();
  if (referer.empty()) return write(named);
  if (id.empty()) return write(from);
  write(from, named);
}

bool is_id(std::string_view text) noexcept {
  const auto is_letter = [](char character) {
    const char letter = static_cast<char>(character | 0x20);
    return (letter >= 'a' && letter <= 'z') || (character >= '0' && character <= '9') ||
           character == '-' || character == '_' || character == '.' || character == '=';
  };
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, is_letter);
}

}  // namespace

task<response> access_log::operator()(request& asked, next_handler next) const {
  const std::chrono::nanoseconds begun = now();
  std::string peer = peer_of(asked);
  std::exception_ptr thrown;
  response answer;
  try {
    answer = co_await next(asked);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown != nullptr) answer.status(status_of(asked, thrown));
  const entry all{asked, answer, std::move(peer), now() - begun};
  if (!sink_) {
    log_line(all);
  } else {
    sink_(format_ == access_format::json ? as_json(all) : combined(all));
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
  co_return answer;
}

void request_id::operator()(const request& asked, response& answer) const {
  const std::string_view given = asked.field("X-Request-Id");
  if (is_id(given)) {
    answer.field("X-Request-Id", given);
  } else {
    answer.field("X-Request-Id", trace_context::begin().traceparent().substr(3, 32));
  }
}

}  // namespace troupe::http
