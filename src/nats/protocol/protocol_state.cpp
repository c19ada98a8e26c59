#include "nats/protocol/protocol_state.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/invariant.hpp"

namespace troupe::nats {
namespace {

constexpr std::uint64_t inbox_sid = 1;
// Pings of a server that takes none of our pongs.
constexpr unsigned pongs_max = 1'000;

void append_number(std::string& text, std::uint64_t number) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// The words between the first two quotation marks.
std::string_view quoted(std::string_view text) noexcept {
  const std::size_t begin = text.find('"');
  if (begin == std::string_view::npos) return {};
  const std::size_t end = text.find('"', begin + 1);
  return end == std::string_view::npos ? std::string_view()
                                       : text.substr(begin + 1, end - begin - 1);
}

// Checks only the first and the last word.
[[maybe_unused]] bool has_whole_commands(std::string_view text) noexcept {
  constexpr std::string_view commands[] = {"SUB ", "UNSUB ", "PUB ", "HPUB ", "PING\r", "PONG\r"};
  return text.empty() ||
         (text.ends_with(line_end) && std::ranges::any_of(commands, [text](std::string_view word) {
            return text.starts_with(word);
          }));
}

}  // namespace

std::string only_publishes(std::string_view commands) {
  std::string kept;
  while (!commands.empty()) {
    const std::size_t end = commands.find('\n') + 1;
    const std::string_view line = commands.substr(0, end);
    std::size_t bytes = end;
    if (line.starts_with("PUB ") || line.starts_with("HPUB ")) {
      const std::size_t space = line.rfind(' ');
      std::size_t payload = 0;
      std::from_chars(line.data() + space + 1, line.data() + line.size(), payload);
      bytes += payload + line_end.size();
      kept += commands.substr(0, bytes);
    }
    commands.remove_prefix(bytes);
  }
  return kept;
}

std::uint64_t protocol_state::subscribe(std::string_view subject, std::string_view queue,
                                        std::uint64_t ends_after) {
  const std::uint64_t sid = ++last_sid_;
  const auto added =
      subscriptions_
          .emplace(sid, subscription{std::string(subject), std::string(queue), ends_after})
          .first;
  if (connected_) write_subscription(sid, added->second);
  return sid;
}

void protocol_state::write_subscription(std::uint64_t sid, const subscription& wanted) {
  out_ += "SUB ";
  out_ += wanted.subject;
  if (!wanted.queue.empty()) out_ += ' ' + wanted.queue;
  out_ += ' ';
  append_number(out_, sid);
  out_ += line_end;
  if (wanted.ends_after == 0) return;
  out_ += "UNSUB ";
  append_number(out_, sid);
  out_ += ' ';
  append_number(out_, wanted.ends_after - wanted.delivered);
  out_ += line_end;
}

void protocol_state::unsubscribe(std::uint64_t sid) {
  const auto found = subscriptions_.find(sid);
  if (found == subscriptions_.end()) return;
  stop_delivery(sid);
  subscriptions_.erase(found);
}

void protocol_state::stop_delivery(std::uint64_t sid) {
  const auto found = subscriptions_.find(sid);
  if (found == subscriptions_.end() || std::exchange(found->second.stopped, true)) return;
  if (!connected_) return;
  out_ += "UNSUB ";
  append_number(out_, sid);
  out_ += line_end;
}

void protocol_state::publish(std::string_view subject, std::string_view reply, const headers* head,
                             std::string_view payload) {
  if (open_bytes_ != 0) {
    if (open_message* const open = find_open(subject)) end_open(*open);
  }
  write_publish(subject, reply, head, payload);
}

void protocol_state::write_publish(std::string_view subject, std::string_view reply,
                                   const headers* head, std::string_view payload) {
  const bool has_header = head != nullptr && head->size() > 0;
  const std::size_t header_bytes = has_header ? head->block_bytes() : 0;
  out_ += has_header ? "HPUB " : "PUB ";
  out_ += subject;
  out_ += ' ';
  if (!reply.empty()) {
    out_ += reply;
    out_ += ' ';
  }
  if (has_header) {
    append_number(out_, header_bytes);
    out_ += ' ';
  }
  append_number(out_, header_bytes + payload.size());
  out_ += line_end;
  if (has_header) head->append_to(out_);
  out_ += payload;
  out_ += line_end;
}

protocol_state::open_message* protocol_state::find_open(std::string_view subject) noexcept {
  for (open_message& message : open_) {
    if (message.subject == subject) return &message;
  }
  return nullptr;
}

bool protocol_state::would_join(std::string_view subject, std::size_t bytes,
                                std::size_t bytes_max) noexcept {
  const open_message* const message = find_open(subject);
  return message != nullptr && !message->payload.empty() &&
         message->payload.size() + bytes <= bytes_max;
}

void protocol_state::publish_joined(std::string_view subject, std::string_view lead,
                                    std::initializer_list<std::string_view> pieces,
                                    std::size_t bytes_max) {
  constexpr std::size_t open_max = 64;  // other nodes, mostly
  std::size_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  open_message* message = find_open(subject);
  if (message == nullptr) {
    if (open_.size() >= open_max) {
      end_all_open();
      open_.clear();
    }
    message = &open_.emplace_back();
    message->subject = subject;
  } else if (message->payload.size() + bytes > bytes_max) {
    end_open(*message);
  }
  const std::size_t before = message->payload.size();
  if (before == 0) message->payload = lead;
  for (const std::string_view piece : pieces) message->payload += piece;
  open_bytes_ += message->payload.size() - before;
}

void protocol_state::end_open(open_message& message) {
  if (message.payload.empty()) return;
  write_publish(message.subject, {}, nullptr, message.payload);
  open_bytes_ -= message.payload.size();
  message.payload.clear();
}
void protocol_state::end_all_open() {
  if (open_bytes_ == 0) return;
  for (open_message& open : open_) end_open(open);
}

void protocol_state::request(std::uint64_t number, std::string_view subject, const headers* head,
                             std::string_view payload) {
  if (!has_inbox_) {
    has_inbox_ = true;
    const auto inbox = subscriptions_.emplace(inbox_sid, subscription{inbox_ + "*", {}, 0}).first;
    if (connected_) write_subscription(inbox_sid, inbox->second);
  }
  if (open_message* const open = find_open(subject)) end_open(*open);
  const std::string token = secrets_ == nullptr ? std::string() : '-' + secrets_->token();
  [[maybe_unused]] const bool is_new =
      requests_.emplace(number, waiting_request{std::string(subject), token, taken_ + out_.size()})
          .second;
  TROUPE_INVARIANT(is_new, "N2");
  std::string reply = inbox_;
  append_number(reply, number);
  reply += token;
  publish(subject, reply, head, payload);
}

void protocol_state::cancel(std::uint64_t request) noexcept { requests_.erase(request); }

void protocol_state::ping(std::uint64_t number) {
  if (connected_) {
    end_all_open();
    out_ += "PING\r\n";
    pings_.push_back(number);
  } else if (number != 0) {
    later_pings_.push_back(number);
  }
}
std::size_t protocol_state::unanswered() const noexcept {
  return static_cast<std::size_t>(std::ranges::count(pings_, 0u));
}

void protocol_state::begin(server_info about) {
  about_ = std::move(about);
  connected_ = true;
  taken_ = 0;
  end_all_open();
  const std::string kept = std::exchange(out_, {});
  TROUPE_INVARIANT(only_publishes(kept) == kept, "N3");
  for (const auto& [sid, subscription] : subscriptions_) {
    if (!subscription.stopped) write_subscription(sid, subscription);
  }
  for (auto& [number, request] : requests_) request.position = out_.size();
  out_ += kept;
  for (const std::uint64_t number : std::exchange(later_pings_, {})) {
    out_ += "PING\r\n";
    pings_.push_back(number);
  }
}

protocol_state::losses protocol_state::end() {
  losses lost;
  connected_ = false;
  pongs_ = 0;
  std::erase_if(requests_, [&](const auto& entry) {
    const bool was_sent = entry.second.position < taken_;
    if (was_sent) lost.requests.push_back(entry.first);
    return was_sent;
  });
  for (const std::uint64_t number : std::exchange(pings_, {})) {
    if (number != 0) lost.pings.push_back(number);
  }
  end_all_open();
  out_ = only_publishes(out_);
  return lost;
}

void protocol_state::take(std::string& batch) {
  end_all_open();
  TROUPE_INVARIANT(has_whole_commands(out_), "N1");
  batch.clear();
  batch.swap(out_);
  taken_ += batch.size();
  pongs_ = 0;
}

void protocol_state::receive(parser::event parsed, parser& from, happened& event) {
  switch (parsed) {
    case parser::event::need_more:
    case parser::event::ok:
      break;
    case parser::event::message:
      return take_message(from.message(), event);
    case parser::event::ping:
      out_ += "PONG\r\n";
      if (++pongs_ <= pongs_max) break;
      event.outcome = happened::kind::broken;
      event.text = "it pings without end";
      break;
    case parser::event::pong:
      if (pings_.empty()) break;
      event.outcome = happened::kind::pong;
      event.number = pings_.front();
      pings_.pop_front();
      break;
    case parser::event::info: {
      std::optional<server_info> about = server_info::parse(from.text());
      event.outcome = about ? happened::kind::info : happened::kind::broken;
      if (about)
        about_ = std::move(*about);
      else
        event.text = "its INFO is no JSON";
      break;
    }
    case parser::event::refused:
      return take_refusal(from.text(), event);
    case parser::event::broken:
      event.outcome = happened::kind::broken;
      event.text = from.text();
      break;
  }
}

// Whether a request waits for an answer to this subject.
bool protocol_state::is_answered_by(std::string_view subject,
                                    std::uint64_t& number) const noexcept {
  if (!subject.starts_with(inbox_)) return false;
  subject.remove_prefix(inbox_.size());
  const char* const end = subject.data() + subject.size();
  const auto [rest, failed] = std::from_chars(subject.data(), end, number);
  const auto found = failed == std::errc() ? requests_.find(number) : requests_.end();
  return found != requests_.end() && found->second.token == std::string_view(rest, end);
}

void protocol_state::take_message(parser::arrived& from, happened& event) {
  event.number = from.sid;
  const auto found = subscriptions_.find(from.sid);
  if (found == subscriptions_.end()) return;
  if (from.sid == inbox_sid) {
    if (!is_answered_by(from.subject, event.number)) return;
    requests_.erase(event.number);
    event.outcome = happened::kind::answer;
  } else {
    subscription& subscribed = found->second;
    event.outcome = happened::kind::message;
    event.last = ++subscribed.delivered == subscribed.ends_after;
    if (event.last) subscriptions_.erase(found);
  }
  event.message.subject = std::move(from.subject);
  event.message.reply = std::move(from.reply);
  event.message.payload = std::move(from.payload);
  if (!from.header.empty()) event.message.head = headers::parse(from.header);
}

void protocol_state::take_refusal(const std::string& text, happened& event) {
  event.outcome = happened::kind::refused;
  event.text = text;
  if (text.starts_with("Permissions Violation for Subscription")) {
    const std::string_view subject = quoted(text);
    std::erase_if(subscriptions_, [&](const auto& entry) {
      if (entry.first == inbox_sid || entry.second.subject != subject) return false;
      event.numbers.push_back(entry.first);
      return true;
    });
    if (!event.numbers.empty()) event.outcome = happened::kind::denied_read;
  } else if (text.starts_with("Permissions Violation for Publish")) {
    const std::string_view subject = quoted(text);
    std::erase_if(requests_, [&](const auto& entry) {
      if (entry.second.subject != subject || entry.second.position >= taken_) return false;
      event.numbers.push_back(entry.first);
      return true;
    });
    if (!event.numbers.empty()) event.outcome = happened::kind::denied_send;
  }
}

}  // namespace troupe::nats
