#include "stacks/thread_stack.hpp"

#include <charconv>
#include <cstddef>

namespace troupe_tool {
namespace {

constexpr std::size_t threads_max = 100'000, registers_max = 64,
                      stack_bytes_max = std::size_t{64} << 10;

[[noreturn]] void refuse() {
  throw failure("the program's answer about its stacks makes no sense");
}

std::string bytes_of(const std::string& hex) {
  if (hex.size() % 2 != 0 || hex.size() / 2 > stack_bytes_max) refuse();
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned value = 0;
    const char* const end = hex.data() + i + 2;
    if (std::from_chars(hex.data() + i, end, value, 16).ptr != end) refuse();
    bytes += static_cast<char>(value);
  }
  return bytes;
}

thread_stack read_stack(const json& from) {
  thread_stack stack;
  stack.worker = from.at("worker").get<unsigned>();
  stack.thread = from.at("thread").get<int>();
  stack.is_blocked = from.at("is_blocked").get<bool>();
  stack.cpu_ns = from.at("cpu_ns").get<std::int64_t>();
  constexpr std::int64_t longest = std::int64_t{1} << 53;  // sums of it do not overflow
  if (stack.cpu_ns < 0 || stack.cpu_ns > longest) refuse();
  stack.handler = from.value("handler", "");
  stack.of_class = from.value("class", "");
  stack.actor = from.value("actor", std::uint64_t{0});
  stack.missing = from.value("missing", "");
  if (!stack.missing.empty()) return stack;
  stack.held_ns = from.at("held_ns").get<std::int64_t>();
  stack.registers = from.at("registers").get<std::vector<std::uint64_t>>();
  stack.stack_pointer = from.at("stack_pointer").get<std::uint64_t>();
  stack.stack = bytes_of(from.at("stack").get<std::string>());
  if (stack.registers.size() > registers_max) refuse();
  return stack;
}

}  // namespace

std::string thread_stack::work() const {
  if (handler.empty()) return "no handler";
  return of_class.empty() ? handler : handler + " of " + of_class;
}

std::vector<thread_stack> read_stacks(const json& answer) {
  const json& threads = answer.at("threads");
  if (!threads.is_array() || threads.size() > threads_max) refuse();
  std::vector<thread_stack> all;
  for (const json& thread : threads) all.push_back(read_stack(thread));
  return all;
}

std::size_t count_runtimes(program& asked) {
  constexpr std::size_t runtimes_max = 1'000;
  const std::size_t count = asked.ask("warnings").at("runtimes").size();
  if (count > runtimes_max) refuse();
  return count;
}

std::vector<thread_stack> ask_stacks(program& asked, std::size_t runtimes,
                                     const std::string& which) {
  std::vector<thread_stack> all;
  for (std::size_t i = 0; i < runtimes; ++i) {
    std::string question = "stacks " + std::to_string(i);
    if (!which.empty()) question += " " + which;
    for (thread_stack& stack : read_stacks(asked.ask(question))) all.push_back(std::move(stack));
  }
  return all;
}

}  // namespace troupe_tool
