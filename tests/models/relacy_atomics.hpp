// relacy_atomics: the model checker's atomics with the interface of base::std_atomics, so that a
// model runs the same templates that ship. Include it first; a model is one translation unit.
//
// The checker explores every point where a thread may be preempted, up to a number of preemptions;
// every load that may see an old value; and every weak compare-and-swap that may fail for no
// reason. It finds failed assertions, data races on guarded<T>, deadlocks, livelocks and leaks. It
// does not explore more preemptions than that. The exhaustive search does not explore values older
// than the one before the newest, either. check() adds a random search, which has neither bound.
//
// kernel_atomics models asymmetric fences as the kernel carries them out: nothing on the light
// side, and a fence in every thread on the heavy side (docs/protocols/biased_lock.md). With
// fenced_atomics the light side has full fences.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <mutex>
#include <source_location>
#include <string_view>
#include <typeinfo>

#pragma push_macro("assert")
#pragma push_macro("errno")
#define RL_DO_ASSERT 1  // makes the checker check that a model is deterministic
#include <relacy/relacy.hpp>
// The checker's interface consists of macros that replace words of the language and of the library.
// The shipping code uses these words.
#undef VAR_T
#undef TLS_T
#undef VAR
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef $
#undef RL_INFO
#define RL_INFO ::rl::debug_info(__FUNCTION__, __FILE__, __LINE__)
#pragma pop_macro("assert")
#pragma pop_macro("errno")

#include "base/atomics.hpp"
#include "base/invariant.hpp"

// The checker replaces new and delete, except for the sized forms.
void operator delete(void* block, std::size_t) noexcept { ::operator delete(block); }
void operator delete[](void* block, std::size_t) noexcept { ::operator delete[](block); }

// A broken invariant is a violation like any other, and is reported with its history.
void troupe::base::fail_invariant(const char* condition, const char* label, const char* file,
                                  int line) noexcept {
  rl::ctx().fail_test(condition, rl::test_result_user_invariant_failed,
                      {label, file, static_cast<unsigned>(line)});
  std::abort();
}

namespace troupe::models {

using place = std::source_location;

inline rl::debug_info info_of(const place& at) {
  return {at.function_name(), at.file_name(), at.line()};
}

enum class access : std::uint8_t {
  none,
  load,
  store,
  exchange,
  compare_exchange,
  arithmetic,
  fence
};

// The mutation that this run must find, by the name in its `// mutation:` line. Empty: the model as
// it ships.
inline const std::string_view mutation =
    std::getenv("MUTATION") == nullptr ? "" : std::getenv("MUTATION");

inline bool mutated(std::string_view name) { return mutation == name; }

// What a mutation takes away: in the functions whose name contains `function`, accesses of one kind
// become relaxed or lose the acquire or release half of their order, or a fence vanishes.
struct weakening {
  access kind = access::none;
  std::string_view function;
  std::memory_order lost = std::memory_order_acq_rel;
};
inline weakening weakened;

inline void weaken_if(std::string_view name, access kind, std::string_view function,
                      std::memory_order lost = std::memory_order_acq_rel) {
  if (mutated(name)) weakened = {kind, function, lost};
}

inline bool is_weakened(access kind, const place& at) {
  return weakened.kind == kind &&
         std::string_view(at.function_name()).find(weakened.function) != std::string_view::npos;
}

inline rl::memory_order order_of(access kind, std::memory_order order, const place& at) {
  if (is_weakened(kind, at)) {
    if (weakened.lost == std::memory_order_acq_rel || weakened.lost == order) return rl::mo_relaxed;
    if (order == std::memory_order_acq_rel)
      return weakened.lost == std::memory_order_acquire ? rl::mo_release : rl::mo_acquire;
  }
  switch (order) {
    case std::memory_order_relaxed:
      return rl::mo_relaxed;
    case std::memory_order_acquire:
      return rl::mo_acquire;
    case std::memory_order_release:
      return rl::mo_release;
    case std::memory_order_acq_rel:
      return rl::mo_acq_rel;
    default:
      return rl::mo_seq_cst;
  }
}

// Whether weak compare-and-swaps may fail for no reason. A model may turn that off if the classes
// that it uses have been checked for it.
inline bool weak_may_fail = true;

template <class T>
class atomic {
 public:
  atomic(T value = T()) : cell_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(std::memory_order order, place at = place::current()) const {
    return cell_.load(order_of(access::load, order, at), info_of(at));
  }
  void store(T value, std::memory_order order, place at = place::current()) {
    cell_.store(value, order_of(access::store, order, at), info_of(at));
  }
  T exchange(T value, std::memory_order order, place at = place::current()) {
    return cell_.exchange(value, order_of(access::exchange, order, at), info_of(at));
  }
  template <class N>
  T fetch_add(N n, std::memory_order order, place at = place::current()) {
    return cell_.fetch_add(n, order_of(access::arithmetic, order, at), info_of(at));
  }
  template <class N>
  T fetch_sub(N n, std::memory_order order, place at = place::current()) {
    return cell_.fetch_sub(n, order_of(access::arithmetic, order, at), info_of(at));
  }
  T fetch_or(T bits, std::memory_order order, place at = place::current()) {
    return cell_.fetch_or(bits, order_of(access::arithmetic, order, at), info_of(at));
  }
  bool compare_exchange_weak(T& seen, T next, std::memory_order order, std::memory_order failure,
                             place at = place::current()) {
    if (!weak_may_fail) return compare_exchange_strong(seen, next, order, failure, at);
    return cell_.compare_exchange(rl::bool_t<true>(), seen, next,
                                  order_of(access::compare_exchange, order, at),
                                  order_of(access::compare_exchange, failure, at), info_of(at));
  }
  bool compare_exchange_strong(T& seen, T next, std::memory_order order, std::memory_order failure,
                               place at = place::current()) {
    const rl::memory_order success_order = order_of(access::compare_exchange, order, at);
    rl::memory_order failure_order = order_of(access::compare_exchange, failure, at);
    // The checker has no failure order that is stronger than the success order, so a fence does
    // that.
    const bool by_fence = failure_order == rl::mo_acquire &&
                          (success_order == rl::mo_relaxed || success_order == rl::mo_release);
    if (by_fence) failure_order = rl::mo_relaxed;
    if (cell_.compare_exchange(rl::bool_t<false>(), seen, next, success_order, failure_order,
                               info_of(at)))
      return true;
    if (by_fence) rl::atomic_thread_fence(rl::mo_acquire, info_of(at));
    return false;
  }
  bool compare_exchange_strong(T& seen, T next, std::memory_order order,
                               place at = place::current()) {
    return cell_.compare_exchange(rl::bool_t<false>(), seen, next,
                                  order_of(access::compare_exchange, order, at), info_of(at));
  }

  // What the kernel does with the word of a futex: in one step it compares, and sleeps if the
  // newest value is still `expected`.
  void wait(T expected, place at = place::current()) {
    if (cell_.debug_value() == expected) cell_.wait(rl::ctx(), false, false, info_of(at));
  }
  void wake_one(place at = place::current()) { cell_.wake(rl::ctx(), 1, info_of(at)); }

 private:
  rl::atomic<T> cell_;
};

// Plain data whose accesses must be ordered by the protocol around it.
template <class T>
class guarded {
 public:
  guarded(T value = T()) : variable_(value) {}
  guarded(const guarded& other) : variable_(static_cast<T>(other)) {}
  guarded& operator=(const guarded& other) { return *this = static_cast<T>(other); }
  guarded& operator=(T value) {
    variable_(RL_INFO).store(value);
    return *this;
  }
  operator T() const { return variable_(RL_INFO).load(); }
  T operator->() const { return variable_(RL_INFO).load(); }

 private:
  rl::var<T> variable_;
};

inline void fence(const place& at) {
  if (!is_weakened(access::fence, at)) rl::atomic_thread_fence(rl::mo_seq_cst, info_of(at));
}

struct fenced_atomics {
  template <class T>
  using atomic = models::atomic<T>;
  template <class T>
  using guarded = models::guarded<T>;

  static bool light_fences_suffice() { return false; }
  static void light_fence() {}
  static void light_or_full_fence(place at = place::current()) { fence(at); }
  static bool heavy_fence(place at = place::current()) {
    fence(at);
    return true;
  }
  static void full_fence(place at = place::current()) { fence(at); }
  static void pause(place at = place::current()) { rl::yield(1, info_of(at)); }
  static void wait_a_little(int, place at = place::current()) { rl::yield(1, info_of(at)); }
  static void wait_or_sleep(unsigned, place at = place::current()) { rl::yield(1, info_of(at)); }
  static constexpr int lock_spins = 2;
  // A searcher asks for two looks.
  class patience {
   public:
    bool is_over(place at = place::current()) {
      rl::yield(1, info_of(at));
      return ++looks_ > 2;
    }

   private:
    unsigned looks_ = 0;
  };
};

struct kernel_atomics : fenced_atomics {
  static bool light_fences_suffice() { return true; }
  static void light_or_full_fence() {}
  static bool heavy_fence(place at = place::current()) {
    if (is_weakened(access::fence, at)) return true;
    rl::ctx().sched();
    rl::systemwide_fence(info_of(at));
    return true;
  }
};

class mutex {
 public:
  void lock(place at = place::current()) { mutex_.lock(info_of(at)); }
  void unlock(place at = place::current()) { mutex_.unlock(info_of(at)); }

 private:
  rl::mutex mutex_;
};

// Closed until a thread opens it.
class latch {
 public:
  latch() { event_.init(true, false, RL_INFO); }
  ~latch() { event_.deinit(RL_INFO); }
  void open(place at = place::current()) { event_.set(info_of(at)); }
  void wait(place at = place::current()) { event_.wait(false, false, info_of(at)); }

 private:
  rl::generic_event event_;
};

// The futex of a model's parkers. A few times in a run a wait may return early, because its time is
// over or for no reason; afterwards never. So only speed may depend on early returns, and histories
// end. (The checker's own timed waits choose again and again while a thread waits, which multiplies
// the histories.)
struct futex {
  using word = atomic<std::uint32_t>;
  static inline unsigned early_left = 0;  // set in before()
  static inline bool spurious = false;    // whether untimed waits may return early, too

  static void wait(word& at, std::uint32_t expected, const std::chrono::nanoseconds* limit) {
    if ((limit != nullptr || spurious) && early_left != 0 && rl::rand(2) == 0) {
      --early_left;
      return rl::yield(1, RL_INFO);
    }
    at.wait(expected);
  }
  static void wake_one(word& at) { at.wake_one(); }
};

// The thread may be preempted here, as at each access to an atomic.
inline void pass_time() { rl::ctx().sched(); }

// Long tests (`./test --deep`) and the search for a mutation look everywhere.
inline const bool everywhere = std::getenv("TROUPE_DEEP") != nullptr;

// Returns this number of preemptions in long tests, and one fewer otherwise: for models that take
// tens of seconds.
inline unsigned deep(unsigned preemptions) { return everywhere ? preemptions : preemptions - 1; }

// As rl::simulate, but for one way of searching: that makes the code for all of them, of which no
// model uses the third, and a third of the time to compile a model went into it.
template <class Model, class Scheduler>
bool explore(rl::test_params& params) {
  params.test_name = typeid(Model).name();
  std::cout << params.test_name << std::endl;
  rl::ostringstream state;  // out of sight of the checker, as are its strings
  const rl::test_result_e first = rl::run_test<Model, Scheduler>(params, state, false);
  if (first == rl::test_result_success) {
    std::cout << "iterations: " << params.stop_iteration << std::endl;
    return true;
  }
  // The failing history again, to print it.
  params.initial_state = params.final_state = state.str();
  params.collect_history = true;
  const rl::iteration_t failed = params.stop_iteration;
  rl::ostringstream again;
  const rl::test_result_e second = rl::run_test<Model, Scheduler>(params, again, true);
  if (first != second || params.stop_iteration != failed)
    std::abort();  // a model that is not deterministic
  return false;
}

// Runs a model with every choice of this many preemptions, and then at random. Returns false when
// the model fails; the failing history is printed.
template <class Model>
bool check(unsigned preemptions = 2) {
  rl::test_params bounded;
  bounded.search_type = rl::sched_bound;
  bounded.context_bound = preemptions;
  constexpr auto threads = Model::params::thread_count;
  if (!explore<Model, rl::context_bound_scheduler<threads>>(bounded)) return false;
  rl::test_params random;
  random.search_type = rl::sched_random;
  random.iteration_count = everywhere ? 100'000 : 20'000;
  return explore<Model, rl::random_scheduler<threads>>(random);
}

}  // namespace troupe::models
