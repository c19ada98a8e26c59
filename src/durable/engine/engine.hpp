// engine: the state that the copies of a store share. It puts the parts together that send, read,
// handle and store the messages of durable actors, opens the storage, and shows the numbers.
// docs/protocols/durable.md has the whole protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "durable/core/engine_core.hpp"
#include "durable/core/forgetting.hpp"
#include "durable/engine/commits.hpp"
#include "durable/engine/cycle_search.hpp"
#include "durable/engine/reminder_sender.hpp"
#include "durable/engine/shard_moves.hpp"
#include "durable/engine/turns.hpp"
#include "durable/messages/inbox_reader.hpp"
#include "durable/messages/intake.hpp"
#include "durable/messages/mailboxes.hpp"
#include "durable/messages/outgoing.hpp"
#include "runtime/observing/numbers/component_list.hpp"
#include "troupe/durable/kind.hpp"
#include "troupe/durable/storage.hpp"
#include "troupe/durable/store.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::durable::parts {

class engine final : public std::enable_shared_from_this<engine>, private engine_tasks {
 public:
  // `scope`: null for a store that has its database alone.
  engine(runtime& on, std::unique_ptr<storage> storage, durable::options chosen,
         std::vector<kind_table> kinds, std::shared_ptr<shard_scope> scope = nullptr);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine();

  task<> open();

  void send(request request) noexcept { intake_.send(std::move(request)); }

  // Of a node of a cluster; thread: any.
  //
  // Another node has sent this message: an ask is answered; for a post, the call ends when it is
  // stored. Errors: shard_moved if this node does not act for the receiver; else as store::ask.
  future<bytes> deliver(stored_message received) { return intake_.deliver(std::move(received)); }
  // The node acts for these shards from now on.
  void gained(const std::vector<held_shard>& shards) { shard_moves_.gained(shards); }
  // It must not act for them any more: changes that were not stored are undone.
  void lost(const std::vector<std::uint32_t>& shards) { shard_moves_.lost(shards); }
  // Returns the shards among these where nothing runs, waits, or is to be stored: the node does not
  // act for them any more. In the others nothing new begins from now on, if `closes`; handlers that
  // have begun there continue. For all others that were closed, this or lost() has to follow.
  std::vector<held_shard> hand_over(const std::vector<held_shard>& shards, bool closes) {
    return shard_moves_.hand_over(shards, closes);
  }
  static task<bool> waits_for(engine_ref self, cycle_question question) {
    cycle_search& search = self->cycle_search_;
    return search.waits_for(std::move(self), std::move(question));
  }

  bool knows(const void* tag) const noexcept { return core_.classes.find(tag) != nullptr; }
  // Throws usage_error if no actor of that class has that key here. Each message is checked as
  // well: messages of handlers and of other nodes name their receivers without a ref.
  void check_key(const void* tag, std::string_view key) const;
  // As storage::keys(), of the class with that tag, which was given to open().
  task<std::vector<std::string>> keys(const void* tag, key_range range) const;
  durable::counts counts() const;

 private:
  engine_ref keep() override { return shared_from_this(); }
  task<> run_ready(engine_ref keeps) override { return turns_.run_ready(std::move(keeps)); }
  task<> store_all(engine_ref keeps) override { return commits_.store_all(std::move(keeps)); }
  task<> read_inbox(engine_ref keeps) override { return inbox_reader_.read_all(std::move(keeps)); }

  void show();
  durable::counts counts_now() const;  // with the mutex held

  engine_core core_;
  forgetting forgetting_{core_};
  mailboxes mailboxes_{core_};
  intake intake_{core_, forgetting_, mailboxes_};
  outgoing outgoing_{core_, intake_};
  inbox_reader inbox_reader_{core_, forgetting_, mailboxes_, intake_, outgoing_};
  turns turns_{core_, forgetting_, mailboxes_, intake_, outgoing_};
  reminder_sender reminder_sender_{core_, mailboxes_};
  cycle_search cycle_search_{core_};
  shard_moves shard_moves_{core_, forgetting_, inbox_reader_};
  commits commits_{core_,         forgetting_,   mailboxes_,  outgoing_,
                   inbox_reader_, cycle_search_, shard_moves_};

  timer idle_timer_;
  observing::component_list::entry shown_;  // last: it is destroyed first
};

}  // namespace troupe::durable::parts
