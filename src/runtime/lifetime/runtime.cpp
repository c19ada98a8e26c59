#include "troupe/runtime/runtime.hpp"

#include <cstdio>
#include <exception>
#include <ostream>

#include "base/thread_name.hpp"
#include "runtime/copies.hpp"
#include "runtime/core/runtime_core.hpp"
#include "runtime/lifetime/quit_signal.hpp"
#include "runtime/observing/observer.hpp"
#include "task/running/main_lanes.hpp"
#include "task/running/running.hpp"

namespace troupe {

runtime::runtime(runtime_options options)
    : core_((copies::check(), std::make_shared<runtime_core>(std::move(options)))) {
  try {
    main_ = actor::spawn<main_thread::proxy>(
        actor::placement{*core_->system, runtime_core::main_index});
    if (core_->options.dump_on_sigquit) listen_for_quit(*core_);
    if (core_->options.observe) observing::begin(*core_);
  } catch (...) {
    ignore_quit(*core_);
    core_->shut_down();
    throw;
  }
}

runtime::~runtime() {
  if (tasks::is_running(*core_->system)) {
    std::fputs(
        "troupe: ~runtime was called in a handler of this runtime, for whose end it would wait; "
        "call stop() there, "
        "and destroy the runtime on the thread that called run()\n",
        stderr);
    std::terminate();
  }
  if (core_->options.observe) observing::end(*core_);
  if (core_->options.dump_on_sigquit) ignore_quit(*core_);
  core_->shut_down();
}

std::shared_ptr<observing::component_list> observing::components_of(const runtime& runtime) {
  return runtime.core_->components;
}

void main_thread::check_may_wait() const {
  if (tasks::is_running() || base::worker_number != 0) {
    throw usage_error(
        "troupe: main_thread::call_and_wait: a handler, and a thread of the pool, must not wait "
        "for the main thread; "
        "co_await rt.main().call(f) there");
  }
  const actor::actor_system& home = actor::actor_system::of(*any_ref(actor_).cell());
  if (!tasks::main_lanes::waits_for_itself(home.main_lane)) return;
  throw usage_error(
      "troupe: main_thread::call_and_wait: this is the main thread, which would wait for itself; "
      "call f() here, or in a task "
      "co_await rt.main().call(f)");
}

void runtime::post(unique_function<void()> procedure) { core_->post(std::move(procedure)); }
void runtime::run() { core_->run(); }
bool runtime::run_once() { return core_->run_round(time_span::max()); }
bool runtime::run_once(time_span at_most) { return core_->run_round(at_most); }
bool runtime::poll() { return core_->run_round(time_span()); }
int runtime::wake_descriptor() { return core_->wake_descriptor(); }
void runtime::stop(stop_mode mode, time_span deadline) { core_->stop(mode, deadline); }

timer runtime::after(time_span span, unique_function<void()> procedure,
                     const timer_options& options) {
  return core_->after(span, std::move(procedure), options);
}
timer runtime::every(time_span period, unique_function<void()> procedure,
                     const timer_options& options) {
  return core_->every(period, std::move(procedure), options);
}

hold runtime::hold() {
  core_->hold();
  return troupe::hold(core_);
}

std::vector<failure> runtime::errors() const { return core_->failures.all(); }
std::vector<failure> runtime::take_errors() { return core_->failures.take_all(); }
failure runtime::thrown() const { return core_->failures.thrown(); }
void runtime::clear_errors() { core_->failures.clear(); }
unsigned runtime::workers() const noexcept { return core_->pool->workers(); }

runtime_metrics runtime::metrics() const { return core_->metrics(); }

std::string runtime::dump() const { return core_->dump(); }
void runtime::dump(std::ostream& to) const { to << core_->dump() << std::flush; }

std::chrono::nanoseconds runtime::now() const { return core_->now(); }
std::uint64_t runtime::seed() const noexcept { return core_->options.seed; }

actor::actor_system& runtime::system() const noexcept { return *core_->system; }
actor::placement runtime::placement_of(const spawn_options& options) const {
  return core_->placement_of(options);
}
actor::placement runtime::placement_of(const on_thread& where) {
  return core_->placement_of(where);
}

detail::attachment& detail::attach(runtime& home, const void* key,
                                   std::unique_ptr<attachment> (*make)()) {
  return home.core_->attached.get(key, make);
}

hold detail::hold_here(const char* caller) {
  auto& core = static_cast<runtime_core&>(actor::running_system(caller).runtime);
  core.hold();
  return troupe::hold(core.shared_from_this());
}

hold& hold::operator=(hold&& other) noexcept {
  if (this == &other) return *this;
  release();
  core_ = std::move(other.core_);
  return *this;
}

hold::~hold() { release(); }

void hold::release() noexcept {
  if (core_ == nullptr) return;
  core_->release();
  core_.reset();
}

}  // namespace troupe
