# Installation: headers, archives, a CMake package (find_package(troupe)) and one pkg-config file a
# component (troupe, troupe-io, ...).
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/troupe")
get_property(components GLOBAL PROPERTY troupe_components)
list(JOIN components ", " components_shown)

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# The .pc files find the prefix from where they lie, so that an installed tree may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
    BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE pc_up)
set(pkg_modules)
foreach(name IN LISTS components)
  get_target_property(target troupe::${name} ALIASED_TARGET)
  install(TARGETS ${target} EXPORT troupe_targets
      ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
      INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

  # The .pc file repeats what the CMake target carries; components refer to each other by Requires.
  get_property(links GLOBAL PROPERTY troupe_component_${name}_links)
  get_property(pkg GLOBAL PROPERTY troupe_component_${name}_pkg)
  list(APPEND pkg_modules ${pkg})
  list(FILTER links INCLUDE REGEX "^troupe::")
  list(TRANSFORM links REPLACE "^troupe::" "troupe-")
  list(TRANSFORM links REPLACE "^troupe-troupe$" "troupe")
  list(JOIN links " " pc_requires)
  list(JOIN pkg " " pc_requires_private)
  set(pc_name troupe-${name})
  set(pc_cflags "")
  if(name STREQUAL "troupe")
    set(pc_name troupe)
    set(pc_cflags "-std=c++23 -I\${includedir} -pthread -D$<JOIN:$<TARGET_PROPERTY:troupe,INTERFACE_COMPILE_DEFINITIONS>, -D> $<JOIN:$<TARGET_PROPERTY:troupe,INTERFACE_COMPILE_OPTIONS>, >")
  endif()
  set(pc_library ${target})
  configure_file("${PROJECT_SOURCE_DIR}/cmake/troupe.pc.in"
      "${PROJECT_BINARY_DIR}/package/${pc_name}.pc.in" @ONLY)
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/package/${pc_name}.pc"
      INPUT "${PROJECT_BINARY_DIR}/package/${pc_name}.pc.in" TARGET troupe)
  install(FILES "${PROJECT_BINARY_DIR}/package/${pc_name}.pc"
      DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()

install(TARGETS troupe_all EXPORT troupe_targets)
install(EXPORT troupe_targets NAMESPACE troupe:: DESTINATION "${package_dir}"
    FILE troupe-targets.cmake)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/troupe-config.cmake.in"
    "${PROJECT_BINARY_DIR}/package/troupe-config.cmake" INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/troupe-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/troupe-config.cmake"
    "${PROJECT_BINARY_DIR}/package/troupe-config-version.cmake" DESTINATION "${package_dir}")
