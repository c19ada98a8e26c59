#include "cluster/topics/topic_table.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <utility>

#include "base/invariant.hpp"
#include "cluster/core/frames.hpp"

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

task<> topic_table::publish(std::string topic, std::string frame) {
  check_name(topic);
  core_.check_not_left();
  auto sends = core_.way().send(core_.topic_subject(topic), std::move(frame));
  co_await std::move(sends);
}

task<> topic_table::subscribe(std::string topic, std::string group,
                              std::shared_ptr<topic_reader> reader) {
  check_name(topic);
  check_group(group);
  core_.check_not_left();
  const topic_name name(core_.topic_subject(topic), std::move(group));
  {
    std::lock_guard held(mutex_);
    auto& readers = topics_[name].readers;
    readers.push_back(std::move(reader));
    if (readers.size() > 1) co_return;
  }
  const auto takes = [self = this, node = core_.weak_node(), name](incoming message) -> task<> {
    state_ref alive = node.lock();
    if (alive == nullptr) co_return;
    auto gives = give(self, std::move(alive), name, std::move(message.bytes));
    co_await std::move(gives);
  };
  auto begins = core_.way().take(name.first, name.second, takes);
  co_await std::move(begins);
}

std::vector<std::shared_ptr<topic_reader>> topic_table::readers_of(const topic_name& name) {
  std::lock_guard held(mutex_);
  const auto found = topics_.find(name);
  if (found == topics_.end()) return {};
  topic& known = found->second;
  TROUPE_INVARIANT(!known.readers.empty(), "N9");
  if (name.second.empty()) return known.readers;
  return {known.readers[known.next++ % known.readers.size()]};
}

task<> topic_table::give(topic_table* self, state_ref node, topic_name name, std::string frame) {
  for (const auto& reader : self->readers_of(name)) {
    auto takes = reader->take(node, frame);
    co_await std::move(takes);
  }
}

void topic_table::unsubscribe(const std::shared_ptr<topic_reader>& reader) noexcept {
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
  core_.start_quietly([&way = core_.way(), ended] { return way.leave(ended.first, ended.second); });
}

void topic_table::close() noexcept {
  std::map<topic_name, topic> topics;
  {
    std::lock_guard held(mutex_);
    topics.swap(topics_);
  }
  for (const auto& [name, topic] : topics) {
    for (const auto& reader : topic.readers) reader->close();
  }
}

}  // namespace troupe::cluster::parts
