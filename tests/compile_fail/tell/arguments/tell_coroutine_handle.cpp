// The handle of a coroutine is a pointer to its frame.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
// expect: Reader::resume
#include <coroutine>
#include <troupe/troupe.hpp>

struct Reader {
  void resume(std::coroutine_handle<> frame) { frame.resume(); }
  void resume_unchecked(troupe::unchecked<std::coroutine_handle<>> frame) { frame.value.resume(); }
};

void use(troupe::ref<Reader> to, std::coroutine_handle<> frame) {
#ifdef CONTROL
  to.tell<&Reader::resume_unchecked>(troupe::unchecked{frame});
#else
  to.tell<&Reader::resume>(frame);
#endif
}
