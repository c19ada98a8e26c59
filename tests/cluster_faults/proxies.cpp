#include "cluster_faults/proxies.hpp"

#include <iostream>
#include <memory>
#include <sstream>
#include <thread>
#include <utility>

#include "cluster/steered_proxy.hpp"

namespace troupe::test {
namespace {

using proxies = std::vector<std::unique_ptr<steered_proxy>>;

void obey(const proxies& all, const std::string& line) {
  std::istringstream words(line);
  std::string what;
  words >> what;
  std::int64_t delay_us = 0;
  int there = 0, back = 0;
  if (what == "delay") words >> delay_us;
  if (what == "hold") words >> there >> back;
  for (const auto& one : all) {
    if (what == "delay") one->delay(std::chrono::microseconds(delay_us));
    if (what == "hold") one->hold(there != 0, back != 0);
    if (what == "reset") one->reset();
  }
}

task<> serve(const std::vector<std::string>& servers) {
  proxies all;
  std::string ports = "ports";
  for (const std::string& one : servers) {
    all.push_back(std::make_unique<steered_proxy>(endpoint::parse(one)));
    all.back()->start();
    ports += ' ' + std::to_string(all.back()->port());
  }
  std::cout << ports << std::endl;
  auto listens = blocking([&all] {
    for (std::string line; std::getline(std::cin, line);) obey(all, line);
  });
  co_await std::move(listens);
  for (const auto& one : all) {
    auto joins = one->join();
    co_await std::move(joins);
  }
}

}  // namespace

int run_proxies(const std::vector<std::string>& servers) {
  runtime_options small;
  small.workers = 1;
  runtime rt(small);
  rt.spawn(serve(servers));
  rt.run();
  return 0;
}

}  // namespace troupe::test
