#include "sched/exploring/seen_file.hpp"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "sched/exploring/schedule_file.hpp"

namespace troupe::sched::exploring {
namespace {

void read_line(const std::string& line, execution& seen) {
  std::istringstream words(line);
  std::string keyword;
  words >> keyword;
  if (keyword == "turn") {
    turn_seen turn;
    words >> std::hex >> turn.id.maker >> std::dec >> turn.id.nth >> turn.id.run >> turn.arrived >>
        turn.begun >> turn.runtime;
    seen.seen.push_back(turn);
    ++seen.turns;
  } else if (keyword == "arrival") {
    ++seen.arrivals;
  } else if (keyword == "return") {
    ++seen.returns;
  } else if (keyword == "contested") {
    words >> seen.contested.emplace_back();
  } else if (keyword == "contested-return") {
    words >> seen.contested_returns.emplace_back();
  } else if (keyword == "connection") {
    ++seen.connections;
  } else if (keyword == "hash") {
    words >> std::hex >> seen.hashes.emplace_back();
  } else if (keyword == "program") {
    words >> seen.program;
  } else if (keyword == "met") {
    std::size_t hold = SIZE_MAX;
    words >> hold;
    if (hold < seen.met.size()) seen.met[hold] = 1;
  } else if (keyword == "fault-point") {
    std::size_t where = SIZE_MAX;
    words >> where;
    if (where < seen.fault_points.size()) ++seen.fault_points[where];
  } else if (keyword == "order") {
    const std::size_t begin = keyword.size() + 1, end = line.find('\t');
    if (end != std::string::npos)
      seen.orders.emplace(line.substr(begin, end - begin), line.substr(end + 1));
  } else if (keyword == "made") {
    seen.new_holds.push_back(parse_hold(line.substr(keyword.size() + 1)));
  }
}

}  // namespace

std::string line_of(const turn_seen& turn) {
  std::array<char, 128> text;
  std::snprintf(text.data(), text.size(),
                "turn %" PRIx64 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %u",
                turn.id.maker, turn.id.nth, turn.id.run, turn.arrived, turn.begun, turn.runtime);
  return text.data();
}

std::string line_of(const handler_order& order) {
  return "order " + order.first + '\t' + order.second;
}

std::string line_of(fault_point where) {
  return "fault-point " + std::to_string(static_cast<unsigned>(where));
}

std::string line_of_hash(std::uint64_t hash) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "hash %" PRIx64, hash);
  return text.data();
}

std::shared_ptr<execution> read_seen(const std::string& file, const schedule& plan) {
  auto found = std::make_shared<execution>(plan);
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line) && !stream.eof();) read_line(line, *found);
  return found;
}

}  // namespace troupe::sched::exploring
