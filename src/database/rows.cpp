#include "troupe/database/rows.hpp"

#include "troupe/database/error.hpp"

namespace troupe::database {

const char* name_of(failure kind) noexcept {
  switch (kind) {
    case failure::unreachable:
      return "unreachable";
    case failure::busy:
      return "busy";
    case failure::full:
      return "full";
    case failure::read_only:
      return "read-only";
    case failure::corrupted:
      return "corrupted";
    case failure::constraint:
      return "constraint";
    case failure::statement:
      return "statement";
    case failure::conversion:
      return "conversion";
    case failure::too_many_rows:
      return "too many rows";
    case failure::lost:
      return "lost";
    case failure::conflict:
      return "conflict";
    case failure::denied:
      return "denied";
    case failure::transaction_ended:
      return "transaction ended";
    case failure::too_slow:
      return "too slow";
    case failure::bad_target:
      return "bad target";
    default:
      return "broken";
  }
}

// The verdicts of databases: whose fault each error is (docs/protocols/verdicts.md).
verdict error::judged() const noexcept {
  using enum verdict::party;
  using enum verdict::again;
  const auto ran =
      effect_ == database::effect::none ? verdict::effect::none : verdict::effect::unknown;
  switch (kind_) {
    case failure::unreachable:
    case failure::busy:
    case failure::full:
    case failure::lost:
      return {upstream, ran, later};
    case failure::corrupted:
    case failure::broken:
      return {upstream, ran, verdict::again::never};
    case failure::conflict:
    case failure::transaction_ended:
      return {caller, ran, verdict::again::now};
    default:
      return {caller, ran, verdict::again::never};
  }
}

namespace parts {
namespace {

std::string in_quotes(std::string_view name) { return "`" + std::string(name) + "`"; }

}  // namespace

void refuse_null(std::string_view column) {
  throw error(failure::conversion, 0,
              "troupe: the column " + in_quotes(column) + " is NULL; read it into a std::optional");
}
void refuse_range(std::string_view column, std::int64_t value) {
  throw error(failure::conversion, 0,
              "troupe: the column " + in_quotes(column) + " is " + std::to_string(value) +
                  ", which does not fit into the type that it is read into");
}
void refuse_number(std::string_view column) {
  throw error(failure::conversion, 0,
              "troupe: the column " + in_quotes(column) +
                  " is a number that the type that it is read into cannot hold; read it into a "
                  "wider one, or cast it to text");
}
void refuse_time(std::string_view column) {
  throw error(failure::conversion, 0,
              "troupe: the column " + in_quotes(column) +
                  " is a time that the type that it is read into cannot hold: it is beyond the "
                  "range, or between two units; read it into a "
                  "std::chrono::sys_time<std::chrono::microseconds>");
}
void refuse_number_parameter(int number) {
  throw error(failure::conversion, 0,
              "troupe: parameter " + std::to_string(number) +
                  " is a number that the type of the database cannot hold");
}
void refuse_time_parameter(int number) {
  throw error(failure::conversion, 0,
              "troupe: parameter " + std::to_string(number) +
                  " is a time that no 64 bits of microseconds can hold");
}
void refuse_parameter(int number) {
  throw error(failure::conversion, 0,
              "troupe: parameter " + std::to_string(number) +
                  " is larger than the largest number of a database, a signed one of 64 bits");
}
void refuse_columns(int has, std::size_t needs) {
  throw error(failure::statement, 0,
              "troupe: the statement gives " + std::to_string(has) + " columns, and is read into " +
                  std::to_string(needs));
}
void refuse_member(std::string_view name) {
  throw error(failure::statement, 0,
              "troupe: the statement gives no column " + in_quotes(name) +
                  " for the member of that name; name a column so with AS");
}
void refuse_column(std::string_view name) {
  throw error(failure::statement, 0,
              "troupe: the statement gives a column " + in_quotes(name) +
                  " for which there is no member, or gives it twice");
}

}  // namespace parts
}  // namespace troupe::database
