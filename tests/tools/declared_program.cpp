// Prints all declared numbers of the library as JSON, for declared.py.
#include <iostream>
#include <string>
#include <troupe/cluster.hpp>
#include <troupe/durable.hpp>
#include <troupe/http.hpp>
#include <troupe/otlp.hpp>
#include <troupe/troupe.hpp>

#include "database/statement_counts.hpp"
#include "observe/numbers/number.hpp"
#include "runtime/observing/numbers/json_text.hpp"

using troupe::observe::number_group;

// The linker takes the declarations of a component with what uses them.
[[maybe_unused]] const volatile auto in_http =
    static_cast<troupe::task<> (troupe::http::server::*)(troupe::tcp_listener)>(
        &troupe::http::server::serve);
[[maybe_unused]] const volatile auto in_durable = &troupe::durable::store::counts;
[[maybe_unused]] const volatile auto in_databases = &troupe::database::normalized;
[[maybe_unused]] const volatile auto in_otlp = &troupe::otlp::exporter::counts;
[[maybe_unused]] const volatile auto in_cluster = &troupe::cluster::node::counts;

int main() {
  const troupe::runtime core;
  const troupe::pool<int> numbers({}, [] { return 1; });
  const troupe::shown_numbers shown("numbers", numbers);
  troupe::counter own("own", "A number of this program.");
  troupe::observing::json_text text;
  text.open('[');
  number_group::for_each([&](const number_group& of) {
    text.open('{').member("prefix", of.prefix()).key("labels").open('[');
    for (const std::string_view label : of.labels()) text.value(label);
    text.close(']').key("numbers").open('[');
    for (const troupe::observe::number& one : of.numbers()) {
      text.open('{').member("name", one.name).member("metric", of.metric(one));
      text.member("member", one.member).member("kind", name_of(one.kind));
      text.member("unit", name_of(one.unit)).member("help", one.help).close('}');
    }
    text.close(']').close('}');
  });
  text.close(']');
  std::cout << std::move(text).take() << '\n';
}
