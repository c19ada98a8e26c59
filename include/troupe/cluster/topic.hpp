// topic: values that one node publishes, and that all subscribers on all nodes receive.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/cluster/calls.hpp"
#include "troupe/durable/codec.hpp"
#include "troupe/sync/channel.hpp"
#include "troupe/task/task.hpp"

namespace troupe::cluster {

// How a subscription takes part in a topic.
struct topic_options {
  // Of the subscriptions of one group, on all nodes, one gets each message. Empty: each
  // subscription gets all. Letters, digits, `-` and `_`.
  std::string group{};
  // The maximum number of messages that wait to be read. At this limit the node receives no more
  // messages of this topic, and messages for which the connection has no space are lost. 1 or more.
  std::size_t waiting_max = 1'024;
};

namespace parts {

// The mark of a topic's values from nodes of an earlier version.
template <class T>
std::string topic_shape_of() {
  return durable::parts::shape_text<T>(durable::parts::naming::short_names);
}

// The bytes of a value. Throws decode_error for a value of another shape.
std::span<const std::byte> topic_payload(std::string_view frame, std::string_view shape);

// Takes the messages of a topic as bytes.
class topic_reader {
 public:
  topic_reader() = default;
  topic_reader(const topic_reader&) = delete;
  topic_reader& operator=(const topic_reader&) = delete;
  virtual ~topic_reader() = default;
  virtual task<> take(state_ref on, std::string frame) = 0;
  virtual void close() noexcept = 0;
};

template <class T>
class topic_reader_of final : public topic_reader {
 public:
  explicit topic_reader_of(std::size_t waiting_max) : values(channel<T>::bounded(waiting_max)) {}
  task<> take(state_ref on, std::string frame) override {
    std::optional<T> value;
    try {
      const reading_on reading(on);
      value = durable::decode<T>(topic_payload(frame, topic_shape_of<T>()));
    } catch (const durable::decode_error&) {
    }
    if (!value) {
      refused.fetch_add(1, std::memory_order_relaxed);  // order: a counter, for people
      co_return;
    }
    try {
      auto sends = values.send(std::move(*value));
      co_await std::move(sends);
    } catch (const troupe::error&) {
      // It has been closed.
    }
  }
  void close() noexcept override { values.close(); }

  const channel<T> values;
  std::atomic<std::uint64_t> refused{0};
};

// The bytes of a value on its way to a topic.
std::string topic_frame(std::string_view shape, const bytes& value);
task<> publish(state_ref on, std::string topic, std::string frame);
task<> subscribe(state_ref on, std::string topic, std::string group,
                 std::shared_ptr<topic_reader> to);
void unsubscribe(const state_ref& on, const std::shared_ptr<topic_reader>& to) noexcept;

}  // namespace parts

// The values of a topic, in the order in which they arrived. A stream, for `|`. Movable. Thread:
// one handler or task at a time. Lifetime: after its destruction no value comes any more.
template <class T>
class topic_stream {
 public:
  using value_type = T;
  topic_stream(parts::state_ref on, std::shared_ptr<parts::topic_reader_of<T>> reader) noexcept
      : on_(std::move(on)), reader_(std::move(reader)) {}
  topic_stream(topic_stream&&) noexcept = default;
  topic_stream& operator=(topic_stream&&) = delete;
  ~topic_stream() {
    if (reader_ != nullptr) parts::unsubscribe(on_, reader_);
  }

  // Returns std::nullopt after the node has stopped.
  task<std::optional<T>> next() {
    auto receives = reader_->values.receive();
    co_return co_await std::move(receives);
  }
  // The number of received values whose type was not T.
  std::uint64_t refused() const noexcept {
    return reader_->refused.load(std::memory_order_relaxed);  // order: as where it is counted
  }

 private:
  parts::state_ref on_;
  std::shared_ptr<parts::topic_reader_of<T>> reader_;
};

}  // namespace troupe::cluster
