#include "troupe/cluster/node.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "cluster/leases/memory_leases.hpp"
#include "cluster/leases/postgres_leases.hpp"
#include "cluster/leases/sqlite_leases.hpp"
#include "cluster/node/node_state.hpp"
#include "cluster/node/simulation_parts.hpp"
#include "cluster/transport/nats_transport.hpp"
#include "cluster/transport/simulated_network.hpp"
#include "troupe/cluster/simulation.hpp"
#include "troupe/durable/sqlite_storage.hpp"
#include "troupe/durable_postgres/postgres_storage.hpp"

namespace troupe::cluster {

namespace parts {

namespace {

// Its actors keep the node: they release it even if the runtime ends before the node has stopped.
struct let_go_at_end {
  explicit let_go_at_end(state_ref open) noexcept : node(std::move(open)) {}
  let_go_at_end(let_go_at_end&&) noexcept = default;
  ~let_go_at_end() {
    if (node != nullptr) node->let_go();
  }
  state_ref node;
};

task<> leave(let_go_at_end at_end) {
  auto stops = node_state::stop(at_end.node);
  co_await std::move(stops);
}

}  // namespace

node_owner::~node_owner() {
  try {
    const outside_calls none;
    static_cast<void>(node_->core().on().spawn(leave(let_go_at_end(node_))));
  } catch (...) {
    node_->kill();
  }
}

}  // namespace parts

namespace {

// A database that has died must not keep a node from the answers of its successor.
constexpr std::chrono::nanoseconds least_wait = std::chrono::seconds(1);

void use_postgres(parts::node_means& with, runtime& on, const options& chosen,
                  const std::string& life, bool has_durable) {
  with.leases = [&on, target = chosen.database] { return postgres_leases(on, target); };
  if (!has_durable) return;
  postgres::options quick;
  quick.connect_timeout = std::max(chosen.lease / 4, least_wait);
  quick.answer_timeout = std::max(chosen.lease / 2, least_wait);
  with.storage =
      durable::postgres_storage_of_node(on, chosen.database, chosen.cluster, life, quick);
}

void use_sqlite(parts::node_means& with, runtime& on, const options& chosen,
                const std::string& life, bool has_durable) {
  const std::string path = chosen.database.substr(parts::sqlite_database.size());
  sqlite::options quick;
  quick.busy_timeout = std::max(chosen.lease / 4, least_wait);
  with.leases = [&on, path, quick] { return sqlite_leases(on, path, quick); };
  if (has_durable)
    with.storage = durable::sqlite_storage_of_node(on, path, chosen.cluster, life, quick);
}

}  // namespace

void node::open(runtime& on, options chosen, parts::setup all) {
  const bool has_durable = !all.durable_kinds.empty();
  const auto opening = std::make_shared<parts::node_state>(on, std::move(chosen), std::move(all));
  parts::node_means with;
  const options& opened = opening->core().chosen();
  if (has_durable && opened.nats.empty() && opened.store.empty())
    throw option_error(
        "troupe: cluster: a node that is alone keeps its durable actors in the file "
        "options::store");
  if (opened.nats.empty()) {
    with.is_alone = true;
    with.way = transport_of(simulated_network(), on, opening->core().self().id);
    if (has_durable) with.storage = durable::sqlite_storage(on, opened.store);
    with.leases = [] { return memory_leases().store(); };
  } else {
    with.way = nats_transport(on, opened.nats, opened.connection);
    const std::string& life = opening->core().self().id;
    opened.database.starts_with(parts::sqlite_database)
        ? use_sqlite(with, on, opened, life, has_durable)
        : use_postgres(with, on, opened, life, has_durable);
  }
  opening->begin(std::move(with));
  owner_ = std::make_shared<parts::node_owner>(opening);
}

void node::open_in(runtime& on, const simulation& simulated, options chosen, parts::setup all) {
  const auto opening = std::make_shared<parts::node_state>(on, std::move(chosen), std::move(all));
  parts::node_means with;
  with.way = transport_of(simulated.network(), on, opening->core().self().id);
  with.leases = [leases = simulated.its_parts().leases] { return leases.store(); };
  // order: relaxed  set before this node was made
  const double rate = simulated.its_parts().clock_rate.load(std::memory_order_relaxed);
  if (rate != 1) {
    with.clock = [&on, rate] {
      const double now = static_cast<double>(on.now().count()) * rate;
      return std::chrono::nanoseconds(static_cast<std::int64_t>(now));
    };
  }
  // order: relaxed  as above
  const bool checks = simulated.its_parts().checks_fences.load(std::memory_order_relaxed);
  const auto is_mine = [leases = simulated.its_parts().leases, id = opening->core().self().id,
                        checks](const durable::held_shard& shard) {
    return !checks || leases.is_owner(id, shard);
  };
  with.storage = simulated.its_parts().database.storage_of_node(is_mine, opening->core().self().id);
  opening->begin(std::move(with));
  owner_ = std::make_shared<parts::node_owner>(opening);
}

task<> node::ready() const {
  const parts::state_ref at = state();
  auto waits = at->ready();
  co_await std::move(waits);
}
task<> node::stop() const {
  auto stops = parts::node_state::stop(state());
  co_await std::move(stops);
}
const member& node::self() const noexcept { return state()->core().self(); }
std::vector<member> node::members_now() const { return state()->members().now(); }
channel<member_event> node::members() const { return state()->members().watch(); }
counts node::counts() const { return state()->counts(); }

}  // namespace troupe::cluster
