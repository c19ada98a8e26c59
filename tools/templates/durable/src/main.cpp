#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "service.hpp"

namespace {

// ACCOUNT CENTS deposits, and PAYER RECEIVER CENTS pays.
troupe::task<std::int64_t> execute(troupe::runtime& rt, std::vector<std::string> words) {
  const auto accounts = co_await open_accounts(rt, "accounts.db");
  const auto account = accounts.get<Account>(words.front());
  const std::int64_t cents = std::stoll(words.back());
  if (words.size() == 2) co_return co_await account.ask<&Account::deposit>(cents);
  co_return co_await account.ask<&Account::pay>(words[1], cents);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() != 2 && words.size() != 3) {
    std::cerr << "usage: " << argv[0] << " ACCOUNT CENTS | PAYER RECEIVER CENTS\n";
    return 2;
  }
  troupe::runtime rt;
  auto balance = rt.spawn(execute(rt, words));
  rt.run();
  std::cout << words.front() << " has " << balance.get() << " cents\n";
} catch (const std::exception& failed) {
  std::cerr << argv[0] << ": " << failed.what() << '\n';
  return 1;
}
