// bank: moves money between the accounts of a file, many transfers at once, and no cent is lost.
//
//     ./run examples/bank.cpp accounts.csv --transfers 100000 --seed 7
//
// The file has a line for each account: its name, a comma, its balance in cents, as in `Ada,12550`.
// A name has 1 to 40 bytes and occurs once; a balance has only digits, and is 10^12 at most. Lines
// that are empty or begin with # are skipped. Any other line is refused, by its number, before any
// money moves.
//
// A Transfer asks one Account to withdraw, and then another one to deposit; an Account that has too
// little refuses. The Office draws the transfers by the seed and keeps hundreds of them under way.
// Money between two accounts is in no balance, so an audit is made only when no transfer is under
// way.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/troupe.hpp"

using Cents = std::int64_t;

constexpr std::size_t accounts_max = 1'000'000, name_bytes_max = 40;
constexpr Cents balance_max = 1'000'000'000'000, amount_max = 10'000;  // of one transfer
constexpr std::uint64_t transfers_max = 10'000'000;
constexpr int under_way_max = 500, complaints_max = 10;

struct Statement {
  std::string name;
  Cents opening = 0, balance = opening, in = 0, out = 0;
  int refused = 0;
};

class Account {
 public:
  Account(std::string name, Cents opening) : now_{std::move(name), opening} {}

  // Returns false, and does nothing, if the balance is too small.
  bool withdraw(Cents amount) {
    if (amount > now_.balance) return ++now_.refused, false;
    now_.balance -= amount;
    now_.out += amount;
    return true;
  }
  void deposit(Cents amount) {
    now_.balance += amount;
    now_.in += amount;
  }
  Statement statement() const { return now_; }

 private:
  Statement now_;
};

using Accounts = std::vector<troupe::ref<Account>>;

struct Transfer {
  troupe::ref<Account> from, to;
  Cents amount;

  troupe::task<bool> make() {
    // Holds no thread while it waits.
    const bool withdrawn = co_await from.ask<&Account::withdraw>(amount);
    if (withdrawn) co_await to.ask<&Account::deposit>(amount);
    co_return withdrawn;
  }
};

// Starts a new transfer whenever one has ended.
class Office {
 public:
  struct Counts {
    std::uint64_t made = 0, refused = 0;
  };

  Office(troupe::runtime& rt, Accounts accounts, std::uint64_t transfers, std::uint64_t seed)
      : rt_(rt), accounts_(std::move(accounts)), left_(transfers), random_(seed) {}

  void open() {
    for (int i = 0; i < under_way_max; ++i) start_one();
  }
  Counts counts() const { return counts_; }

 private:
  void start_one() {
    if (left_ == 0) return;
    --left_;
    const std::size_t all = accounts_.size(), from = random_() % all;
    const std::size_t to = (from + 1 + random_() % (all - 1)) % all;  // any account but `from`
    const Cents amount = 1 + static_cast<Cents>(random_() % amount_max);
    rt_.spawn<Transfer>(accounts_[from], accounts_[to], amount)
        .ask<&Transfer::make>()
        .then([this](bool made) {
          ++(made ? counts_.made : counts_.refused);  // this runs in a turn of the Office
          start_one();
        });
  }

  troupe::runtime& rt_;
  const Accounts accounts_;
  std::uint64_t left_;
  std::mt19937_64 random_;
  Counts counts_;
};

troupe::task<std::vector<Statement>> ask_all(Accounts accounts) {
  std::vector<Statement> all;
  for (const auto& account : accounts) {
    Statement one = co_await account.ask<&Account::statement>();
    all.push_back(std::move(one));
  }
  co_return all;
}

std::vector<Statement> audit(troupe::runtime& rt, const Accounts& accounts) {
  auto statements = rt.spawn(ask_all(accounts));
  rt.run();
  return statements.get();
}

Cents sum(const std::vector<Statement>& statements, Cents Statement::*column) {
  Cents total = 0;
  for (const Statement& one : statements) total += one.*column;
  return total;
}

std::string money(Cents amount) {
  const std::string cents = std::to_string(amount % 100);
  return std::to_string(amount / 100) + (cents.size() == 1 ? ".0" : ".") + cents;
}

void print(const std::vector<Statement>& statements) {
  const auto row = [](const auto&... columns) { ((std::cout << std::setw(16) << columns), ...); };
  row("before", "out", "in", "after", "refused");
  std::cout << "  account\n";
  for (const Statement& one : statements) {
    row(money(one.opening), money(one.out), money(one.in), money(one.balance), one.refused);
    std::cout << "  " << one.name << '\n';
  }
}

// Throws if money was made or lost.
void compare(const std::vector<Statement>& before, const std::vector<Statement>& after) {
  for (const Statement& one : after) {
    if (one.balance < 0 || one.balance != one.opening - one.out + one.in) {
      throw std::logic_error("the account of " + one.name + " is wrong");
    }
  }
  const Cents was = sum(before, &Statement::balance), is = sum(after, &Statement::balance);
  if (was != is) throw std::logic_error("the audit finds " + money(is) + ", not " + money(was));
  std::cout << "audit: " << money(was) << " before, " << money(is) << " after\n";
}

struct Options {
  std::string file;
  std::uint64_t transfers = 10'000, seed = 1;
};

void work(const Options& options, const std::vector<Statement>& opening) {
  troupe::runtime rt;
  Accounts accounts;
  for (const Statement& one : opening) accounts.push_back(rt.spawn<Account>(one.name, one.opening));
  const auto before = audit(rt, accounts);

  const auto office = rt.spawn<Office>(rt, accounts, options.transfers, options.seed);
  office.tell<&Office::open>();
  rt.run();  // returns when the last transfer has ended
  auto counts = office.ask<&Office::counts>();
  const auto after = audit(rt, accounts);
  const auto [made, refused] = counts.get();

  print(after);
  std::cout << made << " transfers made, " << refused << " refused\n";
  if (made + refused != options.transfers) throw std::logic_error("a transfer is missing");
  compare(before, after);
}

// The arguments are wrong.
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A line of the file is wrong.
struct WrongLine : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns true if the whole text is a number from 0 to `most`.
template <class Number>
bool read_number(std::string_view text, Number most, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, number);
  return bad == std::errc{} && rest == end && number <= most && text.front() != '-';
}

Statement read_line(const std::string& line) {
  const std::size_t comma = line.find(',');
  if (comma == std::string::npos) throw WrongLine("there is no comma between name and balance");
  if (comma == 0) throw WrongLine("the name is missing");
  if (comma > name_bytes_max) throw WrongLine("the name is longer than 40 bytes");
  Cents balance = 0;
  if (!read_number(std::string_view(line).substr(comma + 1), balance_max, balance)) {
    throw WrongLine("the balance is no whole number of cents from 0 to 10^12");
  }
  return {line.substr(0, comma), balance};
}

std::vector<Statement> read_accounts(std::istream& in, const std::string& file) {
  std::vector<Statement> accounts;
  std::set<std::string> names;
  std::string line, complaints;
  int number = 0, wrong = 0;
  while (std::getline(in, line)) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with('#')) continue;
    try {
      Statement account = read_line(line);
      if (!names.insert(account.name).second)
        throw WrongLine("there is a second account of this name");
      if (accounts.size() == accounts_max) throw WrongLine("there are more than 1000000 accounts");
      accounts.push_back(std::move(account));
    } catch (const WrongLine& bad) {
      if (++wrong <= complaints_max)
        complaints += "\n  line " + std::to_string(number) + ": " + bad.what();
    }
  }
  if (in.bad()) throw std::runtime_error("cannot read " + file);
  if (wrong > complaints_max)
    complaints += "\n  and " + std::to_string(wrong - complaints_max) + " more";
  if (wrong > 0) throw std::runtime_error(file + " is refused:" + complaints);
  return accounts;
}

constexpr const char* usage =
    "usage: bank FILE.csv [--transfers N] [--seed S]\n"
    "  FILE.csv       a line for each account: NAME,BALANCE_IN_CENTS; - reads standard input\n"
    "  --transfers N  transfers between accounts drawn by lot, 0 to 10000000 (default 10000)\n"
    "  --seed S       of the lots (default 1)\n"
    "Ends with 0; with 1 if a line of the file is refused or the audits differ.\n";

Options parse(int argc, char** argv) {
  Options chosen;
  std::set<std::string> given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_file = word == "-" || !word.starts_with('-'), is_seed = word == "--seed";
    if (!given.insert(is_file ? "file" : word).second)
      throw WrongUse("'" + word + "' is one too many");
    if (is_file) {
      chosen.file = word;
    } else if (!is_seed && word != "--transfers") {
      throw WrongUse("there is no option '" + word + "'");
    } else if (++i == argc ||
               !read_number(std::string_view(argv[i]), is_seed ? UINT64_MAX : transfers_max,
                            is_seed ? chosen.seed : chosen.transfers)) {
      throw WrongUse(word + " wants a number" + (is_seed ? "" : " from 0 to 10000000"));
    }
  }
  if (chosen.file.empty()) throw WrongUse("there is no file");
  return chosen;
}

int main(int argc, char** argv) try {
  if (std::find(argv + 1, argv + argc, std::string_view("--help")) != argv + argc) {
    std::cout << usage;
    return 0;
  }
  const Options options = parse(argc, argv);
  const bool from_file = options.file != "-";
  const std::string name = from_file ? options.file : "standard input";
  std::ifstream file;
  if (from_file) file.open(name);
  if (!file) throw std::runtime_error("cannot open " + name);
  const auto accounts = read_accounts(from_file ? file : std::cin, name);
  if (accounts.size() < 2) {
    throw std::runtime_error(name + " is refused: accounts: " + std::to_string(accounts.size()) +
                             "; a transfer needs two");
  }
  work(options, accounts);
  return 0;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "bank: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "bank: " << failure.what() << '\n';
  return 1;
}
