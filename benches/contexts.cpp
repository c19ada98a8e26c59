// contexts: our contestant for the rows context/*. README.md says what each measures.
#include <cstring>
#include <map>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "troupe/context/context.hpp"
#include "troupe/context/snapshot.hpp"

namespace {

using measure::result;
using measure::stopwatch;

class arena {
 public:
  using text = std::pmr::string;
  using numbers = std::pmr::vector<int>;
  using table = std::pmr::map<std::pmr::string, int>;
  void* allocate(std::size_t bytes) { return work_->allocate(bytes); }
  template <class T, class... Args>
  T& make(Args&&... args) {
    return *work_->make<T>(std::forward<Args>(args)...);
  }
  void discard() { work_->rollback(begin_); }

 private:
  troupe::owned_context work_ = troupe::make_context();
  troupe::snapshot begin_{*work_};
};

// Keeps the compiler from removing results that nothing reads.
void use(const void* what) { asm volatile("" ::"r"(what) : "memory"); }

result allocate(unsigned, std::uint64_t size) { return allocations::allocate<arena>(size); }
result request(unsigned, std::uint64_t size) { return allocations::request<arena>(size); }

result create_release(unsigned, std::uint64_t size) {
  result r;
  const stopwatch watch;
  for (std::uint64_t i = 0; i < size; ++i) {
    troupe::owned_context work = troupe::make_context();
    use(work->allocate(100));
    ++r.check;
  }
  r.value = watch.ns_per(size);
  return r;
}

// Rolls back over 10,000 objects of 32 bytes, in 64 contexts one after the other: a single rollback
// is too short for the clock.
result rollback(unsigned, std::uint64_t size) {
  struct one {
    troupe::owned_context work = troupe::make_context();
    troupe::snapshot begin{*work};
  };
  std::vector<one> all(64);
  std::int64_t spent = 0;
  result r;
  while (r.check < size) {
    for (one& each : all) {
      for (int k = 0; k < 10'000; ++k) use(each.work->allocate(32));
    }
    const std::int64_t before = measure::now_ns();
    for (one& each : all) each.work->rollback(each.begin);
    spent += measure::now_ns() - before;
    r.check += all.size();
  }
  r.value = static_cast<double>(spent) / static_cast<double>(r.check);
  return r;
}

result owner_of(unsigned, std::uint64_t size) {
  troupe::owned_context work = troupe::make_context();
  std::vector<const char*> all;
  for (int i = 0; i < 1'024; ++i) all.push_back(static_cast<const char*>(work->allocate(1'000)));
  result r;
  const stopwatch watch;
  for (std::uint64_t i = 0; i < size; ++i) {
    if (troupe::owner_of(all[i % 1'024] + i % 512) == work.get()) ++r.check;
  }
  r.value = watch.ns_per(size);
  return r;
}

result idle_memory(unsigned, std::uint64_t size) {
  std::vector<troupe::owned_context> all(size);
  const std::int64_t before = measure::resident_bytes();
  result r;
  for (auto& one : all) {
    one = troupe::make_context();
    std::memset(one->allocate(200), 1, 200);
    ++r.check;
  }
  r.value = static_cast<double>(measure::resident_bytes() - before) / static_cast<double>(size);
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {
      {"allocate", 100'000'000, allocate},
      {"request", 200'000, request},
      {"create_release", 10'000'000, create_release},
      {"rollback", 12'800, rollback},
      {"owner_of", 200'000'000, owner_of},
      {"context_memory", 100'000, idle_memory},
  };
  measure::run_program(argc, argv, table);
}
