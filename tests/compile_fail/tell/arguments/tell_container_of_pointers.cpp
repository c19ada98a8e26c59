// Containers and wrappers are checked for what they contain.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
#include <functional>
#include <memory>
#include <optional>
#include <troupe/troupe.hpp>
#include <vector>

struct Keeper {
  void keep(std::vector<std::optional<int*>>) {}
  void keep_owned(std::vector<std::unique_ptr<int>>) {}
};

void use(troupe::ref<Keeper> keeper) {
#ifdef CONTROL
  keeper.tell<&Keeper::keep_owned>(std::vector<std::unique_ptr<int>>{});
#else
  keeper.tell<&Keeper::keep>(std::vector<std::optional<int*>>{});
#endif
}
