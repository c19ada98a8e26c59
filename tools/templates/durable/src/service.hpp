// service: accounts whose money survives crashes.
#pragma once

#include <cstdint>
#include <string>
#include <troupe/durable.hpp>
#include <troupe/troupe.hpp>

// A durable actor: its members are stored in a database after each message, which is handled once
// in effect, even if the program crashes.
struct Account {
  std::int64_t cents = 0;

  // Both return the new balance.
  std::int64_t deposit(std::int64_t amount);
  // One transaction stores the payer's balance and the message to the receiver. Throws if the
  // account lacks the money; then nothing is stored or sent.
  std::int64_t pay(troupe::durable::turn& turn, std::string receiver, std::int64_t amount);
};

// Opens the accounts of this SQLite file, or of ":memory:".
troupe::task<troupe::durable::store> open_accounts(troupe::runtime& rt, std::string file);
