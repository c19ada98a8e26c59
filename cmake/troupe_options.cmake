# What a user may choose. A project that embeds troupe gets the library alone by default.

option(TROUPE_TESTS    "Build the tests"                               ${PROJECT_IS_TOP_LEVEL})
option(TROUPE_TOOLS    "Build the program `troupe`, which looks into others"  ${PROJECT_IS_TOP_LEVEL})
option(TROUPE_EXAMPLES "Build the programs in examples/"               OFF)
option(TROUPE_BENCH    "Build the benchmarks in benches/"                OFF)
option(TROUPE_INSTALL  "Add install rules"                             ${PROJECT_IS_TOP_LEVEL})
option(TROUPE_WERROR   "Treat a warning in troupe's code as an error"  ${PROJECT_IS_TOP_LEVEL})
option(TROUPE_TSAN_PACKAGE "Build and install the library a second time, for programs under -fsanitize=thread" OFF)
# Set by the build of that second library alone (troupe_install.cmake).
option(TROUPE_TSAN_BESIDE "Only add to an installation what programs under -fsanitize=thread link" OFF)
mark_as_advanced(TROUPE_TSAN_BESIDE)
option(TROUPE_NATIVE   "Build the library for this machine's CPU only" OFF)
# Builds of the library within tests use what the build that runs them has compiled (troupe_precompile.cmake).
string(COMPARE NOTEQUAL "$ENV{TROUPE_PRECOMPILED_IN}" "" precompile)
option(TROUPE_PRECOMPILE "Read the standard headers once for the whole library: half to compile; hides that a source lacks one" ${precompile})
option(TROUPE_SOURCES_TOGETHER "Compile the sources of one folder together: half to compile, and more after a change of one; hides that a source lacks an include" ON)
option(TROUPE_BARE_TESTS "Under a sanitizer, leave line numbers and some checks of pointers out of the tests' own code: a quarter less to compile" OFF)
option(TROUPE_TESTS_TOGETHER "Compile several files of tests together: a third less to compile, and more after a change of one" ON)

set(TROUPE_WITHOUT "" CACHE STRING "What is not built, a list: components (troupe::http), test suites by their prefix (stress)")
set(TROUPE_SANITIZE "" CACHE STRING "Build with a sanitizer: address (with undefined), thread, or none")
set_property(CACHE TROUPE_SANITIZE PROPERTY STRINGS "" address thread)
# A project that embeds troupe and is compiled so.
if(NOT TROUPE_SANITIZE AND CMAKE_CXX_FLAGS MATCHES "-fsanitize=([a-z,-]*,)?thread")
  set(TROUPE_SANITIZE thread)
endif()

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Invariant checks cost a branch or two on hot paths, so builds that are meant for use leave them out; None is what
# distributions build. A generator with several configurations decides for each of them.
get_property(TROUPE_MULTI_CONFIG GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
set(checked ON)
if(TROUPE_MULTI_CONFIG)
  set(checked BY_CONFIGURATION)
elseif(CMAKE_BUILD_TYPE MATCHES "^(Release|MinSizeRel|None)$")
  set(checked OFF)
endif()
set(TROUPE_CHECKED ${checked} CACHE STRING "Check the library's invariants while it runs: ON, OFF, or BY_CONFIGURATION")
set_property(CACHE TROUPE_CHECKED PROPERTY STRINGS ON OFF BY_CONFIGURATION)
set(TROUPE_CHECKED_VALUE $<BOOL:${TROUPE_CHECKED}>)
if(TROUPE_CHECKED STREQUAL "BY_CONFIGURATION")
  set(TROUPE_CHECKED_VALUE $<NOT:$<CONFIG:Release,MinSizeRel,None>>)
endif()
# What is generated once for each configuration lies in a folder of its own.
set(TROUPE_CONFIG_FOLDER "")
if(TROUPE_MULTI_CONFIG)
  set(TROUPE_CONFIG_FOLDER "/$<CONFIG>")
endif()

# The compiler cache halves the time of `./test`, which builds the library several times over. It may be
# there and of no use (its folder not writable, its settings wrong), hence the trial with a new text.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TROUPE_CCACHE ccache DOC "Compiler cache; empty for none")
  if(TROUPE_CCACHE)
    string(RANDOM LENGTH 20 word)
    file(WRITE "${PROJECT_BINARY_DIR}/trial.cpp" "int trial_${word};\n")
    execute_process(COMMAND "${TROUPE_CCACHE}" "${CMAKE_CXX_COMPILER}" -c trial.cpp -o trial.o
        WORKING_DIRECTORY "${PROJECT_BINARY_DIR}" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed)
      message(STATUS "${TROUPE_CCACHE} does not work: compiling without it")
    else()
      # Without the first setting it keeps nothing that uses a precompiled header; with the second it does not
      # preprocess a source before it compiles it, which takes as long as a precompiled header saves. The third is
      # for compile_header.sh. With the others it knows the objects of another checkout, too (troupe_flags.cmake).
      set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1
          CCACHE_PCH_EXTSUM=1 "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}")
      if(TROUPE_SANITIZE)
        list(APPEND CMAKE_CXX_COMPILER_LAUNCHER CCACHE_NOHASHDIR=1)
      endif()
      list(APPEND CMAKE_CXX_COMPILER_LAUNCHER "${TROUPE_CCACHE}")
    endif()
  endif()
endif()

# Test programs link the whole library: with lld they take a fifth of the time.
if(PROJECT_IS_TOP_LEVEL AND TROUPE_TESTS)
  find_program(TROUPE_LLD ld.lld DOC "The linker of tests, tools and examples; empty for the compiler's own")
  if(TROUPE_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()
