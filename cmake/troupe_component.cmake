# Components: one library target for a set of layers (the folders of src/ and include/troupe/).

# troupe_component(NAME LAYERS folder... [LINK target...] [PKG module...])
#   Makes the static library of these folders of src/, with the alias troupe::NAME. The one named
#   `troupe` is the core and carries the public flags. LINK is public. PKG names pkg-config modules
#   without which it is left out, and what stands on it; they are private, and the installed package finds them again.
#   SOURCE_OF names a library that Debian has as C sources (share/NAME/, share/include/NAME/), which become a part of it.
#   MAY_USE names pkg-config modules that are used when they are there: then the sources see TROUPE_HAS_<MODULE>=1, else 0.
#   A component with neither sources nor public headers is not made: its layer is not written yet.
function(troupe_component name)
  cmake_parse_arguments(arg "" "" "LAYERS;LINK;PKG;MAY_USE;SOURCE_OF" ${ARGN})
  set_property(GLOBAL APPEND PROPERTY troupe_layers ${arg_LAYERS})

  set(patterns)
  set(header_patterns)
  foreach(layer IN LISTS arg_LAYERS)
    list(APPEND patterns "${PROJECT_SOURCE_DIR}/src/${layer}/*.cpp")
    list(APPEND header_patterns "${PROJECT_SOURCE_DIR}/include/troupe/${layer}/*.h*")
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  list(FILTER sources EXCLUDE REGEX "\\.(test|model)\\.cpp$")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${header_patterns})
  if(NOT sources AND NOT headers AND NOT name STREQUAL "troupe")
    return()
  endif()
  if("troupe::${name}" IN_LIST TROUPE_WITHOUT)
    troupe_leave_out(${name} "TROUPE_WITHOUT names it")
    return()
  endif()
  foreach(module IN LISTS arg_PKG)
    if(module STREQUAL "date-tz")
      troupe_find_date_tz()
    else()
      find_package(PkgConfig)
      if(PkgConfig_FOUND)
        pkg_check_modules(${module} QUIET IMPORTED_TARGET GLOBAL ${module})
      endif()
    endif()
    if(NOT ${module}_FOUND)
      troupe_debian_package(${module} package)
      troupe_leave_out(${name} "pkg-config knows no ${module} (Debian: ${package})")
      return()
    endif()
  endforeach()
  set(foreign)
  foreach(library IN LISTS arg_SOURCE_OF)
    find_path(${library}_HEADERS ${library}.h PATH_SUFFIXES share/include/${library} include/${library} NO_CACHE)
    find_path(${library}_SOURCES ${library}.c PATH_SUFFIXES share/${library} NO_CACHE)
    if(NOT ${library}_HEADERS OR NOT ${library}_SOURCES)
      troupe_debian_package(${library} package)
      troupe_leave_out(${name} "there are no sources of ${library} (Debian: ${package})")
      return()
    endif()
    file(GLOB found "${${library}_SOURCES}/*.c")
    list(APPEND foreign ${found})
  endforeach()
  foreach(link IN LISTS arg_LINK)
    get_property(left_out GLOBAL PROPERTY troupe_left_out)
    if(link IN_LIST left_out)
      string(REPLACE "troupe::" "" lower "${link}")
      get_property(why GLOBAL PROPERTY troupe_left_out_${lower})
      troupe_leave_out(${name} "it needs the component ${lower}: ${why}")
      return()
    endif()
  endforeach()
  set(target troupe_${name})
  if(name STREQUAL "troupe")
    set(target troupe)
  endif()
  add_library(${target} STATIC ${sources} "${PROJECT_BINARY_DIR}/fingerprint.cpp")
  set_source_files_properties("${PROJECT_BINARY_DIR}/fingerprint.cpp" PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  add_dependencies(${target} troupe_fingerprint)
  add_library(troupe::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target}
      PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
      PRIVATE "${PROJECT_SOURCE_DIR}/src")
  if(name STREQUAL "troupe")
    troupe_public_flags(${target})
  endif()
  troupe_private_flags(${target})
  if(foreign)
    add_library(${target}_foreign OBJECT ${foreign})
    set_target_properties(${target}_foreign PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_foreign>)
    foreach(library IN LISTS arg_SOURCE_OF)
      # llhttp refuses more then; the header is to be read the same way by both.
      string(TOUPPER ${library} upper)
      target_compile_definitions(${target}_foreign PRIVATE ${upper}_STRICT_MODE=1)
      target_compile_definitions(${target} PRIVATE ${upper}_STRICT_MODE=1)
      target_include_directories(${target}_foreign PRIVATE "${${library}_HEADERS}")
      target_include_directories(${target} SYSTEM PRIVATE "${${library}_HEADERS}")
    endforeach()
  endif()

  list(LENGTH sources count)
  if(TROUPE_PRECOMPILE AND count GREATER 10)
    target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp>")
  endif()

  set(linked)
  foreach(link IN LISTS arg_LINK)
    # A lower component whose layer is not written yet is left out with it.
    if(TARGET ${link})
      target_link_libraries(${target} PUBLIC ${link})
      list(APPEND linked ${link})
    endif()
  endforeach()
  foreach(module IN LISTS arg_MAY_USE)
    find_package(PkgConfig)
    set(has 0)
    if(PkgConfig_FOUND)
      pkg_check_modules(${module} QUIET IMPORTED_TARGET GLOBAL ${module})
      if(${module}_FOUND)
        set(has 1)
        list(APPEND arg_PKG ${module})
      endif()
    endif()
    string(TOUPPER ${module} upper)
    # Only for those that ask: the others are the same with and without it, for a compiler cache
    # too.
    foreach(source IN LISTS sources)
      file(STRINGS "${source}" asks REGEX "TROUPE_HAS_${upper}" LIMIT_COUNT 1)
      if(asks)
        set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_DEFINITIONS TROUPE_HAS_${upper}=${has})
        set_source_files_properties("${source}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
  endforeach()
  foreach(module IN LISTS arg_PKG)
    target_link_libraries(${target} PRIVATE PkgConfig::${module})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY troupe_components ${name})
  set_property(GLOBAL PROPERTY troupe_component_${name}_links ${linked})
  set_property(GLOBAL PROPERTY troupe_component_${name}_pkg ${arg_PKG})
endfunction()

# troupe_find_date_tz(): the one library without a file for pkg-config. It becomes what
# pkg_check_modules would have made of it; troupe-config.cmake.in and troupe_install.cmake do the same.
function(troupe_find_date_tz)
  find_path(date-tz_HEADERS date/tz.h NO_CACHE)
  find_library(date-tz_LIBRARY date-tz NO_CACHE)
  if(NOT date-tz_HEADERS OR NOT date-tz_LIBRARY)
    set(date-tz_FOUND FALSE PARENT_SCOPE)
    return()
  endif()
  if(NOT TARGET PkgConfig::date-tz)
    add_library(PkgConfig::date-tz INTERFACE IMPORTED GLOBAL)
    target_link_libraries(PkgConfig::date-tz INTERFACE "${date-tz_LIBRARY}")
    target_include_directories(PkgConfig::date-tz SYSTEM INTERFACE "${date-tz_HEADERS}")
    # As Debian builds it: the zones are the files of the system.
    target_compile_definitions(PkgConfig::date-tz INTERFACE USE_OS_TZDB=1 ONLY_C_LOCALE=1)
  endif()
  set(date-tz_LDFLAGS -ldate-tz CACHE INTERNAL "")
  set(date-tz_FOUND TRUE PARENT_SCOPE)
endfunction()

# troupe_leave_out(NAME REASON): the component is not built, and installed packages can say why.
function(troupe_leave_out name reason)
  message(STATUS "troupe: the component ${name} is left out: ${reason}")
  set_property(GLOBAL APPEND PROPERTY troupe_left_out troupe::${name})
  set_property(GLOBAL PROPERTY troupe_left_out_${name} "${reason}")
endfunction()

# troupe_other_name(NAME): troupe::NAME for what is a part of the core; installed, it is a component
# as others.
function(troupe_other_name name)
  add_library(troupe_${name} INTERFACE)
  add_library(troupe::${name} ALIAS troupe_${name})
  set_target_properties(troupe_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(troupe_${name} INTERFACE troupe::troupe)
  set_property(GLOBAL APPEND PROPERTY troupe_other_names ${name})
endfunction()

# troupe_debian_package(MODULE OUT): the package of Debian that has a pkg-config module, or sources,
# that we use.
function(troupe_debian_package module out)
  set(package_of_liburing liburing-dev)
  set(package_of_libcares libc-ares-dev)
  set(package_of_date-tz libhowardhinnant-date-dev)
  set(package_of_openssl libssl-dev)
  set(package_of_llhttp node-llhttp)
  set(package_of_zlib zlib1g-dev)
  if(NOT DEFINED package_of_${module})
    message(FATAL_ERROR "cmake/troupe_component.cmake does not know the Debian package of ${module}")
  endif()
  set(${out} ${package_of_${module}} PARENT_SCOPE)
endfunction()

# troupe_check_layers(): stops when a folder of src/ belongs to no component, for no target
# would build its files, and nothing would say so.
function(troupe_check_layers)
  get_property(layers GLOBAL PROPERTY troupe_layers)
  file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE "${PROJECT_SOURCE_DIR}/src"
      "${PROJECT_SOURCE_DIR}/src/*")
  foreach(folder IN LISTS folders)
    if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/src/${folder}" AND NOT folder IN_LIST layers)
      message(FATAL_ERROR "src/${folder} belongs to no component: name it in CMakeLists.txt")
    endif()
  endforeach()
endfunction()

# troupe_everything(): the target troupe::all, every component at once, for tests, examples and
# programs started with ./run; and how to use it without CMake, as two response files
# (`c++ @use/compile.rsp program.cpp @use/link.rsp`) that follow the build's own flags.
function(troupe_everything)
  get_property(components GLOBAL PROPERTY troupe_components)
  add_library(troupe_all INTERFACE)
  add_library(troupe::all ALIAS troupe_all)
  set_target_properties(troupe_all PROPERTIES EXPORT_NAME all)
  set(archives)
  set(others)
  foreach(name IN LISTS components)
    target_link_libraries(troupe_all INTERFACE troupe::${name})
    list(APPEND archives "$<TARGET_FILE:troupe::${name}>")
    get_property(pkg GLOBAL PROPERTY troupe_component_${name}_pkg)
    foreach(module IN LISTS pkg)
      list(APPEND others ${${module}_LDFLAGS})
    endforeach()
  endforeach()

  set(options "$<TARGET_PROPERTY:troupe,INTERFACE_COMPILE_OPTIONS>")
  set(definitions "$<TARGET_PROPERTY:troupe,INTERFACE_COMPILE_DEFINITIONS>")
  string(CONCAT compile
      "-std=c++23\n"
      "\"-I${PROJECT_SOURCE_DIR}/include\"\n"
      "-pthread\n"
      "-D$<JOIN:${definitions},\n-D>\n"
      "$<JOIN:${options},\n>\n")
  string(CONCAT link
      "-pthread\n"
      "$<JOIN:${options},\n>\n"
      "-Wl,--start-group\n\"$<JOIN:${archives},\"\n\">\"\n-Wl,--end-group\n"
      "$<JOIN:${others},\n>\n")
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/use/compile.rsp" CONTENT "${compile}")
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/use/link.rsp" CONTENT "${link}")
endfunction()
