#!/usr/bin/env bash
# Which library ./run takes: an installed one that fits, or else its own, whose building it shows.
# In a copy of the checkout, which has built nothing, with a cmake that builds nothing.
set -euo pipefail

work=$TROUPE_BINARY_DIR/run_library_check
rm -rf "$work"
mkdir -p "$work/checkout" "$work/tools"
for part in run scripts include src cmake CMakeLists.txt; do cp -a "$TROUPE_SOURCE_DIR/$part" "$work/checkout/$part"; done
cd "$work"
run=$work/checkout/run
cache=$work/checkout/build

fail() {
  echo "run: $*" >&2
  exit 1
}

# It says as much as ninja does, and nothing comes of it but the list of components and of what was asked for.
cat > tools/cmake << 'END'
#!/usr/bin/env bash
if [ "$1" != --build ]; then
  mkdir -p "$4/use"
  printf '%s\n' -std=c++23 "\"-I$2/include\"" -pthread -DTROUPE_CHECKED=0 -DTROUPE_PLAIN_BLOCKS=0 > "$4/use/compile.rsp"
  printf 'troupe\t%s/libtroupe.a\t-\t-luring\ndns\t%s/libtroupe_dns.a\t- troupe\t-lcares\ntls\t%s/libtroupe_tls.a\t- troupe\t-lssl\n' \
    "$4" "$4" "$4" > "$4/use/components"
  exit "${CONFIGURES-1}"
fi
echo "${@:4}" >> asked
for i in 1 2 3; do
  echo "[$i/4] Building CXX object CMakeFiles/troupe.dir/src/$i.cpp.o"
  sleep "${BUILD_SECONDS-0}"  # sleeps: the notice comes every few seconds
done
echo "[4/4] Linking CXX static library libtroupe.a"
END
chmod +x tools/cmake

cat > core.cpp << 'END'
#include <cstdio>
#include <troupe/troupe.hpp>
int main() {
  troupe::runtime rt;
  rt.post([] { std::puts("core"); });
  rt.run();
}
END
cat > dns.cpp << 'END'
#include "its.hpp"
int main() {
  troupe::runtime rt;
  auto found = rt.spawn([](const char* name) -> troupe::task<std::size_t> {
    auto given = co_await troupe::resolve(name, 80);
    co_return given.size();
  }("127.0.0.1"));
  rt.run();
  std::puts(found.get() == 1 ? "dns" : "?");
}
END
printf '#include <cstdio>\n#include <troupe/dns/resolver.hpp>\n#include <troupe/troupe.hpp>\n' > its.hpp

# takes PROGRAM WORDS: it is linked to the installed library and prints this, now and again.
takes() {
  local said
  said=$(PATH=$work/tools:$PATH "$run" "$1.cpp" 2> err) || fail "$1.cpp with the installed library: $(cat err)"
  [ "$said" = "$2" ] || fail "$1.cpp printed $said"
  grep -q "^building $1.cpp" err || fail "$1.cpp said: $(cat err)"
  said=$(PATH=$work/tools:$PATH "$run" "$1.cpp" 2> err) || fail "the second time $1.cpp failed: $(cat err)"
  [ "$said $(cat err)" = "$2 " ] || fail "the second time $1.cpp said: $said $(cat err)"
}
# builds WHAT PROGRAM [SETTING...]: what is installed does not fit, so that it goes about building
# one.
builds() {
  local what=$1 program=$2
  shift 2
  if env "$@" PATH="$work/tools:$PATH" "$run" "$program.cpp" > out 2> err; then fail "$what: it was linked to what is installed"; fi
  grep -q '^building troupe' err || fail "$what: it said: $(cat err)"
  [ ! -s out ] || fail "$what: it ran: $(cat out)"
  rm -rf "$cache"
}

cmake --install "$TROUPE_BINARY_DIR" --prefix "$work/first" > install.log
mv first "the prefix"
prefix=$work/the\ prefix
libraries=$(dirname "$(find "$prefix" -name libtroupe.a)")
export PKG_CONFIG_PATH=$libraries/pkgconfig CXX=${TROUPE_CXX##* } HOME=$work
unset CXXFLAGS TROUPE_RUN_BUILD

if ! grep -aq 'troupe fingerprint: .* build=Release checked=0 sanitizer= native=0 flags=;' "$libraries/libtroupe.a"; then
  builds "a library that was built with other options" core
  echo "run: it does not take a library with the options of this build"
  exit 0
fi

takes core core
if [ -e "$libraries/libtroupe_dns.a" ]; then takes dns dns; fi
TROUPE_RUN_BUILD=1 builds "TROUPE_RUN_BUILD, and a program that is linked already," core
takes core core

# Found in the guide's prefix without a word.
mkdir -p .local
ln -s "$libraries" .local/lib
ln -s "$prefix/include" .local/include
rm -rf "$cache"
(unset PKG_CONFIG_PATH && takes core core)
rm -rf .local "$cache"

# The checkout is another one.
for file in include/troupe/task/task.hpp src/memory/chunk.cpp CMakeLists.txt; do
  cp "checkout/$file" kept
  echo "$([ $file = CMakeLists.txt ] && echo '#' || echo //) another one" >> "checkout/$file"
  builds "after a change of $file" core
  cp kept "checkout/$file"
done
# What is installed is another one.
echo '// another one' >> "$prefix/include/troupe/task/task.hpp"
builds "with another header installed" core
cp checkout/include/troupe/task/task.hpp "$prefix/include/troupe/task/task.hpp"
touch "$prefix/include/troupe/more.hpp"
builds "with one more header installed" core
rm "$prefix/include/troupe/more.hpp"
cp "$libraries/libtroupe.a" kept
sed -i 's/troupe fingerprint: sources=./troupe fingerprint: sources=-/' "$libraries/libtroupe.a"
builds "with an archive of other sources" core
cp kept "$libraries/libtroupe.a"
for other in g++ clang++-22; do
  if [ "$other" != "${CXX##*/}" ] && command -v "$other" > /dev/null; then
    builds "with another compiler" core CXX="$other"
  fi
done
# A component is not there, or is an old one: who needs it builds, the others do not.
if [ -e "$libraries/libtroupe_dns.a" ]; then
  sed -i 's/troupe fingerprint: sources=./troupe fingerprint: sources=-/' "$libraries/libtroupe_dns.a"
  builds "with an old archive of dns" dns
  takes core core
  rm -rf "$cache" "$libraries/libtroupe_dns.a" "$libraries/pkgconfig/troupe-dns.pc"
  builds "without dns" dns
  takes core core
  rm -rf "$cache"
fi

# How long it still takes: a line every few seconds, and one line in place on a terminal.
PATH=$work/tools:$PATH TROUPE_RUN_BUILD=1 CONFIGURES=0 BUILD_SECONDS=1.6 "$run" core.cpp > out 2> err || true
grep -qE '^building troupe: [0-9]+ s, about [0-9]+ s left$' err || fail "while it built it said: $(cat err)"
[ "$(grep -c 'building troupe: ' err)" -eq 1 ] || fail "it said too much: $(cat err)"
rm -rf "$cache"
PATH=$work/tools:$PATH TROUPE_RUN_BUILD=1 CONFIGURES=0 TERM=xterm python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' \
  "$run" core.cpp < /dev/null > out 2> err || true
for i in 1 2 3; do
  grep -qE $'\r\033\\[K'"building troupe: [0-9]+ s, about [0-9]+ s left" out || fail "on a terminal it said: $(cat -v out)"
done

# A component is built for a program that includes it, itself or by a header of its own, and no other one is.
printf '#include <troupe/tls.hpp>\nint main() {}\n' > tls.cpp
for program in core dns tls; do
  rm -rf "$cache" asked
  PATH=$work/tools:$PATH TROUPE_RUN_BUILD=1 CONFIGURES=0 "$run" $program.cpp > out 2> err || true
  expected=troupe
  if [ $program = dns ]; then expected=$'troupe\ntroupe_dns troupe'; fi
  if [ $program = tls ]; then expected='troupe_tls troupe'; fi
  [ "$(cat asked)" = "$expected" ] || fail "for $program.cpp it built: $(cat asked err)"
done
echo "run: takes the library that it promises"
