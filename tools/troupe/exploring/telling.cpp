#include "exploring/telling.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "runtime/exploring/story_diagram.hpp"
#include "trust/failure.hpp"

namespace troupe_tool {
namespace exploring = troupe::sched::exploring;
namespace {

struct heard_run {
  troupe::story story;
  std::string failure;
};
heard_run hear(const std::vector<std::string>& program, const std::string& stem,
               const exploring::kept_schedule& plan, std::chrono::milliseconds limit) {
  exploring::kept_schedule told = plan;
  told.tells = true;
  heard_run run;
  run.failure = run_child(program, stem, told, limit).failure;
  std::ifstream events(stem + ".seen");
  run.story.read(events);
  return run;
}

}  // namespace

troupe::told_story story_of(const std::vector<std::string>& program, const std::string& stem,
                            const exploring::kept_schedule& plan, const std::string& failed,
                            std::chrono::milliseconds limit) {
  const heard_run led = hear(program, stem, plan, limit);
  // Telling takes time: a long run may end at its limit, and that is another failure.
  if (led.failure != failed) return {};
  troupe::story otherwise;
  if (!plan.plan.holds.empty()) {
    exploring::kept_schedule free = plan;
    free.plan.holds.clear();
    otherwise = hear(program, stem, free, limit).story;
  }
  return led.story.tell(failed, plan.plan.holds, otherwise);
}

void write_diagram(const std::string& file, const troupe::told_story& told,
                   const std::string& failed) {
  std::ofstream out(file, std::ios::trunc);
  out << (file.ends_with(".svg") ? troupe::svg_diagram(told, failed)
                                 : troupe::ascii_diagram(told, failed));
  out.close();
  if (!out) throw failure(fmt::format("{} cannot be written: {}", file, std::strerror(errno)));
}

}  // namespace troupe_tool
