// A bound message is sent each time that it fires, so its arguments must be copyable.
// expect: troupe: bind: each call sends a copy of the bound arguments, which must be copyable
#include <memory>
#include <troupe/troupe.hpp>

struct Log {
  void keep(std::shared_ptr<int> one) { kept = std::move(one); }
  std::shared_ptr<int> kept;
};

void use(troupe::ref<Log> log) {
#ifdef CONTROL
  log.bind<&Log::keep>(std::make_shared<int>(1))();
#else
  log.bind<&Log::keep>(std::make_unique<int>(1))();
#endif
}
