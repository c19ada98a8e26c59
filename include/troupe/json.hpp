// json: values of structs from and to JSON.
// This header includes the whole component troupe::json.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/json/error.hpp"
#include "troupe/json/mapping.hpp"
#include "troupe/json/read.hpp"
#include "troupe/json/value.hpp"
#include "troupe/json/write.hpp"
