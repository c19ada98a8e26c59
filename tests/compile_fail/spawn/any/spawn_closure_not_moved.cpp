// spawn() keeps the callable and its arguments: they must be copied or moved in.
// expect: troupe: spawn: the callable or an argument can only be moved; give it with std::move
#include <memory>
#include <troupe/troupe.hpp>

void use(troupe::runtime& rt, std::unique_ptr<int> n) {
  auto work = [n = std::move(n)]() -> troupe::task<> {
    static_cast<void>(*n);
    co_return;
  };
#ifdef CONTROL
  rt.spawn(std::move(work));
#else
  rt.spawn(work);
#endif
}
