#include "cluster/transport/network_state.hpp"

#include <algorithm>
#include <charconv>

#include "base/invariant.hpp"
#include "kit/clock_and_random.hpp"
#include "troupe/cluster/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::cluster {
namespace {

using state = simulated_network::state;

bool happens(std::uint64_t one_in) { return one_in != 0 && kit::random_number() % one_in == 0; }

std::size_t random_below(std::size_t count) {
  return static_cast<std::size_t>(kit::random_number() % count);
}

std::string_view first_token(std::string_view& subject) noexcept {
  const std::size_t dot = subject.find('.');
  const std::string_view first = subject.substr(0, dot);
  subject = dot == std::string_view::npos ? std::string_view() : subject.substr(dot + 1);
  return first;
}

// The two numbers of a reply subject.
std::optional<std::pair<std::uint64_t, std::uint64_t>> parse_reply(std::string_view reply) {
  std::pair<std::uint64_t, std::uint64_t> numbers;
  const char* const end = reply.data() + reply.size();
  const auto first = std::from_chars(reply.data(), end, numbers.first);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, numbers.second);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return numbers;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view subject) noexcept {
  while (!pattern.empty() && !subject.empty()) {
    const std::string_view wanted = first_token(pattern);
    if (wanted == ">" && pattern.empty()) return true;
    const std::string_view token = first_token(subject);
    if (wanted != "*" && wanted != token) return false;
  }
  return pattern.empty() && subject.empty();
}

void state::afterwards::run(const std::shared_ptr<state>& network) {
  for (const network_subscription_ptr& subscription : closed) subscription->arrived.close();
  for (auto& [asker, answer] : ended) asker.set_value(std::move(answer));
  for (const network_link_ptr& link : to_carry)
    static_cast<void>(link->target->on.spawn(carry(network, link)));
}

endpoint_ptr state::join(std::string node, runtime& on) {
  std::lock_guard held(mutex);
  const auto joined = std::make_shared<endpoint>(std::move(node), on, ++last_endpoint);
  endpoints.emplace(joined->number, joined);
  return joined;
}

network_subscription_ptr state::take(endpoint& caller, std::string subject, std::string queue) {
  std::lock_guard held(mutex);
  check(caller, subject, 0);
  caller.takes.push_back(
      std::make_shared<network_subscription>(caller, std::move(subject), std::move(queue)));
  return caller.takes.back();
}

void state::check(const endpoint& caller, const std::string& subject, std::size_t bytes) const {
  if (!caller.alive)
    throw error(failure::unreachable, "troupe: cluster: the connection of this node has ended");
  if (bytes > bytes_max)
    throw error(failure::too_large, "troupe: cluster: a message of " + std::to_string(bytes) +
                                        " bytes to " + subject + " is more than the network takes");
}

bool state::passes(const endpoint& from, const endpoint& target) const {
  if (from.node == target.node) return true;
  return !cut_off.contains(from.node) && !cut_off.contains(target.node) &&
         !cuts.contains({from.node, target.node});
}

bool state::is_connected(const endpoint& caller) const {
  std::lock_guard held(mutex);
  return caller.alive && !cut_off.contains(caller.node);
}

std::chrono::nanoseconds state::random_delay() const {
  std::chrono::nanoseconds most{0};
  {
    std::lock_guard held(mutex);
    most = faults.delay_max;
  }
  if (most.count() <= 0) return most;
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(random_below(static_cast<std::size_t>(most.count()))));
}

// Of each queue group one, if possible one that is not behind a cut.
std::vector<network_subscription_ptr> state::takers_of(const endpoint& caller,
                                                       std::string_view subject,
                                                       bool& anybody) const {
  std::vector<network_subscription_ptr> found;
  std::map<std::string_view, std::vector<network_subscription_ptr>> groups;
  for (const auto& [number, other] : endpoints) {
    for (const network_subscription_ptr& subscription : other->takes) {
      if (subscription->ends || !matches(subscription->subject, subject)) continue;
      anybody = true;
      if (subscription->queue.empty()) {
        found.push_back(subscription);
      } else if (passes(caller, *other)) {
        groups[subscription->queue].push_back(subscription);
      }
    }
  }
  for (const auto& [queue, members] : groups)
    found.push_back(members[random_below(members.size())]);
  return found;
}

void state::put(network_link& on, parcel added) {
  if (added.into != nullptr) ++added.into->on_the_way;
  const std::int64_t most = faults.delay_max.count();
  added.due = on.from->on.now();
  if (most > 0)
    added.due += std::chrono::nanoseconds(
        static_cast<std::int64_t>(random_below(static_cast<std::size_t>(most))));
  if (faults.reorders) {
    const auto place = static_cast<std::ptrdiff_t>(random_below(on.parcels.size() + 1));
    on.parcels.insert(on.parcels.begin() + place, std::move(added));
    return;
  }
  added.due = on.last_due = std::max(added.due, on.last_due);
  on.parcels.push_back(std::move(added));
}

void state::post(const endpoint_ptr& from, const endpoint_ptr& target, const parcel& sent,
                 afterwards& later) {
  ++seen.sent;
  const bool is_cut = !passes(*from, *target) && !faults.holds;
  if (is_cut || happens(faults.loses)) {
    ++seen.lost;
    return;
  }
  network_link_ptr& on = links[{from->number, target->number}];
  if (on == nullptr) on = std::make_shared<network_link>(from, target);
  if (happens(faults.duplicates)) put(*on, sent);
  put(*on, sent);
  if (!std::exchange(on->carried, true)) later.to_carry.push_back(on);
}

void state::send(const endpoint_ptr& caller, const std::string& subject, std::string bytes) {
  afterwards later;
  {
    std::lock_guard held(mutex);
    check(*caller, subject, bytes.size());
    parcel sent;
    sent.message.bytes = std::move(bytes);
    bool anybody = false;
    for (const network_subscription_ptr& subscription : takers_of(*caller, subject, anybody)) {
      sent.into = subscription;
      post(caller, endpoints.at(subscription->taker.number), sent, later);
    }
  }
  later.run(shared_from_this());
}

state::asked state::request(const endpoint_ptr& caller, const std::string& subject,
                            std::string bytes) {
  afterwards later;
  asked begun;
  {
    std::lock_guard held(mutex);
    check(*caller, subject, bytes.size());
    bool anybody = false;
    const auto all = takers_of(*caller, subject, anybody);
    begun.nobody = !anybody && !cut_off.contains(caller->node);
    if (begun.nobody) return begun;
    begun.number = ++last_request;
    const auto [at, is_new] = caller->requests.try_emplace(begun.number);
    TROUPE_INVARIANT(is_new, "W3");
    endpoint::request& waits = at->second;
    begun.end = waits.asker.get_future();
    parcel sent;
    sent.message.bytes = std::move(bytes);
    sent.message.reply = std::to_string(caller->number) + "." + std::to_string(begun.number);
    for (const network_subscription_ptr& subscription : all) {
      if (passes(*caller, subscription->taker)) waits.asked.push_back(subscription->taker.number);
      sent.into = subscription;
      post(caller, endpoints.at(subscription->taker.number), sent, later);
    }
  }
  later.run(shared_from_this());
  return begun;
}

void state::forget(endpoint& caller, std::uint64_t request) noexcept {
  std::optional<promise<response>> gone;  // it ends with the mutex free
  std::lock_guard held(mutex);
  if (auto extracted = caller.requests.extract(request))
    gone.emplace(std::move(extracted.mapped().asker));
}

void state::answer(const endpoint_ptr& caller, const std::string& reply, std::string bytes) {
  const auto numbers = parse_reply(reply);
  if (!numbers || bytes.size() > bytes_max) return;
  afterwards later;
  {
    std::lock_guard held(mutex);
    const auto asker = endpoints.find(numbers->first);
    if (!caller->alive || asker == endpoints.end()) return;
    parcel sent;
    sent.request = numbers->second;
    sent.message.bytes = std::move(bytes);
    post(caller, asker->second, sent, later);
  }
  later.run(shared_from_this());
}

void state::stop_taking(endpoint& caller, const std::string* subject, const std::string& queue) {
  afterwards later;
  {
    std::lock_guard held(mutex);
    std::erase_if(caller.takes, [&](const network_subscription_ptr& subscription) {
      if (subject != nullptr && (subscription->subject != *subject || subscription->queue != queue))
        return false;
      subscription->ends = true;
      if (subscription->on_the_way == 0) later.closed.push_back(subscription);
      return true;
    });
  }
  later.run(shared_from_this());
}

// Only the node that asked it learns that the ask is lost.
void state::end(endpoint& ended) {
  afterwards later;
  endpoint_ptr kept;
  {
    std::lock_guard held(mutex);
    if (!ended.alive.exchange(false)) return;
    kept = std::move(endpoints.extract(ended.number).mapped());
    later.closed = std::exchange(ended.takes, {});
    for (auto& [asked_as, asks] : std::exchange(ended.requests, {}))
      later.end_lost(std::move(asks.asker));
    for (const auto& [number, other] : endpoints) {
      for (auto at = other->requests.begin(); at != other->requests.end();) {
        auto& [asked_as, asks] = *at;
        const bool was_asked = std::erase(asks.asked, ended.number) > 0;
        const bool hears = was_asked && !faults.silent_deaths && passes(ended, *other);
        if (hears && asks.asked.empty()) later.end_lost(std::move(asks.asker));
        at = hears && asks.asked.empty() ? other->requests.erase(at) : std::next(at);
      }
    }
    // Its sent messages are still on their way.
    std::erase_if(links, [&](const auto& each) {
      const auto& [ends, link] = each;
      if (ends.second != ended.number) return ends.first == ended.number && link->parcels.empty();
      if (!link->carried) link->parcels.clear();
      return !link->carried;
    });
  }
  later.run(shared_from_this());
}

void state::heal_where(const std::optional<std::pair<std::string, std::string>>& between) {
  afterwards later;
  {
    std::lock_guard held(mutex);
    if (between) {
      cuts.erase(*between);
      cuts.erase({between->second, between->first});
    } else {
      cuts.clear();
      cut_off.clear();
    }
    for (const auto& [ends, link] : links) {
      if (link->parcels.empty() || link->carried || !link->target->alive) continue;
      if (!passes(*link->from, *link->target)) continue;
      link->carried = true;
      later.to_carry.push_back(link);
    }
  }
  later.run(shared_from_this());
}

void state::drop(parcel& arriving, afterwards& later) {
  network_subscription* const into = arriving.into.get();
  TROUPE_INVARIANT(into == nullptr || into->on_the_way > 0, "W1");
  if (into == nullptr || --into->on_the_way > 0 || !into->ends) return;
  later.closed.push_back(arriving.into);
}

void state::arrive(parcel& arriving, afterwards& later) {
  const bool has_room = arriving.into->arrived.size() < faults.waiting_max;
  ++(has_room ? seen.delivered : seen.lost);
  try {
    if (has_room) static_cast<void>(arriving.into->arrived.try_send(std::move(arriving.message)));
  } catch (const channel_closed&) {
    // Its node has been killed.
  }
  drop(arriving, later);
}

void state::arrive_answer(endpoint& asker, parcel& arriving, afterwards& later) {
  ++seen.delivered;
  auto asks = asker.requests.extract(arriving.request);
  if (!asks) return;  // it was answered, or its caller has left
  response given;
  given.bytes = std::move(arriving.message.bytes);
  later.ended.emplace_back(std::move(asks.mapped().asker), std::move(given));
}

// Of the first parcel, if it is due; else how long it takes until then. Nothing: there is none, or
// it is held.
std::optional<std::chrono::nanoseconds> state::carry_first(network_link& link, afterwards& later) {
  std::lock_guard held(mutex);
  TROUPE_INVARIANT(link.carried, "W2");
  const bool cut = !passes(*link.from, *link.target);
  if (link.parcels.empty() || (cut && faults.holds)) {
    link.carried = false;
    return std::nullopt;
  }
  const std::chrono::nanoseconds wait = link.parcels.front().due - link.target->on.now();
  if (wait.count() > 0) return wait;
  parcel arriving = std::move(link.parcels.front());
  link.parcels.pop_front();
  if (cut || !link.target->alive) {
    ++seen.lost;
    drop(arriving, later);
  } else if (arriving.into != nullptr) {
    arrive(arriving, later);
  } else {
    arrive_answer(*link.target, arriving, later);
  }
  return std::chrono::nanoseconds(0);
}

task<> state::carry(std::shared_ptr<state> self, network_link_ptr link) {
  for (;;) {
    afterwards later;
    const std::optional<std::chrono::nanoseconds> wait = self->carry_first(*link, later);
    later.run(self);
    if (!wait) break;
    if (wait->count() > 0) {
      co_await sleep_for(*wait);
    } else {
      co_await yield();
    }
  }
}

}  // namespace troupe::cluster
