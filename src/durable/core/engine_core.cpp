#include "durable/core/engine_core.hpp"

#include <algorithm>
#include <string>

#include "durable/core/faulty_storage.hpp"
#include "troupe/base/error.hpp"

namespace troupe::durable::parts {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds again_first{5};

void check(const durable::options& chosen) {
  const auto need = [](bool holds, const char* requirement) {
    if (!holds) throw option_error(std::string("troupe: durable: ") + requirement);
  };
  need(chosen.actors_max > 0, "actors_max must be 1 or more");
  need(chosen.idle_max.count() > 0, "idle_max must be more than 0");
  need(chosen.waiting_max > 0, "waiting_max must be 1 or more");
  need(chosen.waiting_bytes_max > 0, "waiting_bytes_max must be 1 or more");
  need(chosen.failures_max > 0, "failures_max must be 1 or more");
  need(chosen.retry_first.count() >= 0, "retry_first must be 0 or more");
  need(chosen.remember >= std::chrono::seconds(1), "remember must be 1 s or more");
  need(chosen.state_bytes_max > 0, "state_bytes_max must be 1 or more");
  need(chosen.away_first.count() > 0, "away_first must be more than 0");
}

}  // namespace

engine_core::engine_core(engine_tasks& above, runtime& on,
                         std::unique_ptr<durable::storage> database, durable::options options,
                         std::vector<kind_table> kinds, std::shared_ptr<shard_scope> scope)
    : upper_tasks(above),
      on(on),
      storage(with_faults(std::move(database))),
      chosen(options),
      classes(std::move(kinds)),
      clock(on),
      reminders(on, clock),
      inbox(chosen),
      actors(chosen.actors_max),
      shards(std::move(scope)) {
  check(chosen);
}

record_ref engine_core::make_record(request& request) const {
  const kind_table* const kind = classes.find(request.kind);
  if (kind == nullptr)
    throw unknown_method("troupe: durable: the class was not given to store::open");
  const auto method = std::ranges::find(kind->methods, request.method, &method_entry::tag);
  if (method == kind->methods.end())
    throw unknown_method("troupe: durable: a method that was not given to kind<" + kind->name +
                         ", ...> was called");
  check_name(*kind, request.key);
  check_size(request.arguments.size(), "the message has ");
  auto message = new_record();
  message->kind = kind;
  message->method = &*method;
  message->row.to = {kind->name, std::move(request.key)};
  message->row.method = method->name;
  message->row.signature = method->signature;
  message->row.arguments = std::move(request.arguments);
  message->row.shard = shards.of(message->row.to);
  message->trace = tasks::context_ref::current_trace();
  return message;
}

void engine_core::check_name(const kind_table& kind, std::string_view key) const {
  check_size(key.size(), "the key has ");
  if (shards.is_divided()) shards.scope().check_key(key);
  storage->check_name(kind.name, key);
}

// A value that no database takes would fail the transaction of all others, again and again.
void engine_core::check_size(std::size_t size, const char* subject) const {
  if (size > chosen.state_bytes_max)
    throw usage_error(std::string("troupe: durable: ") + subject + std::to_string(size) +
                      " bytes, and options::state_bytes_max is " +
                      std::to_string(chosen.state_bytes_max));
}

milliseconds engine_core::away_first() const noexcept {
  using namespace std::chrono;
  return ceil<milliseconds>(std::min<nanoseconds>(chosen.away_first, hours(24)));
}

milliseconds engine_core::longer(milliseconds pause) const noexcept {
  return std::clamp(2 * pause, again_first, pause_max());
}

void engine_core::need_commit() {
  if (!batches.begin_commits()) return;
  try {
    start([this](engine_ref keeps) { return upper_tasks.store_all(std::move(keeps)); });
  } catch (...) {
    batches.end_commits();
    throw;
  }
}

// More runners than workers could not run at the same time; but a simulation, of one worker, has
// several to choose from.
void engine_core::need_runner() {
  constexpr unsigned simulated_runners = 4;
  if (actors.runners() >= (clock.is_simulated() ? simulated_runners : on.workers())) return;
  try {
    start([this](engine_ref keeps) { return upper_tasks.run_ready(std::move(keeps)); });
    actors.begin_runner();
  } catch (...) {
    if (actors.runners() == 0) throw;
  }
}

void engine_core::need_inbox() {
  if (inbox.is_read() || !health.works() || !inbox.may_read(batches.stored())) return;
  inbox.begin_reading();
  try {
    start([this](engine_ref keeps) { return upper_tasks.read_inbox(std::move(keeps)); });
  } catch (...) {
    inbox.pause_reading();
    throw;
  }
}

// The effects of a handler's asks count only if its shard is still this node's, and the same holds
// for each asker up to the first: another node that has got the shard may have asked the same
// already, and the handler here would not see that.
void engine_core::touch_all(const turn_state& done) {
  if (!shards.is_divided()) return;
  touch(done.actor.shard);
  record_ref message = done.handles;
  while (message != nullptr && !message->unheard) {
    touch(message->row.shard);
    message = message->asked_by.lock();
  }
}

void engine_core::make_dead_letter(const record_ref& message, const handler_failed& why) {
  batches.keep_dead_letter(*message, why, clock.now());
  ++numbers.counts.dead_letters;
}

}  // namespace troupe::durable::parts
