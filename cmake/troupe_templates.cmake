# troupe_templates(SOURCE): writes a C++ source with the files of tools/templates, which `troupe new`
# copies. They are raw strings in it, so that the tool needs no other file once it is installed.
function(troupe_templates source)
  set(folder "${PROJECT_SOURCE_DIR}/tools/templates")
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${folder}" "${folder}/*")
  list(SORT files)
  set(entries)
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/${file}")
    file(READ "${folder}/${file}" text)
    if(text MATCHES "\\$<|\\)template\"")
      message(FATAL_ERROR "tools/templates/${file} has $< or )template\", which its embedding would change")
    endif()
    string(REGEX MATCH "^([^/]*)/(.*)$" matched "${file}")
    set(kind "${CMAKE_MATCH_1}")
    set(path "${CMAKE_MATCH_2}")
    # Here they have no dot, so that git and the tools do not take them for their own.
    string(REGEX REPLACE "^(clang-format|clang-tidy|gitignore)$" ".\\1" path "${path}")
    string(APPEND entries "    {\"${kind}\", \"${path}\", R\"template(${text})template\"},\n")
  endforeach()
  file(GENERATE OUTPUT "${source}" CONTENT "// Made from tools/templates by cmake/troupe_templates.cmake.
#include \"new_project/templates.hpp\"

namespace troupe_tool {
namespace {
constexpr template_file all[] = {
${entries}};
}  // namespace

std::span<const template_file> templates() { return all; }

}  // namespace troupe_tool
")
endfunction()
