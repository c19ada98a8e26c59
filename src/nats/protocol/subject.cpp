#include "nats/protocol/subject.hpp"

#include <algorithm>
#include <string>

#include "troupe/nats/error.hpp"

namespace troupe::nats {
namespace {

// DEL and all up to the space would end a word of the line, or the line.
bool is_word_byte(char letter) noexcept {
  const auto byte = static_cast<unsigned char>(letter);
  return byte > ' ' && byte != 0x7f;
}

const char* misfit(std::string_view subject, bool wildcards) noexcept {
  if (subject.empty()) return "it is empty";
  if (subject.size() > subject_bytes_max) return "it is longer than 1,900 bytes";
  if (!std::ranges::all_of(subject, is_word_byte)) return "it has a space or a control character";
  for (;;) {
    const std::size_t dot = subject.find('.');
    const std::string_view token = subject.substr(0, dot);
    if (token.empty()) return "one of the parts between its dots is empty";
    if (token == "*" || token == ">") {
      if (!wildcards) return "it has a wildcard, which only a subscription may have";
      if (token == ">" && dot != std::string_view::npos) return "its > is not at the end";
    }
    if (dot == std::string_view::npos) return nullptr;
    subject.remove_prefix(dot + 1);
  }
}

void check(const char* subject, std::string_view given, const char* wrong) {
  if (wrong == nullptr) return;
  std::string shown;
  for (const char letter : given.substr(0, 80))
    shown += is_word_byte(letter) || letter == ' ' ? letter : '?';
  throw error(failure::bad_subject, "troupe: nats: the " + std::string(subject) + " \"" + shown +
                                        "\" is not allowed: " + wrong);
}

}  // namespace

const char* misfit_to_publish(std::string_view subject) noexcept { return misfit(subject, false); }
const char* misfit_to_subscribe(std::string_view subject) noexcept { return misfit(subject, true); }
const char* misfit_of_queue(std::string_view name) noexcept {
  if (name.size() > 255) return "it is longer than 255 bytes";
  if (!std::ranges::all_of(name, is_word_byte)) return "it has a space or a control character";
  return nullptr;
}

void check_to_publish(std::string_view subject) {
  check("subject", subject, misfit_to_publish(subject));
}
void check_to_subscribe(std::string_view subject) {
  check("subject", subject, misfit_to_subscribe(subject));
}
void check_queue(std::string_view name) { check("queue group", name, misfit_of_queue(name)); }

}  // namespace troupe::nats
