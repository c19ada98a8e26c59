#include "sched/exploring/explored.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "sched/exploring/exploring_source.hpp"
#include "sched/exploring/handler_watch.hpp"
#include "sched/exploring/schedule_file.hpp"
#include "sched/exploring/story_listener.hpp"
#include "troupe/base/error.hpp"

namespace troupe::sched::exploring {
namespace {

thread_local const explored_here* of_thread = nullptr;

// Reports at the end of the program which holds were not met, and where the program left the
// recorded way; or writes all that it sees for `troupe explore`, which then reports it.
class replay {
 public:
  explicit replay(const std::string& file)
      : file_(file),
        kept_(read_schedule(file)),
        execution_(std::make_shared<execution>(kept_.plan)) {
    execution_->records = kept_.records;
    if (kept_.dead_letters) {
      execution_->on_quiet = [](std::uint64_t dead_letters) {
        if (dead_letters != 0) throw stalled("troupe: explore: a message became a dead letter");
      };
    }
    const char* const seen = std::getenv("TROUPE_EXPLORE");
    if (seen == nullptr || *seen == '\0') return;
    seen_ = ::open(seen, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (seen_ < 0)
      throw option_error(std::string("troupe: TROUPE_EXPLORE=") + seen +
                         ": the file cannot be written");
    execution_->on_seen = [this](const std::string& line) {
      const std::string whole = line + '\n';
      // a line that is lost is missed by its reader alone
      static_cast<void>(!::write(seen_, whole.data(), whole.size()));
    };
    execution_->on_seen("program " + program_id());
    watch_ = std::make_unique<handler_watch>(*execution_);
    if (kept_.tells) tell_story();
  }
  replay(const replay&) = delete;
  replay& operator=(const replay&) = delete;
  ~replay() {
    if (execution_->runtimes == 0 || seen_ >= 0) return;
    for (std::size_t i = 0; i < execution_->met.size(); ++i) {
      if (execution_->met[i] != 0) continue;
      std::fprintf(stderr, "troupe: replay: %s: this hold was not met: %s\n", file_.c_str(),
                   text_of(execution_->plan.holds[i]).c_str());
    }
    for (std::size_t i = 0; i < std::min(execution_->hashes.size(), kept_.hashes.size()); ++i) {
      if (execution_->hashes[i] == kept_.hashes[i]) continue;
      std::fprintf(stderr,
                   "troupe: replay: %s: the program went another way between turn %zu and %zu%s\n",
                   file_.c_str(), i * turns_a_hash, (i + 1) * turns_a_hash,
                   program_id() == kept_.program ? "" : "; it was built anew since");
      return;
    }
  }
  const std::shared_ptr<execution>& of() const noexcept { return execution_; }

 private:
  // A crash loses no event.
  void tell_story() {
    execution_->records = execution_->stops_on_failure = true;
    const auto write = [this](const story_event& event) { execution_->on_seen(line_of(event)); };
    execution_->on_break = [write] { write({.kind = story_kind::broken}); };
    story_ = std::make_unique<story_listener>(*execution_, write);
    execution_->on_fault = [this](const hold& happened) { story_->note_fault(happened); };
  }

  const std::string file_;
  const kept_schedule kept_;
  const std::shared_ptr<execution> execution_;
  int seen_ = -1;  // open until the program ends
  // of the thread that makes the first runtime, as the story
  std::unique_ptr<handler_watch> watch_;
  std::unique_ptr<story_listener> story_;
};

std::shared_ptr<execution> execution_of_program() {
  const char* const file = std::getenv("TROUPE_REPLAY");
  if (file == nullptr || *file == '\0' || std::filesystem::is_directory(file)) return nullptr;
  static const replay program(file);
  return program.of();
}

}  // namespace

std::shared_ptr<execution> execution_here() {
  return of_thread != nullptr ? of_thread->execution_ : execution_of_program();
}

execution* explored_in_process() noexcept {
  return of_thread == nullptr ? nullptr : of_thread->execution_.get();
}

explored_here::explored_here(std::shared_ptr<execution> owner) noexcept
    : execution_(std::move(owner)), outer_(std::exchange(of_thread, this)) {}

explored_here::~explored_here() { of_thread = outer_; }

std::unique_ptr<choice_source> make_source(std::uint64_t seed) {
  if (std::shared_ptr<execution> owner = execution_here())
    return std::make_unique<exploring_source>(std::move(owner));
  return std::make_unique<seeded_source>(seed);
}

}  // namespace troupe::sched::exploring
