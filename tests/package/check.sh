#!/usr/bin/env bash
# Installs this build to a prefix and builds a separate project against it.
# Usage: check.sh cmake|pkg_config|sanitized|warnings|first_program|subproject|embedded|supplied|multi_config|release
#   cmake       find_package(troupe), from a prefix that was moved after the installation
#   pkg_config  the compiler called by hand with what pkg-config says
#   sanitized   the same, but a part of the program is compiled with AddressSanitizer
#   warnings    every public header, and what it makes of a program, under the strictest flags that people use, in
#               C++20 and C++23
#   first_program  what the compiler needs for hello.cpp
#   subproject  add_subdirectory of the sources, with nothing of ours but the library built
#   embedded    FetchContent of the sources: what is built by default, exported, unchecked and taken from the project
#   supplied    the same, where the project has targets for all libraries that troupe needs
#   multi_config  a generator with several configurations: which of them are checked
#   release     scripts/release.sh: the tarball and the notes of the last commit
set -euo pipefail

how=${1:?usage: see check.sh}
consumer=$TROUPE_SOURCE_DIR/tests/package/consumer
work=$TROUPE_BINARY_DIR/package_test/$how
compiler=${TROUPE_CXX##* }
rm -rf "$work"
mkdir -p "$work"

fail() {
  echo "package: $*" >&2
  exit 1
}

install_and_move() {
  cmake --install "$TROUPE_BINARY_DIR" --prefix "$work/first" > "$work/install.log"
  mv "$work/first" "$work/prefix"
  if grep -rIlF -e "$TROUPE_BINARY_DIR" -e "$work/first" "$work/prefix" > "$work/leaks"; then
    fail "installed files name the place where they were made: $(cat "$work/leaks")"
  fi
  # Every public header is installed, and nothing else under include/.
  diff <(cd "$TROUPE_SOURCE_DIR/include" && find . -name '*.h*' | sort) \
       <(cd "$work/prefix/include" && find . -type f | sort) || fail "the installed headers differ"
}

# GDB's commands are where the guide says, and load from there.
expect_commands_of_gdb() {
  local script=$work/prefix/share/troupe/gdb/troupe_gdb.py
  [ -f "$script" ] || fail "$script is not installed"
  command -v gdb > /dev/null || { echo "package: partly skipped: needs gdb"; return 0; }
  local said
  said=$(gdb -nx -batch -ex "source $script" -ex 'help troupe backtrace' 2>&1 || true)
  [[ $said == *"Show the suspended turn"* ]] || fail "$script does not load: $said"
}

# The tool's texts are where man and the shells look for them.
expect_texts_of_the_tool() {
  [ -f "$work/prefix/bin/troupe" ] || return 0
  local file
  for file in man/man1/troupe.1 bash-completion/completions/troupe zsh/site-functions/_troupe; do
    [ -s "$work/prefix/share/$file" ] || fail "share/$file is not installed"
  done
}

expect_answer() {
  local answer
  answer=$("$1") || fail "the consumer ended with status $?"
  [ "$answer" = 42 ] || fail "the consumer printed '$answer', not 42"
}

build_with_cmake() {
  cmake -S "$consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_COMPILER="$compiler" "$@" > "$work/configure.log" || { cat "$work/configure.log"; return 1; }
  cmake --build "$work/build" > "$work/build.log" || { cat "$work/build.log"; return 1; }
}

# What a program is compiled with, in flags.
ask_pkg_config() {
  PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name troupe.pc)")
  export PKG_CONFIG_PATH
  # All components, as troupe.hpp includes the lot; --static, for they are archives.
  local modules
  mapfile -t modules < <(cd "$PKG_CONFIG_PATH" && ls ./*.pc | sed 's,^\./,,; s,\.pc$,,')
  read -ra cflags < <(pkg-config --cflags "${modules[@]}")
  read -ra libs < <(pkg-config --libs --static "${modules[@]}")
}

# The oldest compilers of programs that docs/platforms.md names, and the newest, know each word of troupe.pc.
expect_known_flags() {
  local cxx words
  read -ra words < <(pkg-config --cflags troupe)
  for cxx in g++ clang++-16 clang++-22; do
    command -v "$cxx" > /dev/null || { echo "package: partly skipped: needs $cxx"; continue; }
    "$cxx" "${words[@]}" -Werror -fsyntax-only "$consumer/main.cpp" || fail "$cxx refuses: ${words[*]}"
  done
}

# A part of it alone is compiled with AddressSanitizer, and the library is not.
expect_answer_when_sanitized() {
  local cxx=$1 object=$work/$1
  echo 'int main() {}' > "$work/probe.cpp"
  if ! "$cxx" -fsanitize=address "$work/probe.cpp" -o "$work/probe" 2> "$work/probe.log"; then return; fi
  tried+=("$cxx")
  "$cxx" -O1 "${cflags[@]}" -fsanitize=address -c "$consumer/main.cpp" -o "$object.main.o"
  "$cxx" -O1 "${cflags[@]}" -c "$consumer/part.cpp" -o "$object.part.o"
  # Of an inline function that both have the linker takes the first.
  "$cxx" -fsanitize=address "$object".{main,part}.o -o "$object.program" "${libs[@]}"
  expect_answer "$object.program"
  "$cxx" -fsanitize=address "$object".{part,main}.o -o "$object.program" "${libs[@]}"
  expect_answer "$object.program"
  # Who asks for blocks that this library does not make is told so.
  if "$cxx" "${cflags[@]}" -UTROUPE_PLAIN_BLOCKS -DTROUPE_PLAIN_BLOCKS=1 "$consumer"/*.cpp -o "$object.plain" \
      "${libs[@]}" 2> "$object.log"; then
    fail "a program that frees otherwise than the library allocates was linked"
  fi
  grep -q plain_blocks "$object.log" || fail "without saying why: $(cat "$object.log")"
}

# Not as headers of the system, in which warnings are left out; some that our own build does without.
expect_no_warnings() {
  local cxx=$1 language=$2
  local without='^$'  # headers that need a package which is not there
  if [ ! -f /usr/include/asio.hpp ]; then without='/asio(/(executor|library|token))?\.hpp$'; fi
  { (cd "$TROUPE_SOURCE_DIR/include" && find . -name '*.hpp' | grep -vE "$without" | sort | sed 's,^\./\(.*\),#include <\1>,')
    cat "$consumer/main.cpp"; } > "$work/all.cpp"
  "$cxx" "-std=$language" -I"$TROUPE_SOURCE_DIR/include" -I"$consumer" -DTROUPE_PLAIN_BLOCKS=0 -fsyntax-only -Werror \
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor "$work/all.cpp" \
    2> "$work/$cxx.log" || fail "$cxx warns of a public header in $language: $(head -n 20 "$work/$cxx.log")"
}

# The first program that a user compiles. The memory of the compiler tells what it has read and made,
# on every machine alike; it needs 192 MB.
expect_small_first_program() {
  local kib most=225000
  kib=$(python3 - "$compiler" -std=c++23 -O2 -I"$TROUPE_SOURCE_DIR/include" -c \
    "$TROUPE_SOURCE_DIR/examples/hello.cpp" -o "$work/hello.o" << 'PY'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
PY
  )
  [ "$kib" -le "$most" ] || fail "the compiler takes $kib KiB for hello.cpp, which is more than $most"
}

# The values of TROUPE_CHECKED with which the sources of a build are compiled.
checked_in() { grep -ho 'TROUPE_CHECKED=[0-9]' "$1" | sort -u | tr '\n' ' '; }

# Configures only: what would be built is read from the build files.
configure_embedding() {
  cmake -S "$TROUPE_SOURCE_DIR/tests/package/embedding" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_CXX_COMPILER="$compiler" -DTROUPE_SOURCE_DIR="$TROUPE_SOURCE_DIR" "$@" > "$work/configure.log" 2>&1 \
    || fail "an embedding project is not configured ($*): $(tail -n 20 "$work/configure.log")"
}

expect_embedding() {
  configure_embedding
  local by_default of_http file
  by_default=$(ninja -C "$work/build" -t commands all)
  # A source is compiled alone, or in the unit of its folder.
  grep -qE "/src/actor/turn/turn.cpp|/unity_actor_turn_cxx" <<< "$by_default" || fail "the core is not built for the library that links it"
  if grep -qE "/src/http/|/unity_http_" <<< "$by_default"; then fail "a component is built that nothing links"; fi
  [ "$(checked_in "$work/build/build.ninja")" = "TROUPE_CHECKED=0 " ] || fail "CMAKE_BUILD_TYPE=None is checked"
  of_http=$(ninja -C "$work/build" -t commands troupe_http)
  grep -q "supplied_llhttp" <<< "$of_http" || fail "the target llhttp::llhttp of the project is not used"
  if grep -q "share/llhttp" <<< "$of_http"; then fail "Debian's llhttp is built, though the project supplies it"; fi
  file=$(find "$work/build" -name troupe.pc)
  grep -q -- "-DTROUPE_CHECKED=0" "$file" || fail "troupe.pc of CMAKE_BUILD_TYPE=None: $(cat "$file")"
  file=$(find "$work/build" -name mine_targets.cmake)
  grep -q 'INTERFACE_LINK_LIBRARIES "troupe::troupe"' "$file" || fail "the exported library links no troupe: $(cat "$file")"
}

# What CMakeLists.txt names behind these words, such as the modules of pkg-config that components need.
named_behind() {
  sed -n "s/^ *//; /^troupe_component(/,/)/p" "$TROUPE_SOURCE_DIR/CMakeLists.txt" | tr '()' '  ' | tr -s ' \n' '\n\n' |
    awk -v "words=$1" '/^[A-Z_]+$/ || /^troupe_component$/ { in_list = index(" " words " ", " " $0 " "); next } in_list' | sort -u
}

# Without pkg-config's files each library comes from the project, as a target of its own build or of a package manager.
expect_supplied() {
  local modules components imported commands module
  modules=$(named_behind "PKG MAY_USE")
  components=$(named_behind troupe_component | grep -vx troupe | sed 's/^/troupe_/')
  [ "$(wc -l <<< "$modules")" -ge 12 ] && [ "$(wc -l <<< "$components")" -ge 13 ] ||
    fail "CMakeLists.txt is not understood: $modules $components"
  mkdir -p "$work/no_modules"
  export PKG_CONFIG_LIBDIR=$work/no_modules
  for imported in OFF ON; do
    rm -rf "$work/build"
    configure_embedding -DIMPORTED=$imported "-DSUPPLIED=$(paste -sd ';' <<< "$modules")"
    if grep "left out" "$work/configure.log"; then fail "a component is left out, though the project supplies all"; fi
    # shellcheck disable=SC2086
    commands=$(ninja -C "$work/build" -t commands $components)
    for module in $modules llhttp; do
      grep -q -- "-Dsupplied_${module//-/_}" <<< "$commands" || fail "the target of $module is not used (imported: $imported)"
    done
  done
}

expect_configurations() {
  cmake -S "$TROUPE_SOURCE_DIR" -B "$work/build" -G "Ninja Multi-Config" -DTROUPE_TESTS=OFF \
    -DCMAKE_CXX_COMPILER="$compiler" > "$work/configure.log" 2>&1 || fail "$(tail -n 20 "$work/configure.log")"
  local one
  for one in Release=0 Debug=1 RelWithDebInfo=1; do
    [ "$(checked_in "$work/build/CMakeFiles/impl-${one%=*}.ninja")" = "TROUPE_CHECKED=${one#*=} " ] || fail "$one"
    grep -q -- "-DTROUPE_CHECKED=${one#*=}" "$work/build/use/${one%=*}/compile.rsp" || fail "compile.rsp of $one"
  done
}

# In a clone, for the sources here may have changes that are not committed.
expect_release() {
  git -C "$TROUPE_SOURCE_DIR" rev-parse > /dev/null 2>&1 ||
    { echo "package: skipped: needs the sources in git"; exit 77; }
  git clone -q "$TROUPE_SOURCE_DIR" "$work/clone"
  local version name time
  for time in first second; do
    "$work/clone/scripts/release.sh" "$work/$time" > "$work/$time.log" 2>&1 || fail "$(cat "$work/$time.log")"
  done
  version=$(sed -n 's/^ *VERSION \([0-9.]*\)$/\1/p' "$work/clone/CMakeLists.txt" | head -n 1)
  name=troupe-$version
  cmp "$work"/{first,second}/"$name.tar.xz" || fail "the same commit gives another tarball"
  tar -tf "$work/first/$name.tar.xz" > "$work/files"
  grep -qx "$name/CMakeLists.txt" "$work/files" || fail "the tarball has no CMakeLists.txt"
  if grep -q "^$name/debian" "$work/files"; then fail "the packaging is in the tarball of the sources"; fi
  [ "$(head -n 1 "$work/first/$name.md")" = "# troupe $version" ] || fail "the notes have another title"
  if grep -q '^## ' "$work/first/$name.md"; then fail "the notes are of several versions"; fi
  expect_no_release "changes that are not committed" 'echo >> README.md'
  expect_no_release "debian/changelog has version" \
    'sed -i "1s/(.*)/(0.0.1-1)/" debian/changelog && git -c user.name=a -c user.email=a@b commit -qam another'
  expect_no_release "the first section of CHANGELOG.md is '$version', not" \
    'sed -i "s/^## $version (.*)/## $version/" CHANGELOG.md && git -c user.name=a -c user.email=a@b commit -qam undated'
}

# After the change to the clone it refuses, and says why.
expect_no_release() {
  (cd "$work/clone" && git checkout -q . && eval "$2")
  if "$work/clone/scripts/release.sh" "$work/refused" > "$work/refused.log" 2>&1; then fail "a release in spite of: $1"; fi
  grep -q "$1" "$work/refused.log" || fail "it did not say '$1': $(cat "$work/refused.log")"
}

case $how in
  cmake)
    install_and_move
    expect_commands_of_gdb
    expect_texts_of_the_tool
    build_with_cmake -DTROUPE_AS=package -DCMAKE_PREFIX_PATH="$work/prefix"
    expect_answer "$work/build/consumer"
    if [ -f "$work/build/consumer_asio" ]; then expect_answer "$work/build/consumer_asio"; fi
    if [ -f "$(find "$work/prefix" -name 'libtroupe_cron.a')" ]; then
      rm -rf "$work/build"
      build_with_cmake -DTROUPE_AS=package "-DTROUPE_COMPONENTS=asio;cron" -DCMAKE_PREFIX_PATH="$work/prefix"
      expect_answer "$work/build/consumer_cron"
    fi
    if cmake -S "$consumer" -B "$work/bogus" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DTROUPE_AS=package \
        -DTROUPE_COMPONENTS=bogus -DCMAKE_PREFIX_PATH="$work/prefix" > "$work/bogus.log" 2>&1; then
      fail "a component that there is not was found"
    fi
    grep -q "no component 'bogus'" "$work/bogus.log" || fail "it did not say which component lacks: $(cat "$work/bogus.log")"
    ;;
  pkg_config)
    install_and_move
    ask_pkg_config
    expect_known_flags
    "$compiler" "${cflags[@]}" "$consumer"/*.cpp -o "$work/consumer" "${libs[@]}"
    expect_answer "$work/consumer"
    if [ -f /usr/include/asio.hpp ]; then
      read -ra all < <(pkg-config --cflags --libs troupe-asio)
      "$compiler" "$consumer"/asio/*.cpp "${all[@]}" -o "$work/consumer_asio"
      expect_answer "$work/consumer_asio"
    fi
    if pkg-config --exists troupe-cron; then
      read -ra all < <(pkg-config --cflags --libs troupe-cron)
      "$compiler" "$consumer"/cron/*.cpp "${all[@]}" -o "$work/consumer_cron"
      expect_answer "$work/consumer_cron"
    fi
    read -ra all < <(pkg-config --cflags --libs troupe)
    "$compiler" "$consumer"/*.cpp "${all[@]}" -o "$work/consumer"
    expect_answer "$work/consumer"
    ;;
  embedded) expect_embedding ;;
  supplied) expect_supplied ;;
  multi_config) expect_configurations ;;
  release) expect_release ;;
  sanitized)
    install_and_move
    ask_pkg_config
    tried=()
    for cxx in g++ clang++-22; do expect_answer_when_sanitized "$cxx"; done
    if [ ${#tried[@]} -eq 0 ]; then
      echo "package: skipped: needs AddressSanitizer: neither g++ nor clang++-22 has it"
      exit 77
    fi
    ;;
  warnings)
    for cxx in g++ clang++-22; do
      if command -v "$cxx" > /dev/null; then
        for language in c++20 c++23; do expect_no_warnings "$cxx" "$language"; done
      else
        echo "package: partly skipped: needs $cxx"
      fi
    done
    ;;
  first_program)
    if [[ $("$compiler" --version) != *"Free Software Foundation"* ]]; then
      echo "package: skipped: needs a build with g++: the memory of this compiler is not bounded"
      exit 77
    fi
    expect_small_first_program
    ;;
  subproject)
    # Warnings as errors, as in our own build: the compiler cache knows the objects then.
    build_with_cmake -DTROUPE_AS=subproject -DTROUPE_SOURCE_DIR="$TROUPE_SOURCE_DIR" -DTROUPE_WERROR=ON \
      -DCMAKE_CXX_COMPILER_LAUNCHER="$(launcher=${TROUPE_CXX% *}; [ "$launcher" = "$TROUPE_CXX" ] || echo "${launcher// /;}")"
    expect_answer "$work/build/consumer"
    [ -z "$(find "$work/build" -name 'test_*' -o -name 'example_*')" ] || fail "a subproject built our tests"
    ;;
  *) fail "unknown way '$how'" ;;
esac
echo "package: $how works"
