# Functions that make tests. Each test carries the label of its kind (unit, conformance, stress,
# model, compile_fail, example, tidy, package, docs); the test presets choose kinds by label.
#
# Two marks in a file's name change how its tests run:
#   x.deep.cpp, x.deep.test.cpp      too long for every day: also labelled `deep`, left out by default
#   x.serial.cpp, x.serial.test.cpp  measures time or CPU use: never runs beside another test; under a sanitizer `deep`

# troupe_program(NAME SOURCES file...): an executable of ours that sees the private headers.
function(troupe_program name)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE
      "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE troupe::all Threads::Threads)
  troupe_private_flags(${name})
  # The library that they test is as users get it; they themselves need not take so long to compile. With g++, -Og takes
  # two thirds of the time of -O1, and less than -O0 (less code reaches the assembler).
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og> $<$<BOOL:${TROUPE_SANITIZE}>:-O0>
      $<$<AND:$<BOOL:${TROUPE_SANITIZE}>,$<BOOL:${TROUPE_BARE_TESTS}>>:-g0>)
  set_target_properties(${name} PROPERTIES TROUPE_BARE "${TROUPE_BARE_TESTS}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # These misfire in GCC 12: the first three in std::string, and the last where an operator delete is inlined at -Og
    # and its operator new is not.
    target_compile_options(${name} PRIVATE
        -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-mismatched-new-delete)
  endif()
endfunction()

# troupe_gtest(NAME PREFIX text LABELS label... SOURCES file...)
#   One GoogleTest executable NAME, and NAME_deep, NAME_serial for the marked files. A suite shows as
#   PREFIX/suite, for suites of two layers may share a name. No sources: nothing is made.
function(troupe_gtest name)
  cmake_parse_arguments(arg "" "PREFIX" "LABELS;SOURCES" ${ARGN})
  if(arg_PREFIX IN_LIST TROUPE_WITHOUT)
    return()
  endif()
  set(plain ${arg_SOURCES})
  foreach(mark IN ITEMS deep serial)
    set(marked ${plain})
    list(FILTER marked INCLUDE REGEX "\\.${mark}\\.")
    list(FILTER plain EXCLUDE REGEX "\\.${mark}\\.")
    set(labels ${arg_LABELS})
    set(timeout 600)
    if(mark STREQUAL "deep" OR TROUPE_SANITIZE)
      list(APPEND labels deep)
    endif()
    if(mark STREQUAL "deep")
      set(timeout 1800)
    endif()
    troupe_gtest_executable(${name}_${mark} "${arg_PREFIX}" "${labels}" "${marked}"
        RUN_SERIAL TRUE TIMEOUT ${timeout})
  endforeach()
  troupe_gtest_executable(${name} "${arg_PREFIX}" "${arg_LABELS}" "${plain}" TIMEOUT 600)
endfunction()

# troupe_together(OUT NAME file...): sets OUT to what is compiled for these files of tests. Those of one folder come together,
# up to BYTES_TOGETHER, which saves a third of the time: their headers and what they instantiate are read and made once.
# Each file keeps its names to itself: its `namespace troupe::test` gets a name of its own, which sees that of the headers.
# A file that asks the preprocessor for more than headers, and whether there are some, uses another namespace, or defines what
# a header declares and has no tests, is compiled alone.
set(BYTES_TOGETHER 40000)
function(troupe_together out name)
  set(compiled)
  set(batch)
  set(bytes 0)
  set(last_folder)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source)
    file(STRINGS "${source}" odd REGEX "^ *#(if|else|elif|define|undef)")
    list(FILTER odd EXCLUDE REGEX "^#if __has_include\\(<[a-z0-9_/.]+>\\)$")
    file(STRINGS "${source}" usual REGEX "^namespace troupe::test {$")
    file(STRINGS "${source}" tests REGEX "^(TYPED_)?TEST(_F|_P)?\\(")
    if(odd OR NOT usual OR NOT tests OR NOT TROUPE_TESTS_TOGETHER)
      list(APPEND compiled "${source}")
      continue()
    endif()
    file(SIZE "${source}" size)
    math(EXPR bytes "${bytes} + ${size}")
    cmake_path(GET source PARENT_PATH folder)
    if(batch AND (bytes GREATER BYTES_TOGETHER OR NOT folder STREQUAL last_folder))
      troupe_batch(compiled ${name} ${batch})
      set(batch)
      set(bytes ${size})
    endif()
    set(last_folder "${folder}")
    list(APPEND batch "${source}")
  endforeach()
  if(batch)
    troupe_batch(compiled ${name} ${batch})
  endif()
  set(${out} ${compiled} PARENT_SCOPE)
endfunction()

# troupe_batch(LIST NAME file...): appends to LIST the file that compiles these, which it writes, or the one file itself.
# It names them from the folder of all sources, so that it has the same text in each checkout.
function(troupe_batch all name)
  if(ARGC EQUAL 3)
    set(${all} ${${all}} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(headers)
  set(files)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET source STEM stem)
    string(MAKE_C_IDENTIFIER "test_${stem}" space)
    file(STRINGS "${source}" lines REGEX "^#(include|if|endif)")
    set(guarded "")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"(.*)\".*$" "\\1" beside "${line}")
      if(EXISTS "${folder}/${beside}")
        cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE named)
        set(line "#include \"${named}/${beside}\"")
      endif()
      # The headers that are read under a condition stay together with it.
      if(line MATCHES "^#if" OR guarded)
        string(APPEND guarded "${line}\n")
      else()
        list(APPEND headers "${line}")
      endif()
      if(line MATCHES "^#endif")
        list(APPEND headers "${guarded}")
        set(guarded "")
      endif()
    endforeach()
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    string(APPEND files "\nnamespace troupe::${space} {\nusing namespace test;\n}\n#define test ${space}\n#include \"${source}\"\n#undef test\n")
  endforeach()
  list(REMOVE_DUPLICATES headers)
  list(JOIN headers "\n" headers)
  list(GET ARGN 0 first)
  cmake_path(GET first STEM stem)
  set(written "${CMAKE_CURRENT_BINARY_DIR}/together/${name}/${stem}_and_more.cpp")
  while(written IN_LIST ${all})  # of another folder
    string(REGEX REPLACE "\\.cpp$" "_too.cpp" written "${written}")
  endwhile()
  file(CONFIGURE OUTPUT "${written}" CONTENT "${headers}\nnamespace troupe::test {}\n${files}")
  set_property(SOURCE "${written}" PROPERTY COMPILE_OPTIONS -iquote "${PROJECT_SOURCE_DIR}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Of a type in an unnamed namespace of a file that is included.
    set_property(SOURCE "${written}" APPEND PROPERTY COMPILE_OPTIONS -Wno-subobject-linkage)
  endif()
  set(${all} ${${all}} "${written}" PARENT_SCOPE)
endfunction()

# The one executable of a troupe_gtest group; what follows SOURCES are test properties.
function(troupe_gtest_executable name prefix labels sources)
  if(NOT sources)
    return()
  endif()
  troupe_together(compiled ${name} ${sources})
  troupe_program(${name} SOURCES ${compiled})
  target_link_libraries(${name} PRIVATE GTest::gtest_main GTest::gtest ${TROUPE_GMOCK})
  target_precompile_headers(${name} REUSE_FROM troupe_test_pch)
  if(TARGET troupe_test_support)
    target_link_libraries(${name} PRIVATE troupe_test_support)
  endif()
  # A process takes longer to start than most tests: one for each suite. test_report.py counts the tests in it.
  set(suites)
  foreach(source IN LISTS sources)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    file(STRINGS "${source}" tests REGEX "^(TYPED_)?TEST(_F|_P)?\\(")
    list(TRANSFORM tests REPLACE "^[A-Z_]*\\(([A-Za-z0-9_]+),.*$" "\\1")
    # A suite whose tests stand in a header, for several programs.
    file(STRINGS "${source}" given REGEX "^INSTANTIATE_TEST_SUITE_P\\([^,]*, *[A-Za-z0-9_]+,")
    list(TRANSFORM given REPLACE "^[A-Z_]*\\([^,]*, *([A-Za-z0-9_]+),.*$" "\\1")
    list(APPEND suites ${tests} ${given})
  endforeach()
  list(REMOVE_DUPLICATES suites)
  foreach(suite IN LISTS suites)
    add_test(NAME ${prefix}/${suite} COMMAND ${name} --gtest_brief=1 "--gtest_filter=${suite}.*:*/${suite}.*:${suite}/*.*")
    set_tests_properties(${prefix}/${suite} PROPERTIES ${ARGN}
        LABELS "${labels}" ENVIRONMENT "TROUPE_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
  endforeach()
endfunction()

# troupe_model(FILE): a model for the checker, an executable of its own whose exit status is the
# verdict: 0 holds, 1 a violation was found and printed. A line `// mutation: NAME` in the file adds
# the test model_<name>.mutation.NAME: the same program with MUTATION=NAME in its environment, which
# must find one, for a model that cannot fail proves nothing. Models are built without warnings (the checker's headers
# have many), without sanitizers (the checker switches stacks) and always with the invariants checked.
function(troupe_model file)
  cmake_path(GET file FILENAME filename)
  string(REGEX REPLACE "(\\.deep)?(\\.model)?\\.cpp$" "" stem "${filename}")
  set(labels model)
  set(timeout 120)
  if(filename MATCHES "\\.deep\\.")
    list(APPEND labels deep)
    set(timeout 900)
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(STRINGS "${file}" mutations REGEX "^// mutation: ")
  list(TRANSFORM mutations REPLACE "^// mutation: *([A-Za-z0-9_]+).*$" "\\1")
  set(name model_${stem})
  troupe_model_executable(${name} "${file}")
  if(NOT TARGET model_pch)
    # The checker's headers, which take longer to read than a model to compile.
    troupe_model_executable(model_pch "${PROJECT_SOURCE_DIR}/tests/precompiled.cpp")
    target_precompile_headers(model_pch PRIVATE <models/relacy_atomics.hpp>)
    troupe_checksum_of_headers(model_pch)
  endif()
  target_precompile_headers(${name} REUSE_FROM model_pch)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} PROCESSORS 2)
  # That the models can fail is asked under --deep only.
  list(APPEND labels deep)
  foreach(mutation IN LISTS mutations)
    add_test(NAME ${name}.mutation.${mutation} COMMAND Python3::Interpreter
        "${PROJECT_SOURCE_DIR}/tests/models/expect_violation.py" $<TARGET_FILE:${name}> ${mutation})
    set_tests_properties(${name}.mutation.${mutation} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} PROCESSORS 2)
  endforeach()
endfunction()

function(troupe_model_executable name file)
  add_executable(${name} "${file}")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include"
      "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
  target_compile_features(${name} PRIVATE cxx_std_23)
  target_compile_definitions(${name} PRIVATE TROUPE_CHECKED=1 TROUPE_MODEL=1)
  target_compile_options(${name} PRIVATE -O1 -w)
  # The archive alone, for fail_invariant and the like: the target would bring its flags along.
  target_link_libraries(${name} PRIVATE $<TARGET_FILE:troupe> Threads::Threads)
  add_dependencies(${name} troupe)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

# troupe_script_test(NAME LABELS label... COMMAND words... [TIMEOUT seconds])
#   A test written as a script. It finds the sources, this build and the compiler in its environment.
function(troupe_script_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "LABELS;COMMAND" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME "${name}" COMMAND ${arg_COMMAND})
  list(JOIN CMAKE_CXX_COMPILER_LAUNCHER " " launcher)
  # Most tests wait most of the time, so that more of them run at a time than there are processors; but few that compile.
  set(processors 1)
  if(arg_LABELS MATCHES "docs|package|compile_fail|header")
    set(processors 2)
  endif()
  set_tests_properties("${name}" PROPERTIES PROCESSORS ${processors}
      LABELS "${arg_LABELS}"
      TIMEOUT ${arg_TIMEOUT}
      ENVIRONMENT "TROUPE_SOURCE_DIR=${PROJECT_SOURCE_DIR};TROUPE_BINARY_DIR=${PROJECT_BINARY_DIR};TROUPE_EXAMPLES_DIR=${PROJECT_BINARY_DIR}/examples;TROUPE_CXX=${launcher} ${CMAKE_CXX_COMPILER};PYTHONDONTWRITEBYTECODE=1")
  if(TROUPE_PRECOMPILE)
    set_property(TEST "${name}" APPEND PROPERTY ENVIRONMENT "TROUPE_PRECOMPILED_IN=${PROJECT_BINARY_DIR}")
  endif()
endfunction()
