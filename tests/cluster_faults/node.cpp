// A node of a cluster for faults.py: its clients work on durable registers, and write down what
// they did. It is told what to do by lines on its standard input, and answers with lines:
//   status  the number of shards here, and of members
//   finish  ends the clients, and reads all registers
//   stop    hands the shards over, and ends
//
//     node serve NATS DATABASE NAME HISTORY NUMBER BEGUN_NS CLIENTS PAUSE_MS LEASE_MS
//     node proxy ADDRESS...   proxies (proxies.hpp)
//     node check HISTORY...   looks whether the histories together are linearizable
#include <atomic>
#include <chrono>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster_faults/check.hpp"
#include "cluster_faults/clients.hpp"
#include "cluster_faults/proxies.hpp"
#include "troupe/troupe.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

struct commands {
  std::atomic<bool> finish{false}, stop{false};
};

void say(const std::string& text) { std::cout << text + '\n' << std::flush; }

void obey(const cluster::node& on, clients& all, commands& told) {
  for (std::string line; !told.stop && std::getline(std::cin, line);) {
    if (line == "status") {
      const cluster::counts now = on.counts();
      say("status " + std::to_string(now.shards) + ' ' + std::to_string(now.members));
    } else if (line == "finish") {
      all.stop();
      told.finish = true;
    } else if (line == "stop") {
      told.stop = true;
    }
  }
  all.stop();
  told.finish = told.stop = true;
}

task<> wait_for(const std::atomic<bool>& what) {
  while (!what) co_await sleep_for(20ms);  // sleeps: until a line comes
}

task<> serve(runtime& rt, cluster::options chosen, client_options work, std::string history) {
  const cluster::node on(
      rt, std::move(chosen),
      durable::kind<Register, &Register::read, &Register::write, &Register::swap>());
  for (bool is_ready = false; !is_ready;) {
    try {
      auto joins = on.ready();
      co_await std::move(joins);
      is_ready = true;
    } catch (const std::exception& e) {
      std::cerr << e.what() << std::endl;
    }
    if (!is_ready) co_await sleep_for(50ms);  // sleeps: until it has tried again
  }
  clients all(work, history);
  commands told;
  std::thread listens([&] { obey(on, all, told); });
  say("joined");
  auto runs = all.run(on);
  co_await std::move(runs);
  auto waits = wait_for(told.finish);
  co_await std::move(waits);
  auto reads = all.read_all(on);
  co_await std::move(reads);
  say("finished");
  auto waits_too = wait_for(told.stop);
  co_await std::move(waits_too);
  auto stops = on.stop();
  co_await std::move(stops);
  say("stopped");
  listens.join();
}

int run_node(const std::vector<std::string>& words) {
  if (words.size() != 9) throw std::invalid_argument("serve takes 9 words");
  cluster::options chosen;
  chosen.nats = words[0];
  chosen.database = words[1];
  chosen.name = words[2];
  chosen.lease = std::chrono::milliseconds(std::stoi(words[8]));
  chosen.margin = chosen.lease / 10;
  client_options work;
  work.number = std::stoi(words[4]);
  work.begun_ns = std::stoll(words[5]);
  work.clients = std::stoi(words[6]);
  work.pause = std::chrono::milliseconds(std::stoi(words[7]));
  runtime_options small;
  small.workers = 1;
  runtime rt(small);
  rt.spawn(serve(rt, std::move(chosen), work, words[3]));
  rt.run();
  return 0;
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) throw std::invalid_argument("the first word says what to do");
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words[0] == "serve") return run_node(rest);
  if (words[0] == "check") return check_histories(rest);
  if (words[0] == "proxy") return run_proxies(rest);
  throw std::invalid_argument("cannot " + words[0]);
}

}  // namespace
}  // namespace troupe::test

int main(int argc, char** argv) {
  try {
    return troupe::test::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& e) {
    std::cerr << "node: " << e.what() << std::endl;
    return 2;
  }
}
