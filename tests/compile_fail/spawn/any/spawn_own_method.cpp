// A method of a running actor must run in its turns.
// expect: troupe: spawn: a method is called on an object that is kept beside it, by value
// expect: troupe::self(this).tell<&T::method>(...)
#include <troupe/troupe.hpp>

struct Account {
  troupe::task<> deactivate() { co_return; }
  void close() {
#ifdef CONTROL
    troupe::self(this).tell<&Account::deactivate>();
#else
    troupe::spawn(&Account::deactivate, this);
#endif
  }
};

void use(troupe::runtime& rt) { rt.spawn<Account>().tell<&Account::close>(); }
