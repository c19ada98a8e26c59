#include "sched/exploring/schedule_file.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "troupe/base/error.hpp"

namespace troupe::sched::exploring {
namespace {

constexpr std::string_view head = "troupe schedule 1";

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string text_of(const turn_id& turn) {
  return hex(turn.maker) + ' ' + std::to_string(turn.nth) + ' ' + std::to_string(turn.run);
}

std::string strategy_of(const schedule& plan) {
  const char* by = plan.by == strategy::random        ? "random"
                   : plan.by == strategy::one_message ? "one_message"
                                                      : "priorities";
  return std::string("strategy ") + by + ' ' + std::to_string(plan.depth) + ' ' +
         std::to_string(plan.inherits) + ' ' + std::to_string(plan.turns_expected) + '\n';
}

// One line, from left to right.
class line_reader {
 public:
  line_reader(const std::string& line, const std::string& file, unsigned number)
      : words_(line), line_(line), file_(file), number_(number) {}
  std::string word() {
    std::string found;
    words_ >> found;
    return found;
  }
  std::string rest() {
    std::string found;
    std::getline(words_ >> std::ws, found);
    return found;
  }
  std::uint64_t value(int base = 10) {
    const std::string text = word();
    std::uint64_t found = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), found, base);
    if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) fail();
    return found;
  }
  std::uint32_t small() {
    const std::uint64_t found = value();
    if (found > UINT32_MAX) fail();
    return static_cast<std::uint32_t>(found);
  }
  turn_id turn() {
    turn_id found;
    found.maker = value(16);
    found.nth = small();
    found.run = small();
    return found;
  }
  [[noreturn]] void fail() const {
    throw option_error("troupe: " + file_ + ", line " + std::to_string(number_) +
                       ": this is no line of a schedule: " + line_);
  }

 private:
  std::istringstream words_;
  const std::string& line_;
  const std::string& file_;
  const unsigned number_;
};

hold read_hold(line_reader& reader) {
  hold read{.held = reader.turn(), .until = {}};
  for (std::string word = reader.word(); !word.empty(); word = reader.word()) {
    if (word == "until") {
      read.until = reader.turn();
    } else if (word == "late") {
      read.late = true;
    } else {
      reader.fail();
    }
  }
  return read;
}

constexpr std::array<std::string_view, 11> fault_names{
    "none",          "cut",         "lost",         "slow",           "slow-file",  "write-fails",
    "storage-fails", "storage-cut", "storage-slow", "storage-stalls", "commit-lost"};
const std::string_view& name_of(fault kind) {
  return fault_names.at(static_cast<std::size_t>(kind));
}

fault read_fault(line_reader& line) {
  const auto found = std::ranges::find(fault_names, line.word());
  if (found == fault_names.end() || found == fault_names.begin()) line.fail();
  return static_cast<fault>(found - fault_names.begin());
}

planned_fault read_planned_fault(line_reader& line) {
  const fault kind = read_fault(line);
  return {kind, line.value()};
}

hold read_fault_hold(line_reader& line) {
  const fault kind = read_fault(line);
  return {.held = line.turn(), .until = {}, .injected = kind};
}

hold read_connection(line_reader& reader) {
  hold read{.held = {}, .until = {}, .connection = true};
  read.held.maker = reader.value(16);
  read.held.nth = reader.small();
  return read;
}

void read_strategy(line_reader& reader, schedule& plan) {
  const std::string by = reader.word();
  if (by == "random") {
    plan.by = strategy::random;
  } else if (by == "one_message") {
    plan.by = strategy::one_message;
  } else if (by == "priorities") {
    plan.by = strategy::priorities;
  } else {
    reader.fail();
  }
  plan.depth = reader.small();
  plan.inherits = reader.value() != 0;
  plan.turns_expected = reader.value();
}

// Lines of plans of a search.
void read_search(const std::string& keyword, line_reader& line, kept_schedule& kept) {
  if (keyword == "arrival") {
    kept.plan.held_arrivals.push_back(line.value());
  } else if (keyword == "return") {
    kept.plan.held_returns.push_back(line.value());
  } else if (keyword == "late-connection") {
    kept.plan.held_connections.push_back(line.value());
  } else if (keyword == "planned-fault") {
    kept.plan.faults.push_back(read_planned_fault(line));
  } else if (keyword == "late") {
    kept.plan.late = true;
  } else if (keyword == "record") {
    kept.records = true;
  } else if (keyword == "dead-letters") {
    kept.dead_letters = true;
  } else if (keyword == "story") {
    kept.tells = true;
  } else {
    line.fail();
  }
}

void read_line(line_reader& reader, kept_schedule& kept) {
  const std::string keyword = reader.word();
  if (keyword.empty()) return;
  if (keyword.front() == '#') {
    kept.remarks += reader.rest() + '\n';
  } else if (keyword == "program") {
    kept.program = reader.word();
  } else if (keyword == "test") {
    kept.test = reader.rest();
  } else if (keyword == "seed") {
    kept.plan.seed = reader.value();
  } else if (keyword == "turns") {
    kept.plan.turns_max = reader.value();
  } else if (keyword == "hold") {
    kept.plan.holds.push_back(read_hold(reader));
  } else if (keyword == "connection") {
    kept.plan.holds.push_back(read_connection(reader));
  } else if (keyword == "fault") {
    kept.plan.holds.push_back(read_fault_hold(reader));
  } else if (keyword == "strategy") {
    read_strategy(reader, kept.plan);
  } else if (keyword == "hash") {
    reader.value();
    kept.hashes.push_back(reader.value(16));
  } else {
    read_search(keyword, reader, kept);
  }
}

int find_id(::dl_phdr_info* module, std::size_t, void* found) {
  // the first object is the program
  for (unsigned i = 0; i < module->dlpi_phnum; ++i) {
    const auto& part = module->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers
    const char* at = reinterpret_cast<const char*>(module->dlpi_addr + part.p_vaddr);
    const char* const end = at + part.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const auto padded = [](std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; };
      const char* const id = at + sizeof note + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID) {
        for (unsigned byte = 0; byte < note.n_descsz; ++byte) {
          char text[3];
          std::snprintf(text, sizeof text, "%02x", static_cast<unsigned char>(id[byte]));
          *static_cast<std::string*>(found) += text;
        }
        return 1;
      }
      at = id + padded(note.n_descsz);
    }
  }
  return 1;
}

}  // namespace

std::string text_of(const hold& kept) {
  if (kept.connection)
    return "connection " + hex(kept.held.maker) + ' ' + std::to_string(kept.held.nth);
  if (kept.injected != fault::none)
    return "fault " + std::string(name_of(kept.injected)) + ' ' + text_of(kept.held);
  std::string text = "hold " + text_of(kept.held);
  if (kept.until) text += " until " + text_of(*kept.until);
  if (kept.late) text += " late";
  return text;
}

hold parse_hold(const std::string& line) {
  const std::string nowhere = "a hold";
  line_reader reader(line, nowhere, 1);
  const std::string keyword = reader.word();
  if (keyword == "hold") return read_hold(reader);
  if (keyword == "fault") return read_fault_hold(reader);
  if (keyword != "connection") reader.fail();
  return read_connection(reader);
}

std::string text_of(const kept_schedule& kept) {
  std::string text = std::string(head) + '\n';
  if (!kept.program.empty()) text += "program " + kept.program + '\n';
  if (!kept.test.empty()) text += "test " + kept.test + '\n';
  text += "seed " + std::to_string(kept.plan.seed) + '\n';
  if (kept.plan.turns_max != UINT64_MAX)
    text += "turns " + std::to_string(kept.plan.turns_max) + '\n';
  if (kept.plan.by != strategy::holds) text += strategy_of(kept.plan);
  for (const hold& held : kept.plan.holds) text += text_of(held) + '\n';
  for (const std::uint64_t arrival : kept.plan.held_arrivals)
    text += "arrival " + std::to_string(arrival) + '\n';
  for (const std::uint64_t number : kept.plan.held_returns)
    text += "return " + std::to_string(number) + '\n';
  for (const std::uint64_t arrival : kept.plan.held_connections)
    text += "late-connection " + std::to_string(arrival) + '\n';
  for (const planned_fault& planned : kept.plan.faults) {
    text += "planned-fault " + std::string(name_of(planned.kind)) + ' ' +
            std::to_string(planned.number) + '\n';
  }
  if (kept.plan.late) text += "late\n";
  if (kept.records) text += "record\n";
  if (kept.dead_letters) text += "dead-letters\n";
  if (kept.tells) text += "story\n";
  std::uint64_t turns = 0;
  for (const std::uint64_t hash : kept.hashes)
    text += "hash " + std::to_string(turns += turns_a_hash) + ' ' + hex(hash) + '\n';
  std::istringstream remarks(kept.remarks);
  for (std::string line; std::getline(remarks, line);) text += "# " + line + '\n';
  return text;
}

kept_schedule parse_schedule(const std::string& text, const std::string& name) {
  kept_schedule kept;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  if (line != head) {
    throw option_error("troupe: " + name + " is no schedule: its first line must be \"" +
                       std::string(head) + '"');
  }
  for (unsigned number = 2; std::getline(lines, line); ++number) {
    line_reader reader(line, name, number);
    read_line(reader, kept);
  }
  return kept;
}

kept_schedule read_schedule(const std::string& file) {
  std::ifstream stream(file);
  std::stringstream text;
  if (stream) text << stream.rdbuf();
  if (!stream || !text) throw option_error("troupe: the schedule " + file + " cannot be read");
  return parse_schedule(text.str(), file);
}

void write_schedule(const std::string& file, const kept_schedule& kept) {
  std::ofstream out(file, std::ios::trunc);
  out << text_of(kept);
  out.close();
  if (!out) throw std::system_error(errno, std::generic_category(), "troupe: " + file);
}

std::string program_id() {
  std::string found;
  ::dl_iterate_phdr(find_id, &found);
  return found;
}

}  // namespace troupe::sched::exploring
