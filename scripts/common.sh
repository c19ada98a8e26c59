# Shared by ./run and ./test; sourced, not run. The caller sets `root`, the root of the checkout.

# say WORDS...: a notice. It goes to standard error, for standard output belongs to the program.
say() { printf '%s\n' "$*" >&2; }

# die WORDS...: ends with status 1; a wrong use of a command ends with status 2 by itself.
die() {
  say "${0##*/}: $*"
  exit 1
}

# ensure_packages PACKAGE...: installs the missing Debian packages when root; otherwise prints the one
# line that does. Returns non-zero when something is still missing. Without dpkg it trusts the system,
# and the build names what it does not find; TROUPE_NO_INSTALL=1 asks for that.
ensure_packages() {
  if [ "${TROUPE_NO_INSTALL-}" = 1 ]; then return 0; fi
  command -v dpkg-query > /dev/null || return 0
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0

  local install="apt-get install -y --no-install-recommends ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    say "missing packages; run: sudo $install"
    return 1
  fi
  say "installing ${missing[*]} ..."
  local log
  log=$(mktemp)
  # Another installation may hold the lock for a while (a machine that has just started).
  if (apt-get update && DEBIAN_FRONTEND=noninteractive $install -o DPkg::Lock::Timeout=300) \
      < /dev/null > "$log" 2>&1; then
    rm -f "$log"
  else
    tail -n 15 "$log" >&2
    rm -f "$log"
    say "could not install ${missing[*]}"
    return 1
  fi
}

# sources_fingerprint: changes whenever the library's sources do. An archive has the same in it
# (cmake/troupe_fingerprint.cmake).
sources_fingerprint() {
  (cd "$root" && {
    find include src cmake -type f ! -name '*.test.cpp' ! -name '*.model.cpp'
    echo CMakeLists.txt
  } | LC_ALL=C sort | tr '\n' '\0' | xargs -0 sha256sum) | sha256sum | cut -d ' ' -f 1
}

# forget_moved_build DIR: CMake refuses a build folder whose sources lie elsewhere than they did, which
# is what a copied or renamed checkout has.
forget_moved_build() {
  local home
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$1/CMakeCache.txt" 2> /dev/null) || return 0
  if [ -n "$home" ] && [ "$home" != "$root" ]; then rm -rf "$1"; fi
}
