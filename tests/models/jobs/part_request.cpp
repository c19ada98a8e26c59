// An owner that pushes, answers and pops, beside searchers that ask it and then, if it has not
// answered, take a part themselves.
// Checks Q1 to Q3: each part is given out once and whole, to the thread that asked, and no part is
// lost by a request that is withdrawn.
//
// mutation: answer_relaxed
// mutation: await_relaxed
// mutation: withdraw_relaxed
// mutation: answers_a_withdrawn_request
// mutation: gives_without_the_lock
// mutation: keeps_the_part
#include "models/relacy_atomics.hpp"

#include "jobs/pool/part_request.hpp"
#include "troupe/jobs/work_deque.hpp"

namespace {

using namespace troupe;
using models::access;

struct alignas(8) part {
  models::guarded<int> written{0};
  models::guarded<int> ran{0};  // two threads that got the same part would race here
};
struct alignas(8) tree {};

template <class Atomics>
using deque_of = jobs::work_deque<part, Atomics>;

// The deque as the owner's answer sees it.
template <class Atomics>
struct mutated_deque {
  deque_of<Atomics>& deque;
  template <class Wants, class Publish>
  void give(const Wants& wants, const Publish& publish) {
    if (models::mutated("gives_without_the_lock")) {
      part* const newest = deque.pop();  // as if nobody else could take the oldest one
      if (newest != nullptr) publish(wants(*newest) ? newest : nullptr);
    } else if (models::mutated("answers_a_withdrawn_request")) {
      deque.give(wants, [&](part* one) { return publish(one), true; });
    } else if (models::mutated("keeps_the_part")) {
      deque.give(wants, [&](part* one) { return publish(one), false; });
    } else {
      deque.give(wants, publish);
    }
  }
};

// The owner pushes and pops as `moves` says: P pushes, p pops, a answers.
template <class Atomics, unsigned Searchers, unsigned Parts>
struct request_model : rl::test_suite<request_model<Atomics, Searchers, Parts>, Searchers + 1> {
  static inline const char* moves = "";
  static inline bool wanted = true;  // whether searchers want parts
  deque_of<Atomics> deque_{2};
  jobs::part_request<part, tree, Atomics> request_;
  part parts_[Parts];
  tree within_;
  unsigned given_[Parts] = {};  // the model's own, not checked for races

  void take(part* one) {
    if (one == nullptr) return;
    RL_ASSERT(one->written == 7);
    one->ran = one->ran + 1;
    ++given_[one - parts_];
  }

  void answer() {
    mutated_deque<Atomics> seen{deque_};
    request_.answer(seen, [this](const part& one, const tree* within) {
      RL_ASSERT(within == &within_);
      return one.ran == 0 && wanted;
    });
  }

  void own() {
    unsigned next = 0;
    for (const char* move = moves; *move != '\0'; ++move) {
      if (*move == 'p') {
        take(deque_.pop());
      } else if (*move == 'a') {
        answer();
      } else {
        parts_[next].written = 7;
        RL_ASSERT(deque_.reserve(1));
        deque_.push(parts_[next++]);
      }
    }
  }

  void thread(unsigned index) {
    if (index == 0) return own();
    if (deque_.count() == 0) return;
    if (request_.ask(&within_)) {
      const auto reply = request_.await(&within_);
      if (reply.by_owner) return take(reply.part);
    }
    take(deque_.steal([](const part& one) { return one.ran == 0 && wanted; }));
  }

  void after() {
    RL_ASSERT(!request_.is_asked());
    while (part* one = deque_.pop()) take(one);
    for (const unsigned times : given_) RL_ASSERT(times == 1);
  }
};

template <class Atomics, unsigned Searchers, unsigned Parts>
bool check(const char* moves, unsigned preemptions, bool wanted = true) {
  using model = request_model<Atomics, Searchers, Parts>;
  model::moves = moves;
  model::wanted = wanted;
  return models::check<model>(preemptions);
}

}  // namespace

int main() {
  models::weaken_if("answer_relaxed", access::compare_exchange, "::answer(");
  models::weaken_if("await_relaxed", access::load, "::await(");
  models::weaken_if("withdraw_relaxed", access::compare_exchange, "::await(");
  const bool holds = check<models::kernel_atomics, 1, 2>("PPapp", 3) &&
                     check<models::fenced_atomics, 1, 2>("PPaap", 3) &&
                     check<models::kernel_atomics, 1, 3>("PPaPap", 2) &&
                     check<models::kernel_atomics, 2, 2>("PPaap", 2) &&
                     check<models::kernel_atomics, 1, 1>("Pap", 3, false);
  return holds ? 0 : 1;
}
