# The standard headers, read once for the whole library (TROUPE_PRECOMPILE): half of the time that g++ takes for it.

# troupe_precompile(TARGET): the target's C++ sources see the headers of cmake/precompiled.hpp in compiled form.
# g++ finds them by the name that is given to it, so that builds in several folders can use the form that one of them
# has made: the environment's TROUPE_PRECOMPILED_IN names its folder. A compiler cache then knows their objects.
function(troupe_precompile target)
  if(NOT TROUPE_PRECOMPILE)
    return()
  endif()
  set(folder "$ENV{TROUPE_PRECOMPILED_IN}")
  if(NOT folder OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(folder "${CMAKE_CURRENT_BINARY_DIR}")
    troupe_precompiled_target()
    get_target_property(sources ${target} SOURCES)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(name CMakeFiles/troupe_standard_headers.dir/cmake_pch.hxx)
    set(header "${folder}/${name}")
    if(NOT TARGET troupe_standard_headers AND NOT folder STREQUAL CMAKE_BINARY_DIR)
      # By the same name from the build's folder, which is a part of what the compiler cache knows.
      set(header "${CMAKE_BINARY_DIR}/${name}")
      file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/CMakeFiles/troupe_standard_headers.dir")
      foreach(suffix IN ITEMS "" .gch .gch.sum)
        if(EXISTS "${folder}/${name}${suffix}")
          file(CREATE_LINK "${folder}/${name}${suffix}" "${header}${suffix}" SYMBOLIC)
        endif()
      endforeach()
    endif()
    target_compile_options(${target} PRIVATE
        # GCC 12 warns of its own std::string then.
        -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
        $<$<COMPILE_LANGUAGE:CXX>:-Winvalid-pch> "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include \"${header}\">")
    if(TARGET troupe_standard_headers)
      list(FILTER sources INCLUDE REGEX "\\.cpp$")
      set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS "${header}.gch")
      # Sources that are compiled together do not take this over.
      if(TROUPE_SOURCES_TOGETHER)
        if(NOT TARGET troupe_standard_headers_read)
          add_custom_target(troupe_standard_headers_read DEPENDS "${header}.gch")
        endif()
        add_dependencies(${target} troupe_standard_headers_read)
      endif()
    endif()
  else()
    target_precompile_headers(${target} REUSE_FROM troupe_standard_headers)
  endif()
endfunction()

function(troupe_precompiled_target)
  if(TARGET troupe_standard_headers)
    return()
  endif()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/standard_headers.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// It exists for its precompiled headers.\n")
  add_library(troupe_standard_headers OBJECT EXCLUDE_FROM_ALL "${source}")
  # By no full name, for the compiler cache of another checkout.
  target_include_directories(troupe_standard_headers PRIVATE "${PROJECT_SOURCE_DIR}/cmake")
  target_precompile_headers(troupe_standard_headers PRIVATE <precompiled.hpp>)
  troupe_checksum_of_headers(troupe_standard_headers)
  troupe_public_flags(troupe_standard_headers)
  troupe_private_flags(troupe_standard_headers)
endfunction()

# troupe_checksum_of_headers(TARGET): the precompiled headers that the target makes get a checksum for the compiler cache.
function(troupe_checksum_of_headers target)
  if(CMAKE_CXX_COMPILER_LAUNCHER AND CMAKE_CXX_COMPILER_LAUNCHER MATCHES "CCACHE_PCH_EXTSUM")
    set_target_properties(${target} PROPERTIES
        CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/compile_header.sh;${PROJECT_SOURCE_DIR}")
  endif()
endfunction()

# The compiler cache does not see the names of files behind -Xclang. clang takes X.pch for X by itself.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include <PCH_HEADER>)
endif()
