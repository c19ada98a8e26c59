# The program `troupe`: looks into programs that run with TROUPE_OBSERVE=1, through their socket. Its page is
# served by the library. Left out, not refused, where its libraries are missing: a user who builds the library need
# not have them.

find_package(fmt QUIET)
find_package(CLI11 QUIET)
find_package(nlohmann_json QUIET)
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(ncursesw QUIET IMPORTED_TARGET ncursesw)
  pkg_check_modules(libdw QUIET IMPORTED_TARGET libdw)
endif()
if(NOT TARGET troupe::observe_page OR NOT TARGET troupe::durable OR NOT fmt_FOUND OR NOT CLI11_FOUND OR NOT nlohmann_json_FOUND OR NOT ncursesw_FOUND)
  message(WARNING "tools/troupe is not built: it needs the components observe_page and durable, libfmt-dev, libcli11-dev, nlohmann-json3-dev and libncurses-dev")
  return()
endif()
file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/troupe/*.cpp")
include(troupe_templates)
set(templates "${PROJECT_BINARY_DIR}/tools/templates.cpp")
troupe_templates("${templates}")
add_executable(troupe_tool ${sources} "${templates}")
# troupe_tool_flags(TARGET): as the tool is compiled and linked.
function(troupe_tool_flags target)
  # The page and the metrics are those of the component.
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tools/troupe")
  target_link_libraries(${target} PRIVATE troupe::observe_page troupe::durable fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json PkgConfig::ncursesw)
  if(TARGET troupe::durable_postgres)
    target_link_libraries(${target} PRIVATE troupe::durable_postgres)
    target_compile_definitions(${target} PRIVATE TROUPE_TOOL_POSTGRES=1)
  endif()
  troupe_private_flags(${target})
  # The tool waits for a terminal or a socket: it need not take as long to compile as the library.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # These misfire in std::string and std::vector (GCC 12).
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()
troupe_tool_flags(troupe_tool)
set_target_properties(troupe_tool PROPERTIES OUTPUT_NAME troupe RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tools")
if(TROUPE_PRECOMPILE AND NOT TROUPE_SANITIZE)
  # By a target of its own, as for the tests: nothing of a target that makes such headers goes through the compiler cache.
  # It is not linked, so that the tool is compiled while the libraries are; the flags must be those of a program.
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/tools/precompiled.cpp" CONTENT "// It exists for its precompiled headers.\n")
  add_library(troupe_tool_pch OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/tools/precompiled.cpp")
  troupe_tool_flags(troupe_tool_pch)
  set_target_properties(troupe_tool_pch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(troupe_tool_pch PRIVATE -fPIE)
  target_precompile_headers(troupe_tool_pch PRIVATE "${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp" <filesystem> <fmt/format.h>)
  troupe_checksum_of_headers(troupe_tool_pch)
  target_precompile_headers(troupe_tool REUSE_FROM troupe_tool_pch)
endif()
# Finds the functions of a stack. Without it the tool says what is missing when it is asked for one.
if(libdw_FOUND)
  target_link_libraries(troupe_tool PRIVATE PkgConfig::libdw)
  set_source_files_properties("${PROJECT_SOURCE_DIR}/tools/troupe/stacks/unwinder.cpp"
      "${PROJECT_SOURCE_DIR}/tools/troupe/stacks/method_places.cpp" PROPERTIES
      COMPILE_DEFINITIONS "TROUPE_TOOL_LIBDW=1")
endif()
set_source_files_properties("${PROJECT_SOURCE_DIR}/tools/troupe/command_line/command_line.cpp" PROPERTIES
    COMPILE_DEFINITIONS "TROUPE_TOOL_VERSION=\"${PROJECT_VERSION}\"")
# The manual page and the completions are made by the tool from its commands.
set(texts "${PROJECT_BINARY_DIR}/tools/texts")
add_custom_command(OUTPUT "${texts}/troupe.1" "${texts}/troupe" "${texts}/_troupe" VERBATIM
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${texts}"
    COMMAND troupe_tool help --man > "${texts}/troupe.1"
    COMMAND troupe_tool completion bash > "${texts}/troupe"
    COMMAND troupe_tool completion zsh > "${texts}/_troupe"
    DEPENDS troupe_tool)
add_custom_target(troupe_tool_texts ALL DEPENDS "${texts}/troupe.1")
if(TROUPE_INSTALL)
  install(TARGETS troupe_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(FILES "${texts}/troupe.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${texts}/troupe" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${texts}/_troupe" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
endif()
