#include "sched/exploring/explored.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "sched/exploring/exploring_source.hpp"
#include "sched/exploring/schedule_file.hpp"

namespace troupe::sched::exploring {
namespace {

thread_local std::shared_ptr<execution> of_thread;

// Tells at the end of the program which holds were not met, and where it left the recorded way.
class replay {
 public:
  explicit replay(const std::string& file)
      : file_(file), kept_(read_schedule(file)), of_(std::make_shared<execution>(kept_.plan)) {}
  replay(const replay&) = delete;
  replay& operator=(const replay&) = delete;
  ~replay() {
    if (of_->runtimes == 0) return;
    for (std::size_t i = 0; i < of_->met.size(); ++i) {
      if (of_->met[i] != 0) continue;
      std::fprintf(stderr, "troupe: replay: %s: this hold was not met: %s\n", file_.c_str(),
                   text_of(of_->plan.holds[i]).c_str());
    }
    for (std::size_t i = 0; i < std::min(of_->hashes.size(), kept_.hashes.size()); ++i) {
      if (of_->hashes[i] == kept_.hashes[i]) continue;
      std::fprintf(stderr,
                   "troupe: replay: %s: the program went another way between turn %zu and %zu%s\n",
                   file_.c_str(), i * turns_a_hash, (i + 1) * turns_a_hash,
                   program_id() == kept_.program ? "" : "; it was built anew since");
      return;
    }
  }
  const std::shared_ptr<execution>& of() const noexcept { return of_; }

 private:
  const std::string file_;
  const kept_schedule kept_;
  const std::shared_ptr<execution> of_;
};

std::shared_ptr<execution> execution_of_program() {
  const char* const file = std::getenv("TROUPE_REPLAY");
  if (file == nullptr || *file == '\0' || std::filesystem::is_directory(file)) return nullptr;
  static const replay program(file);
  return program.of();
}

}  // namespace

std::shared_ptr<execution> execution_here() {
  return of_thread != nullptr ? of_thread : execution_of_program();
}

bool explores_in_process() noexcept { return of_thread != nullptr; }

explored_here::explored_here(std::shared_ptr<execution> of) noexcept
    : outer_(std::exchange(of_thread, std::move(of))) {}

explored_here::~explored_here() { of_thread = std::move(outer_); }

std::unique_ptr<choice_source> make_source(std::uint64_t seed) {
  if (std::shared_ptr<execution> of = execution_here())
    return std::make_unique<exploring_source>(std::move(of));
  return std::make_unique<seeded_source>(seed);
}

}  // namespace troupe::sched::exploring
