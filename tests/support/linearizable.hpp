// linearizable: whether what clients were told of their operations has an explanation in which each
// operation took effect at one moment between its call and its return.
//
// The search is that of Wing and Gong, with remembered states as in Lowe's and Porcupine's: it
// chooses which operation comes next among those that were called before any other one returned,
// and never looks twice at the same set of operations in the same state. Keys are apart from each
// other, for a history is linearizable if that of each key is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::test::linearizable {

// A model has a state that starts as State(), calls that can be compared, and what a call does to a
// state and answers. It may neither refuse a call nor choose. A call with an answer that
// `changes_nothing` does so in no state.

// A value that is read, written, replaced if it is the expected one, and added to.
struct register_model {
  using state = std::int64_t;
  enum class act : std::uint8_t { read, write, replace, add };
  struct call {
    act what = act::read;
    std::int64_t value = 0, expected = 0;
    bool operator==(const call&) const = default;
  };
  // Of a read or an addition the value after it, of a write 0, of a replacement 1 if it was done.
  using answer = std::int64_t;

  static call read() { return {}; }
  static call write(std::int64_t value) { return {act::write, value, 0}; }
  static call replace(std::int64_t expected, std::int64_t value) {
    return {act::replace, value, expected};
  }
  static call add(std::int64_t value) { return {act::add, value, 0}; }
  static answer apply(state& now, const call& what) {
    if (what.what == act::read) return now;
    if (what.what == act::add) return now += what.value;
    if (what.what == act::replace && now != what.expected) return 0;
    now = what.value;
    return what.what == act::replace ? 1 : 0;
  }
  static bool changes_nothing(const call& what, answer was) {
    return what.what == act::read || (what.what == act::replace && was == 0);
  }
  static std::string text(const call& what) {
    if (what.what == act::read) return "read";
    const std::string value = std::to_string(what.value);
    if (what.what == act::write) return "write " + value;
    if (what.what == act::add) return "add " + value;
    return "replace " + std::to_string(what.expected) + " by " + value;
  }
};

// A sum. A call adds a number, and is answered with the sum after it; adding 0 reads.
struct counter_model {
  using state = std::int64_t;
  using call = std::int64_t;
  using answer = std::int64_t;
  static answer apply(state& now, call added) { return now += added; }
  static bool changes_nothing(call added, answer) { return added == 0; }
  static std::string text(call added) { return "add " + std::to_string(added); }
};

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// Times are of one clock, in whatever unit. Operations that only touch are taken as concurrent.
template <class Model>
struct operation {
  typename Model::call what{};
  std::int64_t called = 0;
  std::int64_t returned = never;
  // None: nobody knows whether it took effect, or whether it will.
  std::optional<typename Model::answer> answer;
};

// The search for one key.
template <class Model>
class search {
 public:
  using one = operation<Model>;

  explicit search(const std::vector<one>& all) {
    for (const one& each : all) (each.answer ? known_ : unknown_).push_back(each);
    std::ranges::sort(known_, {}, &one::called);
    std::ranges::sort(unknown_, {}, &one::called);
    for (std::size_t i = 0; i < unknown_.size(); ++i) {
      std::size_t before = i;
      while (before > 0 && !(unknown_[before - 1].what == unknown_[i].what)) --before;
      same_before_.push_back(before == 0 ? none : before - 1);
    }
  }

  // Returns why there is no explanation; "" if there is one. After `steps_max` steps it gives up,
  // and says so. Cost: about one step for each operation, if few are concurrent.
  std::string run(std::uint64_t steps_max) {
    std::vector<position> path;
    path.push_back(start());
    for (std::uint64_t steps = 0; !path.empty(); ++steps) {
      position& last = path.back();
      if (last.at.done.first == known_.size()) return {};
      if (steps == steps_max) return "undecided after " + std::to_string(steps) + " steps; ";
      if (last.next == last.choices.size()) {
        path.pop_back();
        continue;
      }
      const std::size_t choice = last.choices[last.next++];
      if (auto next = after(last.at, choice); next && is_new(*next))
        path.push_back({*next, choices_at(*next), 0});
    }
    return explain();
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // A set of operations with known answers, by their places: all before `first`, and `others`.
  struct prefix {
    std::size_t first = 0;
    std::vector<std::size_t> others;  // sorted
    bool operator==(const prefix&) const = default;

    void add(std::size_t one) {
      others.insert(std::ranges::upper_bound(others, one), one);
      std::size_t filled = 0;
      while (filled < others.size() && others[filled] == first) ++filled, ++first;
      others.erase(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(filled));
    }
    bool has(std::size_t one) const {
      return one < first || std::ranges::binary_search(others, one);
    }
    std::size_t size() const { return first + others.size(); }
  };
  // What has taken effect, and what came of it.
  struct situation {
    prefix done;
    std::vector<std::size_t> used;  // operations with unknown answers, by their places, sorted
    typename Model::state now{};
    // What was before the last operation, if that was one with an unknown answer.
    std::optional<typename Model::state> before{};
  };
  // `choices`: places of known operations, then known_.size() + places of unknown ones.
  struct position {
    situation at;
    std::vector<std::size_t> choices;
    std::size_t next = 0;
  };
  struct seen_key {
    prefix done;
    typename Model::state now{};
    bool operator==(const seen_key&) const = default;
  };
  struct seen_hash {
    std::size_t operator()(const seen_key& key) const {
      std::size_t mixed = std::hash<typename Model::state>()(key.now) * 31 + key.done.first;
      for (const std::size_t other : key.done.others) mixed = mixed * 1'000'003 + other;
      return mixed;
    }
  };

  position start() {
    const situation begin;
    is_new(begin);
    return {begin, choices_at(begin), 0};
  }

  // No operation comes later than one that was called after its return.
  std::int64_t first_return(const prefix& done) const {
    std::int64_t first = never;
    for (std::size_t i = done.first; i < known_.size() && known_[i].called <= first; ++i) {
      if (!done.has(i)) first = std::min(first, known_[i].returned);
    }
    return first;
  }

  // One that changes nothing, and was answered with what is, may come at once whatever follows.
  // Else those with a known answer come first: others are needed only to explain an answer.
  std::vector<std::size_t> choices_at(const situation& at) const {
    const std::int64_t until = first_return(at.done);
    std::vector<std::size_t> choices;
    for (std::size_t i = at.done.first; i < known_.size() && known_[i].called <= until; ++i) {
      if (at.done.has(i)) continue;
      typename Model::state now = at.now;
      if (!(Model::apply(now, known_[i].what) == *known_[i].answer)) continue;
      if (Model::changes_nothing(known_[i].what, *known_[i].answer)) return {i};
      choices.push_back(i);
    }
    // Of equal ones the first that was called comes first: it may come whenever a later one may.
    for (std::size_t i = 0; i < unknown_.size() && unknown_[i].called <= until; ++i) {
      const bool is_used = std::ranges::binary_search(at.used, i);
      const std::size_t before = same_before_[i];
      if (!is_used && (before == none || std::ranges::binary_search(at.used, before)))
        choices.push_back(known_.size() + i);
    }
    return choices;
  }

  std::optional<situation> after(const situation& at, std::size_t choice) const {
    const bool is_known = choice < known_.size();
    const std::size_t place = is_known ? choice : choice - known_.size();
    const one& what = is_known ? known_[place] : unknown_[place];
    typename Model::state now = at.now;
    const auto answer = Model::apply(now, what.what);
    if (!is_known && now == at.now) return std::nullopt;
    if (at.before) {
      // Nobody has seen the last one: it is not needed here.
      typename Model::state without = *at.before;
      const auto same = Model::apply(without, what.what);
      if (without == now && (!is_known || same == answer)) return std::nullopt;
    }
    situation next = at;
    next.now = std::move(now);
    next.before.reset();
    if (is_known) {
      next.done.add(place);
    } else {
      next.before = at.now;
      next.used.insert(std::ranges::upper_bound(next.used, place), place);
    }
    return next;
  }

  // Whether it was not looked at yet, with no more of the unknown ones used: what those can still
  // do, fewer used ones leave possible.
  bool is_new(const situation& at) {
    if (at.done.size() >= furthest_.done.size()) furthest_ = at;
    auto& all = seen_[{at.done, at.now}];
    const auto covers = [&](const auto& used) { return std::ranges::includes(at.used, used); };
    if (std::ranges::any_of(all, covers)) return false;
    all.push_back(at.used);
    return true;
  }

  static std::string text(const one& what) {
    return Model::text(what.what) + " (" + std::to_string(what.called) + " to " +
           (what.answer ? std::to_string(what.returned) + ": " + std::to_string(*what.answer)
                        : std::string("?")) +
           "), ";
  }
  std::string explain() const {
    std::string why = "after " + std::to_string(furthest_.done.size()) + " of " +
                      std::to_string(known_.size()) + " operations the state is " +
                      std::to_string(furthest_.now) + ", and none of these can be next: ";
    const std::int64_t until = first_return(furthest_.done);
    for (std::size_t i = furthest_.done.first; i < known_.size() && known_[i].called <= until; ++i)
      if (!furthest_.done.has(i)) why += text(known_[i]);
    return why;
  }

  std::vector<one> known_, unknown_;
  // Of each unknown operation the place of the last one before it that is equal.
  std::vector<std::size_t> same_before_;
  std::unordered_map<seen_key, std::vector<std::vector<std::size_t>>, seen_hash> seen_;
  situation furthest_;
};

// What clients did and were told. Each operation is begun before its message is sent, and ended
// after its answer has come, at times of one clock. What is not ended has an unknown end: `lost`,
// `timed_out`, or a client that was killed. Thread: any.
//
// Example:
//     linearizable::history<linearizable::register_model> all;
//     const auto one = all.begin("a", linearizable::register_model::write(7), now());
//     all.end(one, 0, now());
//     EXPECT_EQ(all.what_is_wrong(), "");
template <class Model>
class history {
 public:
  struct handle {
    std::string key;
    std::size_t place = 0;
  };

  handle begin(const std::string& key, typename Model::call what, std::int64_t now) {
    std::lock_guard held(mutex_);
    auto& entries = all_[key];
    entries.push_back({operation<Model>{std::move(what), now, never, std::nullopt}, true});
    return {key, entries.size() - 1};
  }
  void end(const handle& begun, typename Model::answer answer, std::int64_t now) {
    std::lock_guard held(mutex_);
    operation<Model>& ended = all_.at(begun.key).at(begun.place).what;
    ended.answer = std::move(answer);
    ended.returned = now;
  }
  // It is known that it has no effect, and will have none.
  void did_not_run(const handle& begun) {
    std::lock_guard held(mutex_);
    all_.at(begun.key).at(begun.place).counts = false;
  }
  void add(const std::string& key, operation<Model> one) {
    std::lock_guard held(mutex_);
    all_[key].push_back({std::move(one), true});
  }

  std::size_t size() const {
    std::lock_guard held(mutex_);
    std::size_t count = 0;
    for (const auto& [key, entries] : all_) count += entries.size();
    return count;
  }
  // Names the first key that has no explanation; "" if all have one.
  std::string what_is_wrong(std::uint64_t steps_max_per_key = 2'000'000) const {
    std::lock_guard held(mutex_);
    for (const auto& [key, entries] : all_) {
      std::vector<operation<Model>> counted;
      for (const entry& known : entries) {
        if (known.counts) counted.push_back(known.what);
      }
      std::string wrong = search<Model>(counted).run(steps_max_per_key);
      if (!wrong.empty()) return key + ": " + wrong;
    }
    return {};
  }

 private:
  struct entry {
    operation<Model> what;
    bool counts = true;
  };
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<entry>> all_;
};

}  // namespace troupe::test::linearizable
