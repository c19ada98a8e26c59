#include "cluster_faults/check.hpp"

#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "support/linearizable.hpp"

namespace troupe::test {
namespace {

using model = linearizable::register_model;
using one_operation = linearizable::operation<model>;

struct registers {
  std::map<std::string, std::vector<one_operation>> all;
  std::size_t known = 0, unknown = 0, not_run = 0;
};
struct begun {
  std::string key;
  one_operation what;
};

// begin-line: ID KEY OPERATION FIRST SECOND TIME
std::pair<std::uint64_t, begun> read_begin(std::istringstream& from) {
  std::uint64_t id = 0;
  begun made;
  std::string act;
  std::int64_t first = 0, second = 0;
  if (!(from >> id >> made.key >> act >> first >> second >> made.what.called))
    throw std::runtime_error("a line of a history cannot be read");
  made.what.what = act == "read"    ? model::read()
                   : act == "write" ? model::write(first)
                                    : model::replace(first, second);
  return {id, std::move(made)};
}

// What has no end, or an unknown one, has no answer.
void read_file(const std::string& path, registers& into) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::unordered_map<std::uint64_t, begun> open;
  const auto note = [&into](begun one) {
    ++(one.what.answer ? into.known : into.unknown);
    into.all[one.key].push_back(one.what);
  };
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, how;
    words >> kind;
    if (kind == "b") {
      open.insert(read_begin(words));
      continue;
    }
    std::uint64_t id = 0;
    std::int64_t value = 0, at = 0;
    if (!(words >> id >> how >> value >> at))
      throw std::runtime_error("a line of a history cannot be read");
    auto ended = open.extract(id);
    if (how == "done") {
      ended.mapped().what.answer = value;
      ended.mapped().what.returned = at;
    }
    if (how == "not_run") {
      ++into.not_run;
    } else {
      note(std::move(ended.mapped()));
    }
  }
  for (auto& [id, one] : open) note(std::move(one));
}

// Without the operations of unknown end whose value nobody has seen: each of them may have had no
// effect. So if these have an explanation, all have.
std::vector<one_operation> seen_ones(const std::vector<one_operation>& all) {
  std::set<std::int64_t> seen;
  for (const one_operation& one : all) {
    if (one.what.what == model::act::read && one.answer) seen.insert(*one.answer);
    if (one.what.what == model::act::replace && one.answer.value_or(1) == 1)
      seen.insert(one.what.expected);
  }
  std::vector<one_operation> left;
  for (const one_operation& one : all) {
    const bool is_seen = one.what.what != model::act::read && seen.contains(one.what.value);
    if (one.answer || is_seen) left.push_back(one);
  }
  return left;
}

std::string wrong_with(const std::vector<one_operation>& all) {
  constexpr std::uint64_t steps_max = 2'000'000;
  std::string wrong = linearizable::search<model>(seen_ones(all)).run(steps_max);
  if (wrong.empty()) return wrong;
  return linearizable::search<model>(all).run(steps_max);
}

}  // namespace

int check_histories(const std::vector<std::string>& paths) {
  registers read;
  for (const std::string& path : paths) read_file(path, read);
  std::cout << read.all.size() << " registers, " << read.known << " operations with a known end, "
            << read.unknown << " with an unknown one, " << read.not_run << " that did not run"
            << std::endl;
  int result = 0;
  for (const auto& [key, all] : read.all) {
    const std::string wrong = wrong_with(all);
    if (wrong.empty()) continue;
    std::cout << "not linearizable: " << key << ": " << wrong << std::endl;
    result = 1;
  }
  return result;
}

}  // namespace troupe::test
