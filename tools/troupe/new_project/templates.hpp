// templates: the files of tools/templates, which the build puts into the tool.
#pragma once

#include <span>
#include <string_view>

namespace troupe_tool {

struct template_file {
  std::string_view kind;  // "common", "plain", "http", "durable" or "cluster"
  std::string_view path;  // in the new project
  std::string_view text;
};

std::span<const template_file> templates();

}  // namespace troupe_tool
