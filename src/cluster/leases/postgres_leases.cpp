#include "cluster/leases/postgres_leases.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "cluster/leases/lease_tables.hpp"
#include "database/integers.hpp"
#include "durable_postgres/array_text.hpp"
#include "troupe/database/error.hpp"
#include "troupe/postgres/connection.hpp"
#include "troupe/task/when.hpp"

namespace troupe::cluster {
namespace {

using database::as_integer;
using database::as_number;
using postgres::changes;
using postgres::transaction;
using std::chrono::milliseconds;

// Of "cluster": nodes that are started at the same time make the tables one after the other.
constexpr std::int64_t opening_lock = 0x636c7573746572;
// How long the server gives a statement of a renewal that changes something, for the row of the
// cluster is locked then. The caller's own limit is about the same.
constexpr milliseconds limit_min(1'000), limit_max(60'000);
// Of a lease that lasts forever.
constexpr milliseconds longest = std::chrono::hours(24 * 365 * 100);

using row = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::string, std::string>;
using page_row = std::tuple<std::string, std::string>;
using steady_row = std::tuple<std::int64_t, std::int64_t, std::optional<std::int64_t>>;

[[noreturn]] void refuse_missing_row() {
  throw database::error(database::failure::corrupted, 0,
                        "troupe: cluster: the row of the cluster is missing in the table clusters "
                        "of the PostgreSQL database; start the node again");
}
[[noreturn]] void refuse_late() {
  throw database::error(database::failure::conflict, 0,
                        "troupe: cluster: a later renewal of this node was here first");
}

// Returns whether the table of pages is there, and may be used.
task<bool> make_pages(transaction& within) {
  auto looks = within.query_one<bool>(sql::may_make_pages);
  const std::optional<bool> may_make = co_await std::move(looks);
  if (may_make.value_or(false)) {
    auto makes = within.execute(sql::make_pages);
    co_await std::move(makes);
  }
  auto asks = within.query_one<bool>(sql::has_pages);
  const std::optional<bool> has_pages = co_await std::move(asks);
  co_return has_pages.value_or(false);
}

// Returns the same.
task<bool> make_tables(transaction& within, std::string cluster) {
  auto sets = within.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
  co_await std::move(sets);
  auto locks = within.execute("SELECT pg_advisory_xact_lock($1::bigint)", opening_lock);
  co_await std::move(locks);
  auto looks = within.query_one<bool>("SELECT to_regclass('clusters') IS NOT NULL");
  const std::optional<bool> are_there = co_await std::move(looks);
  if (!are_there.value_or(false)) {
    auto makes = within.run_script(sql::tables);
    co_await std::move(makes);
  }
  auto adds = within.execute(sql::add_cluster, cluster, sql::tables_version);
  co_await std::move(adds);
  auto adds_shards =
      within.execute(sql::add_shards, cluster, static_cast<std::int64_t>(shard_count));
  co_await std::move(adds_shards);
  auto asks = within.query_one<std::int64_t>(
      "SELECT tables_version FROM clusters WHERE cluster = $1::text", cluster);
  const std::optional<std::int64_t> version = co_await std::move(asks);
  if (version.value_or(0) > sql::tables_version)
    throw usage_error("troupe: cluster: the tables of the PostgreSQL database have version " +
                      std::to_string(*version) + ", and this program reads version " +
                      std::to_string(sql::tables_version) + "; use the newer program");
  auto makes_pages = make_pages(within);
  co_return co_await std::move(makes_pages);
}

lease_view view_of(const std::vector<row>& rows) {
  lease_view view;
  for (const auto& [kind, number, fence, text, name] : rows) {
    switch (kind) {
      case sql::cluster_row:
        view.seen = as_number(number);
        if (text == "true") view.members.emplace();
        break;
      case sql::member_of:
        if (view.members)
          view.members->push_back({text, durable::text_of_stored(name), fence != 0});
        break;
      case sql::changed_shard:
        view.changed.push_back({static_cast<std::uint32_t>(number), text, as_number(fence)});
        break;
      case sql::own_shard:
        view.held.push_back({static_cast<std::uint32_t>(number), as_number(fence)});
        break;
      default:
        view.next_end = milliseconds(number);
    }
  }
  if (view.seen == 0) refuse_missing_row();
  return view;
}

void add_pages(lease_view& view, const std::vector<page_row>& rows) {
  for (const auto& [id, page] : rows) {
    const auto member = std::ranges::find(*view.members, id, &member_row::id);
    if (member != view.members->end()) member->page = page;
  }
}

// A renewal as the parameters of its statements.
struct written_renewal {
  written_renewal(std::string cluster_name, troupe::cluster::renewal wanted, milliseconds at_most,
                  bool leaves_soon, bool pages)
      : renewal(std::move(wanted)),
        begins_to_leave(leaves_soon),
        has_pages(pages),
        cluster(std::move(cluster_name)),
        name(durable::stored_text(renewal.self.name)),
        limit(std::to_string(at_most.count())),
        round(as_integer(renewal.round)),
        lease_ms(std::min(renewal.lease, longest).count()) {}

  troupe::cluster::renewal renewal;
  bool begins_to_leave;  // the member's row does not show this yet
  bool has_pages;        // the table of pages may be used
  std::string cluster, name, limit;
  std::int64_t round, lease_ms;
};
using renewal_ptr = std::shared_ptr<const written_renewal>;

// The first statements of a renewal that changes something.
struct beginning {
  std::int64_t version = 0;
  bool members_differ = false;
};

task<beginning> begin(transaction& within, renewal_ptr all) {
  const std::string& cluster = all->cluster;
  const std::string& id = all->renewal.self.id;
  auto sets = within.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
  auto limits = within.execute(sql::set_limits, all->limit);
  auto locks = within.query_one<std::int64_t>(sql::lock_cluster, cluster);
  auto drops = within.execute(sql::drop_members, cluster, id);
  beginning begun;
  std::optional<std::int64_t> version;
  if (all->renewal.leaves) {
    auto leaves = within.execute(sql::leave, cluster, id, all->round);
    auto runs = when_all(std::move(sets), std::move(limits), std::move(locks), std::move(drops),
                         std::move(leaves));
    const auto got = co_await std::move(runs);
    version = std::get<2>(got);
    begun.members_differ = std::get<3>(got).rows != 0 || std::get<4>(got).rows != 0;
  } else {
    auto joins = within.query_one<bool>(sql::join, cluster, id, all->round, all->lease_ms,
                                        all->name, all->renewal.self.is_leaving);
    auto runs = when_all(std::move(sets), std::move(limits), std::move(locks), std::move(drops),
                         std::move(joins));
    const auto got = co_await std::move(runs);
    version = std::get<2>(got);
    if (!std::get<4>(got)) refuse_late();
    begun.members_differ = std::get<3>(got).rows != 0 || *std::get<4>(got) || all->begins_to_leave;
  }
  if (!version) refuse_missing_row();
  begun.version = *version;
  co_return begun;
}

// Of the members whose rows have changed.
task<> change_pages(transaction& within, renewal_ptr all, lease_view& view) {
  if (!all->has_pages || !view.members) co_return;
  const renewal& renewal = all->renewal;
  if (!renewal.leaves && !renewal.self.page.empty()) {
    auto adds = within.execute(sql::add_page, all->cluster, renewal.self.id, renewal.self.page);
    co_await std::move(adds);
  }
  auto drops = within.execute(sql::drop_pages, all->cluster);
  co_await std::move(drops);
  auto reads = within.query<page_row>(sql::read_pages, all->cluster);
  const std::vector<page_row> rows = co_await std::move(reads);
  add_pages(view, rows);
}

task<lease_view> change(transaction& within, renewal_ptr all) {
  const std::string& cluster = all->cluster;
  const std::string& id = all->renewal.self.id;
  auto begins = begin(within, all);
  const beginning begun = co_await std::move(begins);
  const std::int64_t next = begun.version + 1;
  durable::array_text shards, fences;
  if (!all->renewal.leaves) {
    for (const held_shard& held : all->renewal.kept) {
      shards.add(held.shard);
      fences.add(held.fence);
    }
  }
  const std::int64_t wanted = all->renewal.leaves ? 0 : all->renewal.wanted;
  auto frees = within.execute(sql::free_shards, cluster, id, next, shards.take(), fences.take());
  auto takes = within.execute(sql::take_shards, cluster, id, next, wanted);
  auto counts = within.execute(sql::set_version, cluster, next, begun.members_differ);
  auto reads =
      within.query<row>(sql::read_changes, cluster, as_integer(all->renewal.seen), id, true);
  auto runs = when_all(std::move(frees), std::move(takes), std::move(counts), std::move(reads));
  const auto got = co_await std::move(runs);
  lease_view view = view_of(std::get<3>(got));
  view.has_changed = std::get<2>(got).rows != 0;
  auto changes = change_pages(within, all, view);
  co_await std::move(changes);
  co_return view;
}

class in_postgres final : public lease_store {
 public:
  in_postgres(runtime& on, std::string target) : on_(on), target_(std::move(target)) { connect(); }

  task<> open(std::string cluster) override {
    cluster_ = cluster;
    const postgres::connection db = *db_;
    const auto body = [cluster = std::move(cluster)](transaction& within) {
      return make_tables(within, cluster);
    };
    auto makes = db.in_transaction(body);
    has_pages_ = co_await std::move(makes);
  }
  task<lease_view> renew(renewal renewal) override {
    const milliseconds limit = std::clamp(renewal.lease / 4, limit_min, limit_max);
    const bool is_leaving = renewal.self.is_leaving;
    const auto all = std::make_shared<const written_renewal>(
        cluster_, std::move(renewal), limit, is_leaving && !said_leaving_, has_pages_);
    try {
      auto tries = renew_unchanged(all);
      if (std::optional<lease_view> view = co_await std::move(tries)) {
        held_ = view->held;
        co_return std::move(*view);
      }
      const postgres::connection db = *db_;
      const auto body = [all](transaction& within) { return change(within, all); };
      auto runs = db.in_transaction(body);
      lease_view view = co_await std::move(runs);
      held_ = view.held;
      said_leaving_ = is_leaving;
      co_return view;
    } catch (...) {
      connect();
      throw;
    }
  }

 private:
  void connect() { db_.emplace(on_, target_); }

  // None: the renewal must change something, or the row of the member is not there. Once that row
  // was written, no node frees its shards, nor does an earlier renewal of its own (T4): the rows
  // that are read afterwards stay.
  task<std::optional<lease_view>> renew_unchanged(renewal_ptr all) {
    const renewal& renewal = all->renewal;
    const bool is_known = renewal.seen != 0;
    std::optional<lease_view> view;
    if (renewal.leaves || renewal.wanted != 0 || all->begins_to_leave ||
        (is_known && renewal.kept != held_))
      co_return view;
    const postgres::connection db = *db_;
    auto asks = db.query_one<steady_row>(sql::renew, all->cluster, renewal.self.id, all->round,
                                         all->lease_ms);
    const std::optional<steady_row> found = co_await std::move(asks);
    if (!found) refuse_missing_row();
    const auto& [renewed, version, next_end_ms] = *found;
    if (renewed == 0 || next_end_ms.value_or(1) <= 0) co_return view;
    view.emplace();
    view->seen = renewal.seen;
    if (as_number(version) != renewal.seen) {
      auto reads = db.query<row>(sql::read_changes, all->cluster, as_integer(renewal.seen),
                                 renewal.self.id, !is_known);
      const std::vector<row> rows = co_await std::move(reads);
      view = view_of(rows);
      if (has_pages_ && view->members) {
        auto reads_pages = db.query<page_row>(sql::read_pages, all->cluster);
        const std::vector<page_row> pages = co_await std::move(reads_pages);
        add_pages(*view, pages);
      }
    }
    if (!is_known && view->held != renewal.kept) {
      view.reset();
      co_return view;
    }
    view->held = renewal.kept;
    view->next_end = next_end_ms ? milliseconds(*next_end_ms) : forever;
    co_return view;
  }

  runtime& on_;
  const std::string target_;
  std::string cluster_;
  std::optional<postgres::connection> db_;
  std::vector<held_shard> held_;  // of the last view
  bool said_leaving_ = false;     // the member's row shows that it leaves
  bool has_pages_ = false;        // the table of pages may be used
};

}  // namespace

std::unique_ptr<lease_store> postgres_leases(runtime& on, std::string target) {
  return std::make_unique<in_postgres>(on, std::move(target));
}

}  // namespace troupe::cluster
