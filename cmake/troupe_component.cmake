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
    set_property(GLOBAL APPEND PROPERTY troupe_left_out troupe::${name})
    return()
  endif()
  foreach(module IN LISTS arg_PKG)
    find_package(PkgConfig)
    if(PkgConfig_FOUND)
      pkg_check_modules(${module} QUIET IMPORTED_TARGET GLOBAL ${module})
    endif()
    if(NOT ${module}_FOUND)
      message(STATUS "troupe: the component ${name} is left out: pkg-config knows no ${module}")
      set_property(GLOBAL APPEND PROPERTY troupe_left_out troupe::${name})
      return()
    endif()
  endforeach()
  set(foreign)
  foreach(library IN LISTS arg_SOURCE_OF)
    find_path(${library}_HEADERS ${library}.h PATH_SUFFIXES share/include/${library} include/${library} NO_CACHE)
    find_path(${library}_SOURCES ${library}.c PATH_SUFFIXES share/${library} NO_CACHE)
    if(NOT ${library}_HEADERS OR NOT ${library}_SOURCES)
      message(STATUS "troupe: the component ${name} is left out: there are no sources of ${library}")
      set_property(GLOBAL APPEND PROPERTY troupe_left_out troupe::${name})
      return()
    endif()
    file(GLOB found "${${library}_SOURCES}/*.c")
    list(APPEND foreign ${found})
  endforeach()
  foreach(link IN LISTS arg_LINK)
    get_property(left_out GLOBAL PROPERTY troupe_left_out)
    if(link IN_LIST left_out)
      message(STATUS "troupe: the component ${name} is left out with ${link}")
      set_property(GLOBAL APPEND PROPERTY troupe_left_out troupe::${name})
      return()
    endif()
  endforeach()
  if(NOT sources)
    # An archive needs one object; a component of headers alone has none.
    set(sources "${PROJECT_BINARY_DIR}/${name}_headers_only.cpp")
    if(NOT EXISTS "${sources}")
      file(WRITE "${sources}" "")
    endif()
  endif()

  set(target troupe_${name})
  if(name STREQUAL "troupe")
    set(target troupe)
  endif()
  add_library(${target} STATIC ${sources})
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
    target_compile_definitions(${target} PRIVATE TROUPE_HAS_${upper}=${has})
  endforeach()
  foreach(module IN LISTS arg_PKG)
    target_link_libraries(${target} PRIVATE PkgConfig::${module})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY troupe_components ${name})
  set_property(GLOBAL PROPERTY troupe_component_${name}_links ${linked})
  set_property(GLOBAL PROPERTY troupe_component_${name}_pkg ${arg_PKG})
endfunction()

# troupe_check_layers(): stops when a folder of src/ belongs to no component, for its files would
# silently be built by nobody.
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
