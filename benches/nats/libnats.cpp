// nats: libnats for the rows nats/*, with natsOptions_SetSendAsap for requests: it sends at once
// then, and not when its thread for that wakes up.
#include <nats/nats.h>

#include <atomic>
#include <cstring>

#include "../measure.hpp"
#include "work.hpp"

namespace {

void check(natsStatus how) {
  if (how != NATS_OK) std::abort();
}

natsConnection* connect(bool at_once) {
  natsOptions* chosen = nullptr;
  natsConnection* made = nullptr;
  check(natsOptions_Create(&chosen));
  check(natsOptions_SetURL(chosen, nats_work::server().c_str()));
  check(natsOptions_SetSendAsap(chosen, at_once));
  check(natsOptions_SetMaxPendingMsgs(chosen, 2'000'000));
  check(natsConnection_Connect(&made, chosen));
  natsOptions_Destroy(chosen);
  return made;
}

void answer(natsConnection* by, natsSubscription*, natsMsg* one, void*) {
  check(natsConnection_Publish(by, natsMsg_GetReply(one), natsMsg_GetData(one),
                               natsMsg_GetDataLength(one)));
  natsMsg_Destroy(one);
}

measure::result request(unsigned, std::uint64_t size) {
  natsConnection *const server = connect(true), *const by = connect(true);
  natsSubscription* asked = nullptr;
  check(natsConnection_Subscribe(&asked, server, nats_work::ask_subject, answer, nullptr));
  check(natsConnection_Flush(server));
  measure::result r;
  const measure::stopwatch watch;
  for (; r.check < size; ++r.check) {
    natsMsg* got = nullptr;
    check(natsConnection_RequestString(&got, by, nats_work::ask_subject, nats_work::line, 10'000));
    if (std::strcmp(natsMsg_GetData(got), nats_work::line) != 0) std::abort();
    natsMsg_Destroy(got);
  }
  r.value = watch.ns_per(size);
  natsSubscription_Destroy(asked);
  natsConnection_Destroy(by);
  natsConnection_Destroy(server);
  return r;
}

std::atomic<std::uint64_t> taken{0};
void take(natsConnection*, natsSubscription*, natsMsg* one, void*) {
  natsMsg_Destroy(one);
  taken.fetch_add(1, std::memory_order_release);
  taken.notify_one();
}

measure::result publish(unsigned, std::uint64_t size) {
  natsConnection *const to = connect(false), *const by = connect(false);
  natsSubscription* sent = nullptr;
  check(natsConnection_Subscribe(&sent, to, nats_work::send_subject, take, nullptr));
  check(natsSubscription_SetPendingLimits(sent, -1, -1));
  check(natsConnection_Flush(to));
  taken = 0;
  measure::result r;
  const measure::stopwatch watch;
  const int bytes = static_cast<int>(std::strlen(nats_work::line));
  for (std::uint64_t i = 0; i < size; ++i)
    check(natsConnection_Publish(by, nats_work::send_subject, nats_work::line, bytes));
  check(natsConnection_Flush(by));
  for (std::uint64_t seen = taken; seen < size; seen = taken) taken.wait(seen);
  r.value = watch.ns_per(size);
  r.check = taken;
  natsSubscription_Destroy(sent);
  natsConnection_Destroy(by);
  natsConnection_Destroy(to);
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {
      {"nats_request", 20'000, request},
      {"nats_publish", 1'000'000, publish},
      {"cluster_ask", 20'000, request},
      {"cluster_tell", 1'000'000, publish},
  };
  measure::run_program(argc, argv, table);
}
