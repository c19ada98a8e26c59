#include "troupe/runtime/runtime.hpp"

#include <cstdio>
#include <exception>

#include "actor/running.hpp"
#include "runtime/runtime_core.hpp"

namespace troupe {

runtime::runtime(runtime_options options) : core_(std::make_shared<runtime_core>(std::move(options))) {}

runtime::~runtime() {
  if (actor::is_running(*core_->system)) {
    std::fputs(
        "troupe: ~runtime was called in a handler of this runtime, for whose end it would wait; call stop() there, "
        "and destroy the runtime on the thread that called run()\n",
        stderr);
    std::terminate();
  }
  core_->shut_down();
}

void runtime::post(std::move_only_function<void()> procedure) { core_->post(std::move(procedure)); }
void runtime::run() { core_->run(); }
void runtime::stop(stop_mode mode, std::chrono::nanoseconds deadline) { core_->stop(mode, deadline); }

hold runtime::hold() {
  core_->hold();
  return troupe::hold(core_);
}

std::vector<failure> runtime::errors() const { return core_->failures.all(); }
failure runtime::thrown() const { return core_->failures.thrown(); }
void runtime::clear_errors() { core_->failures.clear(); }
unsigned runtime::workers() const noexcept { return core_->pool->workers(); }

runtime_counters runtime::counters() const {
  const auto of_pool = core_->pool->count();
  // order: relaxed  a statistic
  return {of_pool.turns, of_pool.steals, of_pool.stolen, of_pool.wakes,
          core_->system->dead_letters.load(std::memory_order_relaxed)};
}

std::chrono::nanoseconds runtime::now() const { return core_->now(); }
std::uint64_t runtime::seed() const noexcept { return core_->options.seed; }

actor::system& runtime::system() const noexcept { return *core_->system; }
actor::placement runtime::place(const spawn_options& options) const { return core_->place(options); }
actor::placement runtime::place(const on_thread& where) { return core_->place(where); }

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
