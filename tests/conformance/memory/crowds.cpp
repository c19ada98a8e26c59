// One handler may create, address and release very many actors in one turn.
#include <atomic>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class crowds : public conformance {};

struct fly {
  explicit fly(std::atomic<int>& count) : lives(count) {}
  void live() { lives.fetch_add(1); }
  std::atomic<int>& lives;
};

struct breeder {
  breeder(troupe::runtime& runtime, std::atomic<int>& count) : rt(runtime), lives(count) {}

  void let_go(int many) {
    for (int i = 0; i < many; ++i) rt.spawn<fly>(lives).tell<&fly::live>();
  }
  void keep(int many) {
    for (int i = 0; i < many; ++i) all.push_back(rt.spawn<fly>(lives));
    tell_all();
  }
  void tell_all() {
    for (const auto& one : all) one.tell<&fly::live>();
  }

  troupe::runtime& rt;
  std::atomic<int>& lives;
  std::vector<troupe::ref<fly>> all;
};

TEST_P(crowds, one_handler_makes_and_tells_very_many_actors) {
  std::atomic<int> lives{0};
  troupe::runtime rt(options());
  const int many = fewer(40'000);
  auto parent = rt.spawn<breeder>(rt, lives);
  parent.tell<&breeder::let_go>(many);
  rt.run();
  EXPECT_EQ(lives, many);
  parent.tell<&breeder::keep>(many);
  rt.run();
  EXPECT_EQ(lives, 2 * many);
  parent.tell<&breeder::tell_all>();
  parent.tell<&breeder::tell_all>();
  rt.run();
  EXPECT_EQ(lives, 4 * many);
}

TROUPE_TEST_EACH(crowds, all_settings);

}  // namespace
}  // namespace troupe::test
