# Installation: headers, libraries, a CMake package (find_package(troupe)) and one pkg-config file a
# component (troupe, troupe-io, ...).
include(CMakePackageConfigHelpers)

# Below another project only what that has built is installed; without TROUPE_INSTALL nothing is, but the rules are
# there, since a library of that project which links troupe could not be exported otherwise.
set(installs)
if(NOT TROUPE_INSTALL)
  set(installs EXCLUDE_FROM_ALL)
endif()
set(if_built)
if(NOT PROJECT_IS_TOP_LEVEL)
  set(if_built OPTIONAL)
endif()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/troupe")
# The library for programs under -fsanitize=thread lies beside the other one: archives and exports have names of their
# own, and all else is that of the other one.
set(infix "")
if(TROUPE_TSAN_BESIDE)
  set(infix "-tsan")
endif()
get_property(components GLOBAL PROPERTY troupe_components)
get_property(other_names GLOBAL PROPERTY troupe_other_names)

if(NOT TROUPE_TSAN_BESIDE)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" ${installs}
      FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
  # GDB's commands, which a user loads by hand (docs/decisions/debugger.md).
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/tools/gdb/" DESTINATION "${CMAKE_INSTALL_DATADIR}/troupe/gdb" ${installs}
      FILES_MATCHING PATTERN "*.py")
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" ${installs})
endif()

# The .pc files find the prefix from where they lie, so that an installed tree may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
    BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE pc_up)
# What troupe-config.cmake knows of each component: which others and which pkg-config modules it
# needs.
set(facts "")
foreach(name IN LISTS components other_names)
  get_target_property(target troupe::${name} ALIASED_TARGET)
  if(TROUPE_TSAN_BESIDE AND NOT name IN_LIST other_names)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${target}_tsan)
  endif()
  # An export of its own, so that a program needs what its components need and nothing else.
  install(TARGETS ${target} EXPORT troupe_${name}_targets
      ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${installs} ${if_built}
      LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${installs} ${if_built}
      INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT troupe_${name}_targets NAMESPACE troupe:: DESTINATION "${package_dir}"
      FILE troupe-${name}${infix}-targets.cmake ${installs})
  if(TROUPE_TSAN_BESIDE)
    continue()
  endif()

  get_property(links GLOBAL PROPERTY troupe_component_${name}_links)
  get_property(pkg GLOBAL PROPERTY troupe_component_${name}_pkg)
  if(name IN_LIST other_names)
    set(links troupe::troupe)
  endif()
  list(FILTER links INCLUDE REGEX "^troupe::")
  list(TRANSFORM links REPLACE "^troupe::" "")
  # With what those need in turn, lower ones first.
  set(needs_${name})
  set(modules_${name})
  foreach(link IN LISTS links)
    list(APPEND needs_${name} ${needs_${link}} ${link})
    list(APPEND modules_${name} ${modules_${link}})
  endforeach()
  list(APPEND modules_${name} ${pkg})
  list(REMOVE_DUPLICATES needs_${name})
  list(REMOVE_DUPLICATES modules_${name})
  if(BUILD_SHARED_LIBS)  # the libraries themselves bring them
    set(modules_${name})
  endif()
  string(APPEND facts "  set(needs_${name} ${needs_${name}})\n  set(modules_${name} ${modules_${name}})\n")
  troupe_own_package(${name} package)
  string(APPEND facts "  set(own_package_${name} ${package})\n")
  get_property(supplied GLOBAL PROPERTY troupe_component_${name}_supplied)
  set(supplied_${name} ${supplied})
  foreach(link IN LISTS links)
    list(APPEND supplied_${name} ${supplied_${link}})
  endforeach()
  string(APPEND facts "  set(supplied_${name} ${supplied_${name}})\n")
  foreach(module IN LISTS pkg)
    troupe_debian_package(${module} package)
    string(APPEND facts "  set(package_${module} ${package})\n")
  endforeach()

  # The .pc file repeats what the CMake target carries. All that an archive needs is in Requires and not
  # in Requires.private, so that a program links it all, with and without --static. A shared library
  # brings the foreign ones itself; pkg-config would refuse it without their development packages if
  # Requires.private named them.
  list(TRANSFORM links PREPEND "troupe-")
  list(TRANSFORM links REPLACE "^troupe-troupe$" "troupe")
  list(JOIN links " " pc_requires)
  set(pc_others "")
  if("date-tz" IN_LIST pkg)  # it has no .pc file of its own
    list(REMOVE_ITEM pkg date-tz)
    set(pc_others " -ldate-tz")
  endif()
  if("libpq" IN_LIST pkg)  # its .pc file asks for archives that only its own build has, with --static
    list(REMOVE_ITEM pkg libpq)
    string(APPEND pc_others " -lpq")
  endif()
  list(JOIN pkg " " modules)
  if(BUILD_SHARED_LIBS)
    set(pc_others "")
  else()
    string(STRIP "${pc_requires} ${modules}" pc_requires)
  endif()
  set(pc_name troupe-${name})
  set(pc_cflags "")
  set(pc_libs "-L\${libdir} -l${target}${pc_others} -pthread")
  if(name IN_LIST other_names)
    set(pc_libs "")
  elseif(name STREQUAL "troupe")
    set(pc_name troupe)
    set(pc_cflags "-std=c++20 -I\${includedir} -pthread -D$<JOIN:$<TARGET_PROPERTY:troupe,INTERFACE_COMPILE_DEFINITIONS>, -D> $<JOIN:$<TARGET_PROPERTY:troupe,INTERFACE_COMPILE_OPTIONS>, >")
  endif()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/troupe.pc.in"
      "${PROJECT_BINARY_DIR}/package/${pc_name}.pc.in" @ONLY)
  set(pc_file "${PROJECT_BINARY_DIR}/package${TROUPE_CONFIG_FOLDER}/${pc_name}.pc")
  file(GENERATE OUTPUT "${pc_file}"
      INPUT "${PROJECT_BINARY_DIR}/package/${pc_name}.pc.in" TARGET troupe)
  install(FILES "${pc_file}"
      DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" ${installs})
endforeach()

if(TROUPE_TSAN_BESIDE)
  return()
endif()

get_property(left_out GLOBAL PROPERTY troupe_left_out)
foreach(name IN LISTS left_out)
  string(REPLACE "troupe::" "" name "${name}")
  get_property(why GLOBAL PROPERTY troupe_left_out_${name})
  string(APPEND facts "  set(left_out_${name} [[${why}]])\n")
endforeach()
list(JOIN components ", " components_shown)
string(REPLACE "troupe" "io" components_shown "${components_shown}")
list(JOIN components " " components)
list(JOIN other_names " " other_names)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/troupe-config.cmake.in"
    "${PROJECT_BINARY_DIR}/package/troupe-config.cmake" INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/troupe-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/troupe-config.cmake"
    "${PROJECT_BINARY_DIR}/package/troupe-config-version.cmake" DESTINATION "${package_dir}" ${installs})

# The second library comes of a build of its own below this one, which has all settings of this one but the sanitizer.
if(TROUPE_TSAN_PACKAGE AND PROJECT_IS_TOP_LEVEL AND NOT TROUPE_SANITIZE)
  set(tsan "${PROJECT_BINARY_DIR}/tsan")
  set(settings "")
  foreach(setting IN ITEMS BUILD_SHARED_LIBS CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER CMAKE_C_COMPILER CMAKE_CXX_FLAGS
          CMAKE_C_FLAGS CMAKE_INSTALL_PREFIX CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_PREFIX_PATH
          CMAKE_CXX_COMPILER_LAUNCHER TROUPE_CHECKED TROUPE_WITHOUT TROUPE_PRECOMPILE TROUPE_NATIVE TROUPE_WERROR
          TROUPE_SOURCES_TOGETHER)
    if(DEFINED ${setting})
      string(APPEND settings "set(${setting} [==[${${setting}}]==] CACHE STRING \"\" FORCE)\n")
    endif()
  endforeach()
  if(TROUPE_MULTI_CONFIG)
    string(APPEND settings "set(CMAKE_BUILD_TYPE Release CACHE STRING \"\" FORCE)\n")
  endif()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/package/tsan.cmake" CONTENT "${settings}" @ONLY)
  add_custom_target(troupe_tsan ALL VERBATIM USES_TERMINAL
      COMMAND "${CMAKE_COMMAND}" -E env --unset=TROUPE_PRECOMPILED_IN "${CMAKE_COMMAND}" -G Ninja
          -C "${PROJECT_BINARY_DIR}/package/tsan.cmake" -S "${PROJECT_SOURCE_DIR}" -B "${tsan}" -DTROUPE_SANITIZE=thread -DTROUPE_TSAN_BESIDE=ON -DTROUPE_TESTS=OFF -DTROUPE_TOOLS=OFF
      COMMAND "${CMAKE_COMMAND}" --build "${tsan}")
  install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" --install \"${tsan}\" --prefix \"\${CMAKE_INSTALL_PREFIX}\"
      COMMAND_ERROR_IS_FATAL ANY)")
endif()
