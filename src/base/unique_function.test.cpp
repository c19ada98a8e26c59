#include "troupe/base/unique_function.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace troupe {
namespace {

using number_function = unique_function<int(int)>;

// Objects of a kind of target that are there, and what was allocated for them.
struct count {
  int alive = 0;
  int allocations = 0;
  std::size_t bytes = 0;
};
count counted;

// A target that adds `Bytes` bytes of its own, and says whether it moves without throwing.
template <std::size_t Bytes, bool Nothrow = true, std::size_t Alignment = alignof(int)>
struct alignas(Alignment) target {
  explicit target(int given) : added(given) { ++counted.alive; }
  target(target&& other) noexcept(Nothrow) : added(std::exchange(other.added, -1)) {
    ++counted.alive;
  }
  ~target() { --counted.alive; }
  int operator()(int more) { return added + more; }

  static void* operator new(std::size_t bytes) {
    ++counted.allocations;
    counted.bytes += bytes;
    return ::operator new(bytes);
  }
  static void* operator new(std::size_t bytes, std::align_val_t alignment) {
    ++counted.allocations;
    counted.bytes += bytes;
    return ::operator new(bytes, alignment);
  }
  static void* operator new(std::size_t, void* at) noexcept { return at; }
  static void operator delete(void* block) { ::operator delete(block); }
  static void operator delete(void* block, std::align_val_t alignment) {
    ::operator delete(block, alignment);
  }

  int added;
  std::array<std::byte, Bytes - sizeof(int)> rest{};
};

template <class Target>
struct unique_function_of : testing::Test {};
using targets = testing::Types<target<sizeof(int)>, target<24>, target<24, true, 8>, target<25>,
                               target<200>, target<8, false>, target<32, true, 16>,
                               target<64, true, 64>, target<200, false>>;
TYPED_TEST_SUITE(unique_function_of, targets);

TYPED_TEST(unique_function_of, moves_and_destroys_each_target_once) {
  counted = {};
  {
    number_function first = TypeParam(40);
    EXPECT_EQ(first(2), 42);
    EXPECT_EQ(counted.alive, 1);
    number_function second = std::move(first);
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): that it is empty is tested
    EXPECT_EQ(second(3), 43);
    first = std::move(second);
    EXPECT_TRUE(second == nullptr);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(first(4), 44);
    std::swap(first, second);
    EXPECT_EQ(second(5), 45);
    number_function& same = second;
    second = std::move(same);
    EXPECT_EQ(second(6), 46);
    EXPECT_EQ(counted.alive, 1);
    second = TypeParam(50);
    EXPECT_EQ(second(7), 57);
    EXPECT_EQ(counted.alive, 1);
    second = nullptr;
    EXPECT_EQ(counted.alive, 0);
    first = TypeParam(60);
  }
  EXPECT_EQ(counted.alive, 0);
}

TYPED_TEST(unique_function_of, allocates_no_more_than_that_of_the_standard) {
  counted = {};
  { std::move_only_function<int(int)> of_the_standard = TypeParam(40); }
  const count most = std::exchange(counted, {});
  {
    number_function first = TypeParam(40);
    const number_function second = std::move(first);
  }
  EXPECT_EQ(counted.allocations, most.allocations);
  EXPECT_EQ(counted.bytes, most.bytes);
  EXPECT_LE(sizeof(number_function), sizeof(std::move_only_function<int(int)>));
}

int twice(int number) { return 2 * number; }
struct adder {
  int added;
  int plus(int more) const { return added + more; }
  int and_one = added + 1;
};

TEST(unique_function, takes_each_kind_of_callable) {
  struct call {
    const char* kind;
    number_function function;
    int result;
  };
  int calls = 0;
  std::array table{
      call{"a function", twice, 4},
      call{"its address", &twice, 4},
      call{"a lambda", [](int number) { return number + 1; }, 3},
      call{"a lambda that captures a reference", [&calls](int) { return ++calls; }, 1},
      call{"one that can only be moved",
           [number = std::make_unique<int>(40)](int more) { return *number + more; }, 42},
      call{"one that changes itself", [number = 1](int) mutable { return ++number; }, 2},
      call{"std::function", std::function<int(int)>(twice), 4},
      call{"std::move_only_function", std::move_only_function<int(int)>(twice), 4},
      call{"one of another signature", unique_function<short(long)>([](long) { return short{7}; }),
           7},
      call{"std::bind_front", std::bind_front(&adder::plus, adder{30}), 32},
      call{"std::ref", std::ref(twice), 4},
  };
  for (call& entry : table) {
    ASSERT_TRUE(entry.function) << entry.kind;
    EXPECT_EQ(entry.function(2), entry.result) << entry.kind;
  }
  unique_function<int(const adder&, int)> method = &adder::plus;
  EXPECT_EQ(method(adder{30}, 2), 32);
  unique_function<int(const adder&)> member = &adder::and_one;
  EXPECT_EQ(member(adder{30}), 31);
}

TEST(unique_function, is_empty_when_its_callable_is) {
  struct empty {
    const char* kind;
    number_function function;
  };
  int (*no_function)(int) = nullptr;
  for (empty& entry : std::array{
           empty{"nothing", {}},
           empty{"nullptr", nullptr},
           empty{"a null pointer", no_function},
           empty{"std::function", std::function<int(int)>()},
           empty{"std::move_only_function", std::move_only_function<int(int)>()},
           empty{"one of another signature", unique_function<long(int)>()},
       }) {
    EXPECT_FALSE(entry.function) << entry.kind;
    EXPECT_TRUE(entry.function == nullptr) << entry.kind;
    const number_function moved = std::move(entry.function);
    EXPECT_FALSE(moved) << entry.kind;
  }
  int (adder::*no_method)(int) const = nullptr;
  EXPECT_FALSE((unique_function<int(const adder&, int)>(no_method)));
  int adder::*no_member = nullptr;
  EXPECT_FALSE((unique_function<int(const adder&)>(no_member)));
}

TEST(unique_function, passes_arguments_and_results_as_they_are) {
  unique_function<std::unique_ptr<int>(std::unique_ptr<int>)> owned = [](auto given) {
    ++*given;
    return given;
  };
  EXPECT_EQ(*owned(std::make_unique<int>(1)), 2);
  int number = 1;
  unique_function<int&(int&)> referred = [](int& given) -> int& { return given; };
  EXPECT_EQ(&referred(number), &number);
  struct mover {
    int moves = 0;
    mover() = default;
    mover(mover&& other) noexcept : moves(other.moves + 1) {}
  };
  unique_function<int(mover)> moved = [](mover&& given) { return given.moves; };
  std::move_only_function<int(mover)> by_the_standard = [](mover&& given) { return given.moves; };
  EXPECT_EQ(moved(mover()), by_the_standard(mover()));
  unique_function<void(int)> dropped = twice;
  static_assert(std::is_void_v<decltype(dropped(1))>);
  dropped(1);
  unique_function<void()> throws = [] { throw std::runtime_error("of the target"); };
  EXPECT_THROW(throws(), std::runtime_error);
  EXPECT_TRUE(throws);
}

TEST(unique_function, has_no_target_when_its_construction_throws) {
  struct thrower {
    thrower() = default;
    [[noreturn]] thrower(const thrower&) { throw std::runtime_error("no copy"); }
    int operator()(int number) const { return number; }
  };
  const thrower given;
  EXPECT_THROW(number_function{given}, std::runtime_error);
  number_function function = twice;
  EXPECT_THROW(function = given, std::runtime_error);
  EXPECT_EQ(function(2), 4);
}

TEST(unique_function, may_be_cleared_by_its_own_target) {
  number_function function;
  struct clears {
    number_function* function;
    explicit clears(number_function& given) : function(&given) {}
    clears(clears&& other) noexcept : function(std::exchange(other.function, nullptr)) {}
    ~clears() {
      if (function != nullptr) *function = nullptr;
    }
    int operator()(int number) const { return number; }
  };
  function = clears(function);
  function = nullptr;
  EXPECT_FALSE(function);
}

TEST(unique_function, refuses_callables_that_do_not_match) {
  static_assert(!std::is_constructible_v<number_function, int (*)(int, int)>);
  static_assert(!std::is_constructible_v<number_function, std::string (*)(int)>);
  static_assert(!std::is_constructible_v<number_function, int>);
  static_assert(!std::is_copy_constructible_v<number_function>);
  static_assert(!std::is_copy_assignable_v<number_function>);
  static_assert(std::is_nothrow_move_constructible_v<number_function>);
  static_assert(std::is_nothrow_move_assignable_v<number_function>);
}

}  // namespace
}  // namespace troupe
