#!/usr/bin/env bash
# Installs this build to a prefix and builds a separate project against it.
# Usage: check.sh cmake|pkg_config|subproject
#   cmake       find_package(troupe), from a prefix that was moved after the installation
#   pkg_config  the compiler called by hand with what pkg-config says
#   subproject  add_subdirectory of the sources, with nothing of ours but the library built
set -euo pipefail

how=${1:?usage: check.sh cmake|pkg_config|subproject}
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

case $how in
  cmake)
    install_and_move
    build_with_cmake -DTROUPE_AS=package -DCMAKE_PREFIX_PATH="$work/prefix"
    expect_answer "$work/build/consumer"
    ;;
  pkg_config)
    install_and_move
    PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name troupe.pc)")
    export PKG_CONFIG_PATH
    # All components, as troupe.hpp includes the lot; --static, for they are archives.
    mapfile -t modules < <(cd "$PKG_CONFIG_PATH" && ls ./*.pc | sed 's,^\./,,; s,\.pc$,,')
    read -ra cflags < <(pkg-config --cflags "${modules[@]}")
    read -ra libs < <(pkg-config --libs --static "${modules[@]}")
    "$compiler" -std=c++23 -O1 "${cflags[@]}" "$consumer/main.cpp" -o "$work/consumer" "${libs[@]}"
    expect_answer "$work/consumer"
    ;;
  subproject)
    build_with_cmake -DTROUPE_AS=subproject -DTROUPE_SOURCE_DIR="$TROUPE_SOURCE_DIR" \
      -DCMAKE_CXX_COMPILER_LAUNCHER="$(launcher=${TROUPE_CXX% *}; [ "$launcher" = "$TROUPE_CXX" ] || echo "$launcher")"
    expect_answer "$work/build/consumer"
    [ -z "$(find "$work/build" -name 'test_*' -o -name 'example_*')" ] || fail "a subproject built our tests"
    ;;
  *) fail "unknown way '$how'" ;;
esac
echo "package: $how works"
