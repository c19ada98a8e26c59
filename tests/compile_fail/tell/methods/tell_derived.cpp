// Only the base class's part of the argument would be sent.
// expect: troupe: tell: an argument's class derives from the parameter's
// expect: static_cast
#include <memory>
#include <string>
#include <troupe/troupe.hpp>

struct Event {
  int at = 0;
};
struct Press : Event {
  std::string key;
};
struct Log {
  void add(const Event& one) { last = one.at; }
  void add_any(std::unique_ptr<Event> one) { last = one->at; }
  int last = 0;
};

void use(troupe::ref<Log> to, Press press) {
#ifdef CONTROL
  to.tell<&Log::add>(static_cast<const Event&>(press));
  to.tell<&Log::add_any>(std::make_unique<Press>(press));
#else
  to.tell<&Log::add>(press);
#endif
}
