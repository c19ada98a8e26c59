# The programs in examples/, one executable each, which links the components that it includes. A line
# `// needs: cairo sdl2` in a program names the pkg-config modules it uses; `./run` reads the same line.

file(GLOB examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp")
foreach(file IN LISTS examples)
  cmake_path(GET file STEM LAST_ONLY stem)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(STRINGS "${file}" needs REGEX "^// needs: ")
  string(REGEX REPLACE "// needs: *" "" needs "${needs}")
  string(REGEX MATCHALL "[^ ;]+" needs "${needs}")

  set(missing)
  set(modules)
  foreach(module IN LISTS needs)
    find_package(PkgConfig REQUIRED)
    pkg_check_modules(${module} QUIET IMPORTED_TARGET GLOBAL ${module})
    if(${module}_FOUND)
      list(APPEND modules PkgConfig::${module})
    else()
      list(APPEND missing ${module})
    endif()
  endforeach()
  if(missing)
    # Left out, not refused: a user who builds the library need not have a graphics stack. The
    # example's test, which is added all the same, then fails and says so.
    message(WARNING "examples/${stem}.cpp is not built: pkg-config knows no ${missing}")
    continue()
  endif()

  add_executable(example_${stem} "${file}")
  set_target_properties(example_${stem} PROPERTIES
      OUTPUT_NAME ${stem} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
  troupe_components_of("${file}" components)
  target_link_libraries(example_${stem} PRIVATE ${components} ${modules})
  troupe_private_flags(example_${stem})
  # Programs begin as copies of them, under the flags of their projects (package/language_gcc).
  target_compile_options(example_${stem} PRIVATE -Wshadow)
endforeach()
