# Compiler flags. What a consumer must share with the library (the sanitizer, TROUPE_PLAIN_BLOCKS, which
# changes inline functions in public headers) is PUBLIC on the core target and so travels with it, and so is
# the language that the headers need; the warnings are private, because other people's code is not ours to
# judge. The library itself is C++23, which its exported names do not show.

# troupe_public_flags(TARGET): what the library and its consumers must agree on.
function(troupe_public_flags target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_definitions(${target} PUBLIC TROUPE_CHECKED=${TROUPE_CHECKED_VALUE}
      TROUPE_PLAIN_BLOCKS=$<STREQUAL:${TROUPE_SANITIZE},address>
      TROUPE_SANITIZED_THREAD=$<STREQUAL:${TROUPE_SANITIZE},thread>)
  if(TROUPE_SANITIZE STREQUAL "address")
    set(flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # The tests' own code may do without those that are asked at each access (TROUPE_BARE_TESTS): what they would find
    # mostly faults anyway.
    set(less $<$<BOOL:$<TARGET_PROPERTY:TROUPE_BARE>>:-fno-sanitize=null,alignment,vptr,function>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # GCC 12 asks the flags of the addition that gives a thread-local's address whether that is null, and the linker
      # turns it into an instruction that sets none.
      list(APPEND flags -fno-sanitize=null)
    endif()
  elseif(TROUPE_SANITIZE STREQUAL "thread")
    set(flags -fsanitize=thread -fno-omit-frame-pointer)
  elseif(TROUPE_SANITIZE)
    message(FATAL_ERROR "TROUPE_SANITIZE is '${TROUPE_SANITIZE}': it may be address, thread or empty")
  endif()
  target_compile_options(${target} PUBLIC ${flags} ${less})
  target_link_options(${target} PUBLIC ${flags})
endfunction()

# troupe_private_flags(TARGET): for everything of ours, the library, tests and examples alike.
function(troupe_private_flags target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_features(${target} PRIVATE cxx_std_23)
  target_compile_options(${target} PRIVATE
      -Wall -Wextra -Wpedantic -Wconversion -Wold-style-cast -Wcast-align -Wcast-qual
      -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi -Wundef
      $<$<BOOL:${TROUPE_WERROR}>:-Werror>
      $<$<BOOL:${TROUPE_NATIVE}>:-march=native>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE
        -Wshadow=local -Wduplicated-cond -Wlogical-op
        # These three misfire in GCC 12: -Wrestrict inside std::string at -O2 and above,
        # -Wmaybe-uninitialized and -Wdangling-pointer in inlined std::optional and coroutines.
        -Wno-restrict -Wno-maybe-uninitialized -Wno-dangling-pointer)
    if(TROUPE_SANITIZE STREQUAL "thread")
      # GCC's thread sanitizer does not model fences; the library must not rely on them there.
      target_compile_options(${target} PRIVATE -Wno-tsan)
    endif()
  else()
    target_compile_options(${target} PRIVATE -Wimplicit-fallthrough -Wshadow)
  endif()
  # Builds for tests have the same objects in each checkout, for the compiler cache (troupe_options.cmake).
  if(TROUPE_PRECOMPILE)
    target_compile_options(${target} PRIVATE "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=./")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      target_compile_options(${target} PRIVATE -fdebug-compilation-dir=.)
    else()
      # A unit takes less than this many KiB; g++ looks for garbage from 128 MiB on, which is a seventh of its time.
      target_compile_options(${target} PRIVATE "SHELL:--param ggc-min-heapsize=786432")
    endif()
  endif()
endfunction()
