#include "fuzz/cluster/cluster.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "cluster/core/frames.hpp"
#include "cluster/transport/simulated_network.hpp"
#include "cluster/transport/transport.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/cluster/simulation.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using namespace cluster::parts;
using values = std::vector<std::map<std::string, std::variant<int, std::optional<double>>>>;

struct Target {
  std::int64_t sum = 0;

  std::int64_t add(std::int64_t n, std::string text) {
    sum += n == 0 ? 1 : 0;
    return static_cast<std::int64_t>(text.size());
  }
  values echo(values all) { return all; }
  std::string meet(cluster::ref<Target> other) { return std::string(other.key()); }
  void fail(std::string text) { throw std::invalid_argument(text); }
  task<int> wait(std::uint8_t ms) {
    co_await sleep_for(std::chrono::milliseconds(ms));
    co_return ms;
  }
};
struct Stored {
  std::int64_t sum = 0;
  std::int64_t add(std::int64_t n) { return sum += n / 2; }
};

auto targets() {
  return cluster::kind<Target, &Target::add, &Target::echo, &Target::meet, &Target::fail,
                       &Target::wait>();
}

// What is wrong with how these bytes are read.
std::string frame_failure(std::string_view bytes) {
  if (const auto request = read_request(bytes); request && write_request(*request) != bytes)
    return "a request is written otherwise than it was read";
  if (const auto answer = read_answer(bytes); answer && write_answer(*answer) != bytes)
    return "an answer is written otherwise than it was read";
  return "";
}

class peer {
 public:
  peer(runtime& rt, const cluster::simulation& in)
      : node_(rt, in, {.name = "target"}, targets(), cluster::exception<std::invalid_argument>(),
              durable::kind<Stored, &Stored::add>()),
        way_(cluster::transport_of(in.network(), rt, "peer")) {}

  static task<> run(std::shared_ptr<peer> self, std::string_view input) {
    auto joins = self->node_.ready();
    co_await std::move(joins);
    const auto answers = [here = std::weak_ptr(self)](cluster::incoming one) -> task<> {
      const std::shared_ptr<peer> to = here.lock();
      if (to == nullptr) co_return;
      auto gives = to->way_->answer(std::move(one.reply), to->answer_);
      co_await std::move(gives);
    };
    auto takes = self->way_->take("troupe.troupe.node.peer", {}, answers);
    co_await std::move(takes);
    auto subscribes = self->node_.subscribe<values>("topic");
    const cluster::topic_stream<values> topic = co_await std::move(subscribes);
    while (!input.empty() && self->failure_.empty()) {
      const int kind = static_cast<unsigned char>(input.front()) % 6;
      const std::size_t part = static_cast<unsigned char>(input.front()) / 6;
      input.remove_prefix(1);
      std::size_t size = 0;
      if (!input.empty()) size = static_cast<unsigned char>(input.front());
      input.remove_prefix(std::min<std::size_t>(1, input.size()));
      std::string bytes(input.substr(0, size));
      input.remove_prefix(bytes.size());
      if (self->failure_.empty()) self->failure_ = frame_failure(bytes);
      auto sends = self->send(kind, part, std::move(bytes));
      co_await std::move(sends);
    }
    auto works = self->still_works();
    co_await std::move(works);
    auto stops = self->node_.stop();
    co_await std::move(stops);
    auto closes = self->way_->close(false);
    co_await std::move(closes);
  }
  const std::string& failure() const noexcept { return failure_; }

 private:
  task<> send(int kind, std::size_t part, std::string bytes) {
    const std::string subject = "troupe.troupe.node." + node_.self().id;
    const class_table kinds = targets();
    request_frame head;
    constexpr std::array<std::int64_t, 4> remaining{1'000'000, INT64_MAX, 1, 0};
    head.remaining_us = remaining[part / kinds.methods.size() % remaining.size()];
    head.arguments = bytes;
    const method_entry& method = kinds.methods[part % kinds.methods.size()];
    if (kind == 2) {
      head.kind = kinds.name;
      head.key = "key";
      head.method = method.name;
      head.signature = method.signature;
    }
    if (kind == 5) head.to = request_frame::target::durable;
    if (kind == 1) {
      auto sends = way_->send(subject, std::move(bytes));
      co_await std::move(sends);
    } else if (kind == 3) {
      auto sends = way_->send("troupe.troupe.topic.topic", std::move(bytes));
      co_await std::move(sends);
    } else if (kind == 4) {
      answer_ = std::move(bytes);
      auto asks = ask_peer();
      co_await std::move(asks);
    } else {
      auto asks = request(subject, kind == 0 ? std::move(bytes) : write_request(head));
      co_await std::move(asks);
    }
  }
  // A hostile peer may tell what it likes; each ask has an answer nevertheless.
  task<> request(std::string subject, std::string bytes) {
    const bool is_mark = bytes.empty();
    try {
      auto asks = way_->request(std::move(subject), std::move(bytes));
      auto limited = with_deadline(100s, std::move(asks));
      const std::string got = co_await std::move(limited);
      if (!is_mark && !read_answer(got)) failure_ = "an answer that is none: " + got;
    } catch (const troupe::timed_out&) {
      failure_ = "a request without an answer";
    }
  }
  // The node asks the peer, which answers as it likes. It ends in time, and with a value or an
  // exception of ours.
  task<> ask_peer() {
    const cluster::ref<Target> there = node_.on<Target>({"peer", "peer"});
    try {
      auto asks = there.ask<&Target::echo>(values{});
      static_cast<void>(co_await std::move(asks));
    } catch (const troupe::error&) {
    } catch (const std::invalid_argument&) {  // it was given to the node
    }
  }
  task<> still_works() {
    try {
      auto asks = node_.get<Target>("another").ask<&Target::add>(0, "text");
      if (co_await std::move(asks) != 4) failure_ = "the node answers with another value";
      auto reads = node_.get_durable<Stored>("another").ask<&Stored::add>(0);
      static_cast<void>(co_await std::move(reads));
    } catch (const std::exception& e) {
      failure_ = std::string("the node does not work any more: ") + e.what();
    }
  }

  const cluster::node node_;
  const std::unique_ptr<cluster::transport> way_;
  std::string answer_, failure_;
};

}  // namespace

std::string cluster_failure(std::string_view input) {
  runtime_options chosen;
  chosen.policy = policy::simulated;
  chosen.failure_lines = 0;
  runtime rt(chosen);
  const cluster::simulation in;
  const auto one = std::make_shared<peer>(rt, in);
  future<> done = rt.spawn(peer::run(one, input));
  rt.run();
  done.get();
  return one->failure();
}

}  // namespace troupe::test
