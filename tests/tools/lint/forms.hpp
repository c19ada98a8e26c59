// A coroutine type, and an object that counts how often it is destroyed, for the forms in this
// folder.
#pragma once

#include <array>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
inline std::set<const void*> live;
inline int faults = 0, made = 0, gone = 0;
struct C {
  int n = 0;
  const C* self;
  C() : self(this) { on(); }
  C(int k) : n(k), self(this) { on(); }
  C(const C& o) : n(o.n), self(this) {
    o.check();
    on();
  }
  C(C&& o) noexcept : n(o.n), self(this) {
    o.check();
    on();
  }
  C& operator=(const C& o) {
    check();
    o.check();
    n = o.n;
    return *this;
  }
  ~C() {
    if (self != this) ++faults;
    if (!live.erase(this)) ++faults;
    ++gone;
  }
  void check() const {
    if (self != this) ++faults;
  }
  void on() {
    if (!live.insert(this).second) ++faults;
    ++made;
  }
};
struct A {
  C c;
};
struct A2 {
  C c, d;
};
struct D {
  C c = 7;
  int k = 1;
};
struct P {
  int a = 1, b = 2;
};  // trivial aggregate
struct W {
  C c;
  W(int n) : c(n) {}
  int get() const {
    c.check();
    return c.n;
  }
};
class Q {
  C c;

 public:
  int get() const {
    c.check();
    return c.n;
  }
};  // implicit ctor, no aggregate
struct S {
  std::string s;
  std::vector<int> v;
};
template <class T>
struct task {
  struct promise_type {
    std::optional<T> v;
    std::coroutine_handle<> up;
    std::exception_ptr e;
    task get_return_object() {
      return task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct fin {
      bool await_ready() noexcept { return false; }
      void await_resume() noexcept {}
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept {
        return h.promise().up ? h.promise().up : std::noop_coroutine();
      }
    };
    fin final_suspend() noexcept { return {}; }
    void unhandled_exception() { std::terminate(); }
    template <class U>
    void return_value(U&& u) {
      v.emplace(std::forward<U>(u));
    }
    template <class U>
    std::suspend_always yield_value(U&& u) {
      v.emplace(std::forward<U>(u));
      return {};
    }
  };
  std::coroutine_handle<promise_type> h;
  explicit task(std::coroutine_handle<promise_type> g) : h(g) {}
  task(task&& o) noexcept : h(std::exchange(o.h, {})) {}
  ~task() {
    if (h) h.destroy();
  }
  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> u) {
    h.promise().up = u;
    return h;
  }
  T await_resume() { return std::move(*h.promise().v); }
};
inline int calls = 0;
inline task<int> num(int n = 5) {
  ++calls;
  co_return n;
}
inline task<C> obj(int n = 5) {
  ++calls;
  co_return C(n);
}
inline task<bool> yes() {
  ++calls;
  co_return true;
}
inline task<bool> no() {
  ++calls;
  co_return false;
}
inline task<A> agg() {
  ++calls;
  co_return A(C(3));
}
inline task<int> byval(A a) {
  a.c.check();
  int n = co_await num(a.c.n);
  co_return n;
}
inline task<int> byval2(A2 a) {
  a.c.check();
  a.d.check();
  int n = co_await num(a.c.n);
  co_return n;
}
inline task<int> byvalC(C c) {
  c.check();
  int n = co_await num(c.n);
  c.check();
  co_return n;
}
inline task<int> byrefC(const C& c) {
  c.check();
  int n = co_await num(c.n);
  c.check();
  co_return n;
}
inline task<int> byref(const A& a) {
  a.c.check();
  int n = co_await num(a.c.n);
  a.c.check();
  co_return n;
}
inline task<int> byrr(A&& a) {
  a.c.check();
  int n = co_await num(a.c.n);
  a.c.check();
  co_return n;
}
template <class T>
task<int> keep(T t) {
  (void)t;
  int n = co_await num(1);
  co_return n;
}
template <class T>
task<int> fwd(T&& t) {
  return keep<std::decay_t<T>>(std::forward<T>(t));
}
template <class T>
task<int> cref(const T& t) {
  (void)t;
  int n = co_await num(1);
  co_return n;
}
template <class F>
task<int> run(F f) {
  int n = co_await num(1);
  f();
  co_return n;
}
template <class F>
task<int> runf(F&& f) {
  return run<std::decay_t<F>>(std::forward<F>(f));
}
inline task<int> fun(std::function<void()> f) {
  int n = co_await num(1);
  f();
  co_return n;
}
inline task<int> defagg(int n, D d = {}) {
  d.c.check();
  int k = co_await num(n);
  d.c.check();
  co_return k;
}
inline task<int> defC(int n, C c = C(2)) {
  c.check();
  int k = co_await num(n);
  c.check();
  co_return k;
}
inline task<int> defrefagg(int n, const D& d = {}) {
  d.c.check();
  int k = co_await num(n);
  d.c.check();
  co_return k;
}
inline task<int> str(std::string s) {
  int n = co_await num(int(s.size()));
  co_return n;
}
inline task<int> vecC(std::vector<C> v) {
  for (auto& c : v) c.check();
  int n = co_await num(int(v.size()));
  co_return n;
}
inline task<int> vecI(std::vector<int> v) {
  int n = co_await num(int(v.size()));
  co_return n;
}
inline task<int> ilC(std::initializer_list<C> v) {
  for (auto& c : v) c.check();
  int n = co_await num(int(v.size()));
  for (auto& c : v) c.check();
  co_return n;
}
inline A make_a(int n = 1) { return A{C(n)}; }
inline int use(const A& a, int k) {
  a.c.check();
  return a.c.n + k;
}
inline int usev(A a, int k) {
  a.c.check();
  return a.c.n + k;
}
inline int useC(const C& a, int k = 0) {
  a.check();
  return a.n + k;
}
inline bool okC(const C& a) {
  a.check();
  return true;
}
inline void sink(int) {}
inline int add(int a, int b) { return a + b; }
inline bool yesb = true, nob = false;
