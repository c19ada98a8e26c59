#!/usr/bin/env bash
# Builds the Debian packages of the working tree, offline, and looks at them.
# Usage: debian.sh packages|same|fresh
#   packages  lintian finds no fault; no package lacks a file; the shared libraries show the names that
#             abi/ keeps, and no foreign ones; tools and libraries are hardened; the pages of the documents
#             are there; pkg-config finds each module with the packages alone; debian/tests pass with them,
#             unpacked into a folder (so without root and without a network)
#   same      a second build, in another folder, gives the same bytes
#   fresh     autopkgtest installs the packages in a fresh Debian, and runs debian/tests there; it takes that Debian
#             from a mirror, and needs root
# ABI_WRITE=1 writes abi/ instead of comparing it.
# A compiler cache, if there is one, is used: then `same` is about linking and packing.
set -euo pipefail

how=${1:?usage: see debian.sh}
source=$TROUPE_SOURCE_DIR
work=$TROUPE_BINARY_DIR/package_test/debian
kept=$source/tests/package/abi
needed=(dh lintian dpkg-buildpackage curl)
# The headers that ctest's own build has precompiled are of other flags.
unset TROUPE_PRECOMPILED_IN
# debhelper gives builds an empty home, in which a compiler cache would begin anew.
if command -v ccache > /dev/null; then
  CCACHE_DIR=$(ccache --get-config cache_dir)
  export CCACHE_DIR
fi

fail() {
  echo "debian: $*" >&2
  exit 1
}

for tool in "${needed[@]}"; do
  command -v "$tool" > /dev/null || { echo "debian: skipped: needs $tool"; exit 77; }
done
command -v "git" > /dev/null && git -C "$source" rev-parse > /dev/null 2>&1 ||
  { echo "debian: skipped: needs the sources in git"; exit 77; }

sources() {
  (cd "$source" && git ls-files -z --cached --others --exclude-standard |
    xargs -0 sh -c 'for file; do [ ! -f "$file" ] || printf "%s\0" "$file"; done' _ |
    tar -c --null -T - -f -)
}

# Without debug information, which only makes it longer.
build_packages() {
  local folder=$1
  rm -rf "$folder"
  mkdir -p "$folder/troupe"
  sources | tar -x -C "$folder/troupe"
  (cd "$folder/troupe" &&
    DEB_CFLAGS_STRIP=-g DEB_CXXFLAGS_STRIP=-g DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS-}" \
      dpkg-buildpackage -b -us -uc) > "$folder/build.log" 2>&1 ||
    fail "the packages are not built: $(grep -E 'error|FAILED' "$folder/build.log" | head; tail -n 20 "$folder/build.log")"
}

# Those of an earlier way are used if the sources are still the same.
list_sources() { (cd "$source" && git ls-files --cached --others --exclude-standard) | sort; }

build_first_packages() {
  if [ -n "$(find "$work/first" -maxdepth 1 -name '*.deb' 2> /dev/null)" ] &&
    list_sources | cmp -s - "$work/first/sources" &&
    sources | tar -d -C "$work/first/troupe" -f - > /dev/null 2>&1; then return; fi
  build_packages "$work/first"
  list_sources > "$work/first/sources"
}

unpack() {
  rm -rf "$2"
  mkdir -p "$2"
  local package
  for package in "$1"/*.deb; do dpkg-deb -x "$package" "$2"; done
}

shown_by() { python3 -B "$source/tests/package/abi_names.py" "$1" | LC_ALL=C sort; }

expect_names() {
  local library name missing
  [ -z "${ABI_WRITE-}" ] || mkdir -p "$kept"
  for library in "$1"/usr/lib/*/libtroupe*.so; do
    name=$(basename "$library" .so)
    missing=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v -e '6troupe' -e '^troupe_' || true)
    [ -z "$missing" ] || fail "$name shows foreign names: $missing"
    if [ -n "${ABI_WRITE-}" ]; then shown_by "$library" > "$kept/$name.txt"; continue; fi
    [ -f "$kept/$name.txt" ] || fail "tests/package/abi has no list of $name: ABI_WRITE=1 makes it"
    missing=$(LC_ALL=C comm -13 <(shown_by "$library") "$kept/$name.txt")
    [ -z "$missing" ] || fail "$name does not show any longer (docs/stability.md): $(c++filt <<< "$missing")"
  done
}

# grep reads all of it, so that no readelf ends by a broken pipe.
expect_hardened() {
  local file
  for file in "$1"/usr/lib/*/libtroupe*.so.?.* "$1/usr/bin/troupe"; do
    readelf -dW "$file" | grep 'BIND_NOW\|Flags: NOW' > /dev/null || fail "$file is bound lazily"
    readelf -lW "$file" | grep GNU_RELRO > /dev/null || fail "$file has no read-only relocations"
    readelf -sW --dyn-syms "$file" | grep __stack_chk_fail > /dev/null || fail "$file has no stack protector"
  done
  readelf -hW "$1/usr/bin/troupe" | grep 'Type: *DYN' > /dev/null || fail "the tool is no position-independent executable"
}

expect_pages() {
  local file
  for file in index.html guide/start.html changelog.html reference/index.html words.js style.css; do
    [ -s "$1/usr/share/doc/troupe-doc/site/$file" ] || fail "troupe-doc lacks $file"
  done
}

# With the packages alone, each module of pkg-config can be used.
expect_modules() {
  local module folder
  folder=$(dirname "$(find "$1" -name troupe.pc)")
  for module in "$folder"/*.pc; do
    PKG_CONFIG_LIBDIR=$folder pkg-config --cflags --libs "$(basename "$module" .pc)" > /dev/null 2> "$work/modules.log" ||
      fail "$(basename "$module"): $(cat "$work/modules.log")"
  done
}

run_tests() {
  local test
  for test in hello http new; do
    mkdir -p "$work/tests/$test"
    AUTOPKGTEST_TMP=$work/tests/$test TROUPE_PREFIX=$1 "$source/debian/tests/$test" \
      > "$work/tests/$test.log" 2>&1 || fail "debian/tests/$test: $(tail -n 20 "$work/tests/$test.log")"
  done
}

# A Debian with nothing but a compiler, and the program apt-ftparchive and the lists of packages that autopkgtest needs.
# Without a network there is none, and the test is skipped.
make_fresh_system() {
  local mirror=${TROUPE_DEBIAN_MIRROR:-http://deb.debian.org/debian}
  curl -fsS -m 20 -o /dev/null "$mirror/dists/bookworm/InRelease" ||
    { echo "debian: skipped: needs a Debian mirror: $mirror does not answer"; exit 77; }
  rm -rf "$work/system"
  mmdebstrap --mode=root --variant=buildd --include=apt-utils --skip=cleanup/apt/lists bookworm "$work/system" "$mirror" > "$work/mmdebstrap.log" 2>&1 ||
    fail "mmdebstrap: $(tail -n 20 "$work/mmdebstrap.log")"
}

run_tests_in_fresh_system() {
  local status=0
  rm -rf "$work/autopkgtest"
  # 2: a test was skipped, as where the mirror lacks a package; that is a failure here.
  autopkgtest --no-built-binaries --output-dir "$work/autopkgtest" --timeout-factor 4 "$work"/first/*.deb "$work/first/troupe/" \
    -- chroot "$work/system" > "$work/autopkgtest.log" 2>&1 || status=$?
  [ "$status" -eq 0 ] || fail "autopkgtest ends with $status: $(tail -n 30 "$work/autopkgtest.log")"
}

case $how in
  packages)
    build_packages "$work/first"
    unpack "$work/first" "$work/root"
    # That tag is for uploads into Debian, whose first one answers a request.
    lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$work"/first/*.changes > "$work/lintian.log" 2>&1 ||
      fail "lintian: $(cat "$work/lintian.log")"
    expect_names "$work/root"
    expect_hardened "$work/root"
    expect_pages "$work/root"
    expect_modules "$work/root"
    run_tests "$work/root"
    ;;
  same)
    build_first_packages
    build_packages "$work/another_folder"
    for package in "$work"/first/*.deb; do
      cmp "$package" "$work/another_folder/$(basename "$package")" || fail "$package differs"
    done
    ;;
  fresh)
    for tool in mmdebstrap autopkgtest; do
      command -v "$tool" > /dev/null || { echo "debian: skipped: needs $tool"; exit 77; }
    done
    [ "$(id -u)" -eq 0 ] || { echo "debian: skipped: needs root"; exit 77; }
    build_first_packages
    make_fresh_system
    run_tests_in_fresh_system
    rm -rf "$work/system"
    ;;
  *) fail "unknown way '$how'" ;;
esac
echo "debian: $how works"
