#include "cluster/core/node_core.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "cluster/transport/windows.hpp"
#include "troupe/durable/message_id.hpp"

namespace troupe::cluster::parts {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t page_bytes_max = 1'000;

// Other nodes' pages link to it: a script must not pass as an address.
bool is_address(std::string_view page) {
  return (page.starts_with("http://") || page.starts_with("https://")) &&
         page.size() <= page_bytes_max &&
         std::ranges::all_of(page, [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

void check(const options& chosen) {
  const auto need = [](bool holds, const char* requirement) {
    if (!holds) throw option_error(std::string("troupe: cluster: ") + requirement);
  };
  need(chosen.nats.empty() == chosen.database.empty(),
       "a node that is not alone needs both servers of NATS and a database");
  need(chosen.database != sqlite_database && chosen.database != "sqlite::memory:",
       "`sqlite:` in options::database is followed by the path of a file, which all nodes share");
  need(!chosen.cluster.empty() && std::ranges::all_of(chosen.cluster,
                                                      [](unsigned char c) {
                                                        return std::isalnum(c) != 0 || c == '-' ||
                                                               c == '_';
                                                      }),
       "the name of a cluster has letters, digits, `-` and `_`");
  need(chosen.ask_timeout.count() > 0, "ask_timeout must be more than 0");
  need(chosen.lease >= milliseconds(1'000) && chosen.lease <= std::chrono::hours(24),
       "lease must be 1 s to 24 hours");
  need(chosen.margin.count() >= 0 && chosen.margin < chosen.lease / 2,
       "margin must be 0 or more, and less than half of the lease");
  need(chosen.idle_max.count() > 0, "idle_max must be more than 0");
  need(chosen.actors_max > 0, "actors_max must be 1 or more");
  need(chosen.waiting_max > 0, "waiting_max must be 1 or more");
  need(chosen.served_max > 0, "served_max must be 1 or more");
  need(chosen.drain_max.count() >= 0, "drain_max must be 0 or more");
  need(chosen.page.empty() || is_address(chosen.page),
       "options::page begins with http:// or https://, and has at most 1,000 printable ASCII "
       "characters");
}

void check(const setup& with) {
  const auto check_name = [](const std::string& name) {
    if (name.size() > name_bytes_max)
      throw option_error("troupe: cluster: the name of a class or method has " +
                         std::to_string(name.size()) + " bytes, and at most " +
                         std::to_string(name_bytes_max) + " travel between nodes");
  };
  for (const class_table& kind : with.kinds) {
    check_name(kind.name);
    const auto same = [&kind](const class_table& other) {
      return other.name == kind.name || other.tag == kind.tag;
    };
    if (std::ranges::count_if(with.kinds, same) > 1)
      throw option_error("troupe: cluster: two classes have the name " + kind.name);
    for (const method_entry& method : kind.methods) {
      check_name(method.name);
      if (std::ranges::count(kind.methods, method.name, &method_entry::name) > 1)
        throw option_error("troupe: cluster: two methods of the class " + kind.name +
                           " have the name " + method.name);
    }
  }
}

// One more answer for which the end of the node waits.
class answer_count {
 public:
  explicit answer_count(std::atomic<std::size_t>& count) noexcept : count_(count) {
    // order: relaxed  on the way of its spawn
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  answer_count(const answer_count&) = delete;
  answer_count& operator=(const answer_count&) = delete;
  ~answer_count() {
    // order: release  pairs with has_sent_answers/acquire: the answer was given to the transport
    count_.fetch_sub(1, std::memory_order_release);
  }

 private:
  std::atomic<std::size_t>& count_;
};

task<> run_quietly(state_ref, std::function<task<>()> makes) {
  try {
    auto runs = makes();
    co_await std::move(runs);
  } catch (const troupe::error&) {
  }
}

}  // namespace

void check_key(std::string_view key) {
  if (key.size() > name_bytes_max)
    throw usage_error("troupe: cluster: a key has " + std::to_string(key.size()) +
                      " bytes, and at most " + std::to_string(name_bytes_max) +
                      " travel between nodes; choose shorter keys");
}

node_core::node_core(runtime& on, options chosen, setup with)
    : on_(on),
      chosen_(std::move(chosen)),
      with_(std::move(with)),
      self_{durable::message_id::random().to_string(), chosen_.name} {
  check(chosen_);
  check(with_);
}
node_core::~node_core() = default;

void node_core::begin(node_means with, std::weak_ptr<node_state> node, placement::hooks hooks) {
  node_ = std::move(node);
  window_options how_much;
  how_much.prefix = subject_of("");
  way_ = windowed(on_, std::move(with.way), how_much);
  is_alone_ = with.is_alone;
  leases_ = std::move(with.leases);
  clock_ = std::move(with.clock);
  hooks_ = std::move(hooks);
  owners_.use(make_placement());
}

std::unique_ptr<placement> node_core::make_placement() const {
  placement_options how;
  how.lease = is_alone_ ? forever : std::chrono::ceil<milliseconds>(chosen_.lease);
  how.margin = std::chrono::ceil<milliseconds>(chosen_.margin);
  how.drain_max = chosen_.drain_max;
  how.clock = clock_;
  return std::make_unique<placement>(on_, leases_(), chosen_.cluster,
                                     member_row{self_.id, self_.name, false, chosen_.page},
                                     std::move(how), hooks_);
}

std::string node_core::subject_of(std::string_view member) const {
  return "troupe." + chosen_.cluster + ".node." + std::string(member);
}
std::string node_core::changes_subject() const { return "troupe." + chosen_.cluster + ".changes"; }
std::string node_core::topic_subject(std::string_view topic) const {
  return "troupe." + chosen_.cluster + ".topic." + std::string(topic);
}

const class_table* node_core::find_kind(const void* tag) const noexcept {
  const auto found = std::ranges::find(with_.kinds, tag, &class_table::tag);
  return found == with_.kinds.end() ? nullptr : &*found;
}
const class_table* node_core::find_kind(std::string_view name) const noexcept {
  const auto found = std::ranges::find(with_.kinds, name, &class_table::name);
  return found == with_.kinds.end() ? nullptr : &*found;
}
const exception_entry* node_core::find_exception(const std::type_info& type) const noexcept {
  const auto found = std::ranges::find_if(
      with_.exceptions, [&](const exception_entry& entry) { return *entry.type == type; });
  return found == with_.exceptions.end() ? nullptr : &*found;
}
const exception_entry* node_core::find_exception(std::string_view name) const noexcept {
  const auto found = std::ranges::find(with_.exceptions, name, &exception_entry::name);
  return found == with_.exceptions.end() ? nullptr : &*found;
}

void node_core::check_not_left() const {
  if (stage_.has_left())
    throw error(failure::stopped, "troupe: cluster: the node has been stopped");
}

void node_core::add_waiting() {
  if (traffic_.waiting.fetch_add(1, relaxed) < chosen_.waiting_max) return;
  traffic_.waiting.fetch_sub(1, relaxed);
  throw error(failure::full,
              "troupe: cluster: options::waiting_max messages wait for other nodes; try again "
              "later");
}

task<> node_core::send_answer(state_ref, node_core* self, std::string reply, std::string frame) {
  const answer_count counted(self->answering_);
  auto answers = self->way_->answer(std::move(reply), std::move(frame));
  co_await std::move(answers);
}

void node_core::answer(std::string reply, std::string frame) noexcept {
  try {
    const outside_calls none;
    static_cast<void>(
        on_.spawn(send_answer(node_.lock(), this, std::move(reply), std::move(frame))));
  } catch (...) {
  }
}

void node_core::start_quietly(std::function<task<>()> makes) noexcept {
  try {
    const outside_calls none;
    static_cast<void>(on_.spawn(run_quietly(node_.lock(), std::move(makes))));
  } catch (...) {
  }
}

}  // namespace troupe::cluster::parts
