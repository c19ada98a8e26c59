// json: bodies and answers that are values of your own types. A program that includes it also links
// the component troupe::json.
#pragma once

#include "troupe/base/language.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"
#include "troupe/http/values/media_type.hpp"
#include "troupe/http/values/status_error.hpp"
#include "troupe/json/read.hpp"
#include "troupe/json/write.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

namespace values {

template <class T>
T json_of(std::string_view body, const json::read_options& how) {
  try {
    return json::read<T>(body, how);
  } catch (const json::json_error& e) {
    throw status_error(400, e.what());
  }
}

}  // namespace values

// The body as a T (json::read lists the possible types), in a handler that is no coroutine. Errors:
// status_error 415 for a body that is no JSON by its Content-Type, 400 with the path of
// the bad member ("items[3].price: a number is needed").
//
// Example (declarations):
//     struct Item {
//       std::string name;
//       double price;
//     };
//     struct Order {
//       int id;
//       std::vector<Item> items;
//     };
//     troupe::http::response add(const troupe::http::request& asked) {
//       const auto order = troupe::http::json_body<Order>(asked);
//       return troupe::http::json_response(order.items).status(201);
//     }
template <class T>
T json_body(const request& asked, const json::read_options& how = {}) {
  values::check_json(asked.field("Content-Type"));
  return values::json_of<T>(asked.body(), how);
}

// The same in a coroutine, which waits for the body. It also throws the errors of
// request::read_all().
//
// Example (declarations):
//     struct Item {
//       std::string name;
//     };
//     troupe::task<troupe::http::response> add(troupe::http::request& asked) {
//       const auto item = co_await troupe::http::read_json<Item>(asked);
//       co_return troupe::http::json_response(item);
//     }
template <class T>
task<T> read_json(request& asked, json::read_options how = {}) {
  values::check_json(asked.field("Content-Type"));
  const std::string_view body = co_await asked.read_all();
  co_return values::json_of<T>(body, how);
}

// 200 with the value as json::write makes it.
template <class T>
response json_response(const T& from) {
  return response::json(json::write(from));
}

}  // namespace troupe::http
