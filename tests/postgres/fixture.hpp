// What the tests of postgres::connection share.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "postgres/cluster.hpp"
#include "support/conformance.hpp"
#include "troupe/postgres/connection.hpp"

namespace troupe::test {

// For tests that take long: a server is started anew.
inline std::vector<setting> each_thread_policy() {
  std::vector<setting> all = each_policy();
  std::erase_if(all, [](const setting& one) { return one.policy == policy::simulated; });
  return all;
}

// With real threads alone: a simulated program has no server.
class postgres_fixture : public conformance {
 protected:
  void SetUp() override {
    conformance::SetUp();
    if (IsSkipped()) return;
    if (!postgres_server::get().why_not().empty()) GTEST_SKIP() << postgres_server::get().why_not();
  }
  static std::string target(const std::string& more = {}) {
    return postgres_server::get().target(more);
  }

  // Runs test(connection) as a task.
  template <class Test>
  void with(const std::string& to, Test test, const postgres::options& chosen = {}) {
    runtime rt(options());
    future<> done = rt.spawn(test(postgres::connection(rt, to, chosen)));
    rt.run();
    done.get();
  }
  template <class Test>
  void with(Test test, const postgres::options& chosen = {}) {
    with(target(), std::move(test), chosen);
  }

  // The kind of failure with which the call ends, its SQLSTATE, and its text.
  template <class T>
  static task<std::string> failure_of(task<T> call) {
    try {
      static_cast<void>(co_await std::move(call));
    } catch (const postgres::error& failed) {
      co_return std::string(database::name_of(failed.kind())) + " " + failed.sqlstate() + ": " +
          failed.what();
    } catch (const database::error& failed) {
      co_return std::string(database::name_of(failed.kind())) + ": " + failed.what();
    }
    co_return "none";
  }
  static task<std::string> failure_of(task<> call) {
    const auto with_result = [](task<> of) -> task<int> {
      co_await std::move(of);
      co_return 0;
    };
    return failure_of(with_result(std::move(call)));
  }
  static bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  }
};

}  // namespace troupe::test
