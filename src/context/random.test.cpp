// Random sequences of everything that a context can do, compared with an oracle that keeps the
// content of each object in ordinary memory.
//
// For each object the oracle knows its bytes, whether it was destroyed, and what else existed when
// it was persisted. So it finds memory that is given out twice, and objects that are destroyed
// twice, never, too early or in the wrong order.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "context/blocks/poison.hpp"
#include "troupe/context/persist.hpp"
#include "troupe/context/snapshot.hpp"

namespace troupe {
namespace {

class oracle;

struct object {
  object(oracle& to, std::uint64_t number) : of(to), id(number) {}
  object(const object&) = delete;
  ~object();
  oracle& of;
  const std::uint64_t id;
  unsigned char filling[24];
};

class oracle {
 public:
  explicit oracle(unsigned seed) : random_(seed), work_(make_context()) {}

  void step() {
    switch (random_() % 16) {
      case 0:
        return take_snapshot();
      case 1:
        return roll_back();
      case 2:
        return end_snapshot();
      case 3:
        return persist_one();
      case 4:
        return drop_one();
      case 5:
        return random_() % 64 == 0 ? release() : void();
      case 6:
        return fill(random_() % 256 == 0 ? 300'000 : random_() % 6000);
      default:
        return random_() % 3 == 0 ? make() : fill(random_() % 200);
    }
  }

  void end() {
    release();
    while (!held_.empty()) drop_one();
    for (const record& one : all_) ASSERT_NE(one.destroyed, 0u) << "never destroyed";
  }

  void destroyed(const object& one) {
    record& known = at(one.id);
    if (known.destroyed != 0) std::abort();
    known.destroyed = ++clock_;
    if (one.id > last_destroyed_) std::abort();  // newest first
    if (ordered_) last_destroyed_ = one.id;
    check(known);
  }

 private:
  // What the oracle knows of one object. `address` is null while the object is being made.
  struct record {
    const object* address;
    std::uint64_t destroyed;  // the oracle's clock; 0: not yet destroyed
    unsigned char pattern;
  };
  struct plain {
    unsigned char* begin;
    std::size_t bytes;
    unsigned char pattern;
  };
  // How many objects existed when a snapshot was made, in the order of their making.
  struct level {
    std::size_t objects, plains;
  };
  struct holder {
    persisted<object> one;
    std::vector<std::uint64_t> with;
    std::vector<plain> memory;
  };
  struct open_snapshot {
    open_snapshot(context& of, level then) : place(of), before(then) {}
    snapshot place;
    level before;
  };

  record& at(std::uint64_t id) { return all_[id - 1 - gone_]; }

  void check(const record& one) {
    for (const unsigned char byte : one.address->filling) ASSERT_EQ(byte, one.pattern);
  }
  void check(const plain& one) {
    ASSERT_EQ(one.begin[0], one.pattern);
    ASSERT_EQ(one.begin[one.bytes - 1], one.pattern);
    ASSERT_EQ(one.begin[one.bytes / 2], one.pattern);
  }

  void make() {
    all_.push_back({nullptr, 0, static_cast<unsigned char>(random_())});
    const std::uint64_t id = gone_ + all_.size();
    auto made = work_->make<object>(*this, id);
    ASSERT_EQ(owner_of(made.get()), work_.get());
    std::memset(made->filling, all_.back().pattern, sizeof made->filling);
    all_.back().address = made.get();
    objects_.push_back(id);
  }

  void fill(std::size_t bytes) {
    if (bytes == 0) return;
    const std::size_t alignment = std::size_t{1} << random_() % 8;
    plain made{static_cast<unsigned char*>(work_->allocate(bytes, alignment)), bytes,
               static_cast<unsigned char>(random_())};
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(made.begin) % alignment, 0u);
    std::memset(made.begin, made.pattern, bytes);
    plains_.push_back(made);
  }

  void take_snapshot() {
    if (open_.size() < 6) open_.emplace_back(*work_, level{objects_.size(), plains_.size()});
  }

  // Closes the newest snapshot without a rollback.
  void end_snapshot() {
    if (!open_.empty()) open_.pop_back();
  }

  void discard(level down_to) {
    for (std::size_t i = down_to.objects; i < objects_.size(); ++i)
      discarded_.push_back(objects_[i]);
    objects_.resize(down_to.objects);
    plains_.resize(down_to.plains);
    check_all();
    if (!held_.empty()) return;
    for (const std::uint64_t id : discarded_)
      ASSERT_NE(at(id).destroyed, 0u) << "nobody holds anything";
    discarded_.clear();
    if (objects_.empty()) forget();
  }

  void roll_back() {
    if (open_.empty()) return;
    const std::size_t to = random_() % open_.size();
    last_destroyed_ = UINT64_MAX;
    work_->rollback(open_[to].place);
    while (open_.size() > to + 1) open_.pop_back();
    discard(open_[to].before);
  }

  void release() {
    last_destroyed_ = UINT64_MAX;
    work_.release();
    while (!open_.empty()) open_.pop_back();
    discard({0, 0});
    work_ = make_context();
  }

  void persist_one() {
    if (objects_.empty() || held_.size() > 8) return;
    const std::uint64_t id = objects_[random_() % objects_.size()];
    const level newest = open_.empty() ? level{0, 0} : open_.back().before;
    const bool only_new = random_() % 2 == 0 && !open_.empty() &&
                          id > (newest.objects == 0 ? 0 : objects_[newest.objects - 1]);
    const level from = only_new ? newest : level{0, 0};
    holder made;
    made.one = only_new ? hold<true>(*at(id).address) : hold<false>(*at(id).address);
    for (std::size_t i = from.objects; i < objects_.size(); ++i) made.with.push_back(objects_[i]);
    for (std::size_t i = from.plains; i < plains_.size(); i += 1 + plains_.size() / 32)
      made.memory.push_back(plains_[i]);
    held_.push_back(std::move(made));
  }

  // The handle stays where the object was made. persist() checks where the object itself lies.
  template <bool Since>
  static persisted<object> hold(const object& one) {
    return contexts::persisting::make<object>(
        one, Since && contexts::is_since_snapshot(*owner_of(&one), &one)
                 ? contexts::keep_since_snapshot(*owner_of(&one))
                 : contexts::keep_whole(*owner_of(&one)));
  }

  void drop_one() {
    if (held_.empty()) return;
    std::swap(held_[random_() % held_.size()], held_.back());
    check_held(held_.back());
    // This may free memory that was left to several keeps. Then an object that is older than one
    // keep may be newer than the base of that keep, so the order of destructors is not checked.
    last_destroyed_ = UINT64_MAX;
    ordered_ = false;
    held_.pop_back();
    ordered_ = true;
  }

  void check_held(const holder& one) {
    for (const std::uint64_t id : one.with) {
      ASSERT_EQ(at(id).destroyed, 0u) << "it is held";
      check(at(id));
    }
    for (const plain& each : one.memory) check(each);
  }

  void check_all() {
    for (const std::uint64_t id : objects_) {
      ASSERT_EQ(at(id).destroyed, 0u) << "it was not discarded";
      check(at(id));
    }
    for (const plain& one : plains_) check(one);
    for (const holder& one : held_) check_held(one);
  }

  // All objects made so far are destroyed.
  void forget() {
    gone_ += all_.size();
    all_.clear();
  }

  std::minstd_rand random_;
  owned_context work_;
  std::uint64_t gone_ = 0, clock_ = 0, last_destroyed_ = 0;
  bool ordered_ = true;
  std::deque<record> all_;
  std::vector<std::uint64_t> objects_, discarded_;
  std::vector<plain> plains_;
  std::deque<open_snapshot> open_;
  std::vector<holder> held_;
};

object::~object() { of.destroyed(*this); }

TEST(random, all_that_a_context_does_agrees_with_an_oracle) {
  const bool deep = std::getenv("TROUPE_DEEP") != nullptr;
  const int rounds = deep ? 1000 : 8, steps = 10'000;
  for (int round = 0; round < rounds && !testing::Test::HasFatalFailure(); ++round) {
    SCOPED_TRACE("seed " + std::to_string(round));
    oracle one(static_cast<unsigned>(round));
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure();) {
      // Each part runs on another thread.
      std::thread([&] {
        for (const int end = i + steps / 4; i < end && !testing::Test::HasFatalFailure(); ++i)
          one.step();
      }).join();
    }
    one.end();
  }
}

}  // namespace
}  // namespace troupe
