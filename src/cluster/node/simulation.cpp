#include "troupe/cluster/simulation.hpp"

#include "cluster/node/node_state.hpp"
#include "cluster/node/simulation_parts.hpp"

namespace troupe::cluster {

simulation::simulation() : parts_(std::make_shared<parts>()) {}
const simulated_network& simulation::network() const noexcept { return parts_->network; }

void simulation::set_faults(const database_faults& now) const {
  lease_faults faults;
  faults.refuses = now.refuses;
  faults.loses = now.loses;
  faults.late_max = std::chrono::seconds(1);
  faults.delay_max = now.delay_max;
  parts_->leases.set_faults(faults);
  durable::simulated_database actors = parts_->database;
  actors.set_faults({now.refuses, now.loses, now.delay_max});
}
void simulation::set_database_away(bool away) const {
  parts_->leases.set_away(away);
  durable::simulated_database actors = parts_->database;
  actors.set_away(away);
}
void simulation::cut_off_from_database(const node& victim, bool cut_off) const {
  parts_->leases.set_cut_off(victim.self().id, cut_off);
  durable::simulated_database actors = parts_->database;
  actors.set_cut_off(victim.self().id, cut_off);
}
void simulation::set_clock_rate(double of_next) const {
  // order: relaxed  nodes that look at it are made later
  parts_->clock_rate.store(of_next, std::memory_order_relaxed);
}
void simulation::kill(const node& victim) const { victim.state()->kill(); }

}  // namespace troupe::cluster
