// Topics: values for all that subscribe, on whatever node.
#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <utility>

#include "cluster/node/node_state.hpp"

namespace troupe::cluster::parts {
namespace {

constexpr std::size_t head_bytes = sizeof(std::uint64_t);

bool is_word(unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; }
void check_name(std::string_view name) {
  bool holds = !name.empty() && name.back() != '.';
  char before = '.';
  for (const char c : name) {
    holds = holds && (c == '.' ? before != '.' : is_word(static_cast<unsigned char>(c)));
    before = c;
  }
  if (!holds)
    throw usage_error(
        "troupe: cluster: the name of a topic has letters, digits, `-`, `_` and single "
        "dots");
}
void check_group(std::string_view name) {
  if (!std::ranges::all_of(name, is_word))
    throw usage_error("troupe: cluster: the name of a group has letters, digits, `-` and `_`");
}

std::uint64_t mark_of(std::string_view shape) noexcept {
  std::uint64_t mark = durable::fingerprint_of(shape);
  if constexpr (std::endian::native == std::endian::big) {
    std::uint64_t turned = 0;
    for (int i = 0; i < 8; ++i) turned = turned << 8 | (mark >> (8 * i) & 0xFF);
    mark = turned;
  }
  return mark;
}

}  // namespace

std::string topic_frame(std::string_view shape, const bytes& value) {
  const std::uint64_t mark = mark_of(shape);
  std::string frame(head_bytes, '\0');
  std::memcpy(frame.data(), &mark, head_bytes);
  frame += as_text(value);
  return frame;
}

std::span<const std::byte> topic_payload(std::string_view frame, std::string_view shape) {
  const std::uint64_t mark = mark_of(shape);
  if (frame.size() < head_bytes || std::memcmp(frame.data(), &mark, head_bytes) != 0)
    durable::parts::refuse("the value of the topic is of another type");
  return as_bytes(frame.substr(head_bytes));
}

std::string node_state::topic_subject(std::string_view topic) const {
  return "troupe." + chosen_.cluster + ".topic." + std::string(topic);
}

task<> publish(state_ref on, std::string topic, std::string frame) {
  auto publishes = on->publish(std::move(topic), std::move(frame));
  co_await std::move(publishes);
}
task<> subscribe(state_ref on, std::string topic, std::string group,
                 std::shared_ptr<topic_reader> to) {
  auto subscribes = on->subscribe(std::move(topic), std::move(group), std::move(to));
  co_await std::move(subscribes);
}
void unsubscribe(const state_ref& on, const std::shared_ptr<topic_reader>& to) noexcept {
  on->unsubscribe(to);
}

task<> node_state::publish(std::string topic, std::string frame) {
  check_name(topic);
  if (is_stopped_) throw error(failure::stopped, "troupe: cluster: the node has been stopped");
  auto sends = way_->send(topic_subject(topic), std::move(frame));
  co_await std::move(sends);
}

task<> node_state::subscribe(std::string topic, std::string group,
                             std::shared_ptr<topic_reader> to) {
  check_name(topic);
  check_group(group);
  if (is_stopped_) throw error(failure::stopped, "troupe: cluster: the node has been stopped");
  const topic_name name(topic_subject(topic), std::move(group));
  {
    std::lock_guard held(mutex_);
    topics_[name].readers.push_back(std::move(to));
    if (topics_[name].readers.size() > 1) co_return;
  }
  const std::weak_ptr<node_state> weak_self = weak_from_this();
  const auto takes = [weak_self, name](incoming message) -> task<> {
    const state_ref self = weak_self.lock();
    if (self == nullptr) co_return;
    auto gives = self->take_topic(name, std::move(message.bytes));
    co_await std::move(gives);
  };
  auto begins = way_->take(name.first, name.second, takes);
  co_await std::move(begins);
}

task<> node_state::take_topic(topic_name name, std::string frame) {
  std::vector<std::shared_ptr<topic_reader>> readers;
  {
    std::lock_guard held(mutex_);
    const auto found = topics_.find(name);
    if (found == topics_.end() || found->second.readers.empty()) co_return;
    topic& known = found->second;
    if (name.second.empty()) {
      readers = known.readers;
    } else {
      readers.push_back(known.readers[known.next++ % known.readers.size()]);
    }
  }
  for (const auto& reader : readers) {
    auto takes = reader->take(shared_from_this(), frame);
    co_await std::move(takes);
  }
}

void node_state::unsubscribe(const std::shared_ptr<topic_reader>& reader) noexcept {
  reader->close();
  topic_name ended;
  {
    std::lock_guard held(mutex_);
    for (auto& [name, topic] : topics_) {
      if (std::erase(topic.readers, reader) != 0 && topic.readers.empty()) ended = name;
    }
    if (ended.first.empty()) return;
    topics_.erase(ended);
  }
  quietly(
      [self = shared_from_this(), ended] { return self->way_->leave(ended.first, ended.second); });
}

}  // namespace troupe::cluster::parts
