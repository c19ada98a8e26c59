# What an archive was built from, as a text in it: ./run links a program to an installed library
# only if this text is the one that a build of its own would have. Included, it defines a function;
# with `cmake -P` it writes the source.

# troupe_fingerprint(): the file ${PROJECT_BINARY_DIR}/fingerprint.cpp, which every component
# compiles, and its target.
function(troupe_fingerprint)
  set(checked 0)
  if(TROUPE_CHECKED STREQUAL "BY_CONFIGURATION")
    set(checked by_configuration)
  elseif(TROUPE_CHECKED)
    set(checked 1)
  endif()
  # The same files as in scripts/common.sh: what the library is made of, of all components, for they
  # include each other.
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*" "${PROJECT_SOURCE_DIR}/src/*"
      "${PROJECT_SOURCE_DIR}/cmake/*")
  list(FILTER files EXCLUDE REGEX "\\.(test|model)\\.cpp$")
  # Not where it is built: the same sources give the same bytes in each folder.
  string(REGEX REPLACE "-f[a-z]+-prefix-map=[^ ]*" "" flags "${CMAKE_CXX_FLAGS}")
  add_custom_command(OUTPUT "${PROJECT_BINARY_DIR}/fingerprint.cpp" VERBATIM
      DEPENDS ${files} "${PROJECT_SOURCE_DIR}/CMakeLists.txt"
      COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${PROJECT_BINARY_DIR}/fingerprint.cpp"
          "-DHOW=compiler=${CMAKE_CXX_COMPILER_ID}-${CMAKE_CXX_COMPILER_VERSION} build=${CMAKE_BUILD_TYPE} checked=${checked} sanitizer=${TROUPE_SANITIZE} native=$<BOOL:${TROUPE_NATIVE}> flags=${flags}"
          -P "${PROJECT_SOURCE_DIR}/cmake/troupe_fingerprint.cmake")
  add_custom_target(troupe_fingerprint DEPENDS "${PROJECT_BINARY_DIR}/fingerprint.cpp")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/include/*" "${ROOT}/src/*" "${ROOT}/cmake/*")
  list(FILTER files EXCLUDE REGEX "\\.(test|model)\\.cpp$")
  list(APPEND files CMakeLists.txt)
  list(SORT files)
  set(sums "")
  foreach(file IN LISTS files)
    file(SHA256 "${ROOT}/${file}" sum)
    string(APPEND sums "${sum}  ${file}\n")
  endforeach()
  string(SHA256 sum "${sums}")
  string(REGEX REPLACE "[^A-Za-z0-9 =._+-]" "?" how "${HOW}")
  file(WRITE "${OUTPUT}" "// Made by cmake/troupe_fingerprint.cmake.
namespace {
[[gnu::used]] const char fingerprint[] = \"troupe fingerprint: sources=${sum} ${how};\";
}
")
endif()
