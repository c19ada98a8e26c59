// An argument that can be neither copied nor moved cannot get into a message.
// expect: troupe: tell: an argument or parameter can be neither copied nor moved into the message
// expect: std::unique_ptr
#include <memory>
#include <mutex>
#include <troupe/troupe.hpp>

struct Door {
  void lock(const std::mutex& with) { last = &with; }
  void keep(std::unique_ptr<std::mutex> one) { kept = std::move(one); }
  const std::mutex* last = nullptr;
  std::unique_ptr<std::mutex> kept;
};

void use(troupe::ref<Door> to) {
#ifdef CONTROL
  to.tell<&Door::keep>(std::make_unique<std::mutex>());
#else
  std::mutex with;
  to.tell<&Door::lock>(with);
#endif
}
