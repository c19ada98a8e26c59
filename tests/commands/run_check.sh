#!/usr/bin/env bash
# What ./run promises, tried from another folder with programs that lie outside the checkout.
set -euo pipefail

run=$TROUPE_SOURCE_DIR/run
work=$TROUPE_BINARY_DIR/run_check
second_start_ms_max=2000
rm -rf "$work"
mkdir -p "$work/a b" "$work/c"
cd "$work"

fail() {
  echo "run: $*" >&2
  exit 1
}

# refused STATUS WORDS ARGUMENT...: ./run must end so, say WORDS, and print nothing on standard output.
refused() {
  local status=0 expected=$1 words=$2
  shift 2
  "$run" "$@" < /dev/null > out 2> err || status=$?
  [ "$status" -eq "$expected" ] || fail "'$*' ended with $status, not $expected: $(cat err)"
  grep -qF -- "$words" err || fail "'$*' did not say '$words' but: $(cat err)"
  [ ! -s out ] || fail "'$*' printed: $(cat out)"
}

cat > "a b/echo.cpp" << 'END'
#include "word.hpp"
#include <cstdlib>
#include <iostream>
#include <string>
#include <troupe/troupe.hpp>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) std::cout << word << argv[i] << '\n';
  for (std::string line; std::getline(std::cin, line);) std::cout << word << line << '\n';
  return std::system("test -d c") == 0 ? 42 : 1;  // 42: it runs where it was called
}
END
echo 'const char* const word = "one ";' > "a b/word.hpp"
echo 'int main() { return 7; }' > c/echo.cpp
echo 'int main() { return undeclared; }' > c/broken.cpp

status=0
said=$(printf 'in\nput' | "$run" "a b/echo.cpp" --flag "two words" 2> err) || status=$?
[ "$status" -eq 42 ] || fail "status $status, not 42: $(cat err)"
[ "$said" = $'one --flag\none two words\none in\none put' ] || fail "it printed: $said"

# An unchanged program starts at once; one of the same name elsewhere is another program.
start=$(date +%s%N)
"$run" "a b/echo.cpp" < /dev/null 2> err && fail "the second run ended with 0"
took_ms=$((($(date +%s%N) - start) / 1000000))
[ "$took_ms" -lt "$second_start_ms_max" ] || fail "the second run took $took_ms ms"
[ ! -s err ] || fail "the second run built: $(cat err)"
status=0
"$run" c/echo.cpp 2> err || status=$?
[ "$status" -eq 7 ] || fail "another program of the same name ended with $status: $(cat err)"

# A change in a header that the program includes is seen.
echo 'const char* const word = "1 ";' > "a b/word.hpp"
said=$("$run" "a b/echo.cpp" x < /dev/null 2> err) || true
[ "$said" = "1 x" ] || fail "after a change of its header it printed: $said"

# A program that is dated in the future starts at once, too, and a change of it is seen.
echo 'int main() { return 8; }' > c/future.cpp
touch -d '+1 day' c/future.cpp
status=0
"$run" c/future.cpp 2> err || status=$?
[ "$status" -eq 8 ] || fail "a program of tomorrow ended with $status: $(cat err)"
"$run" c/future.cpp 2> err || true
[ ! -s err ] || fail "a program of tomorrow is built each time: $(cat err)"
echo 'int main() { return 9; }' > c/future.cpp
touch -d '+1 day' c/future.cpp
status=0
"$run" c/future.cpp 2> err || status=$?
[ "$status" -eq 9 ] || fail "a changed program of tomorrow ended with $status: $(cat err)"

# Two calls for one new program at a time, of which one builds.
echo 'int main() { return 3; }' > c/both.cpp
for i in 1 2; do
  (status=0; "$run" c/both.cpp 2> "err$i" || status=$?; echo "$status" > "status$i") &
done
wait
[ "$(cat status1 status2)" = $'3\n3' ] || fail "of two at a time: $(cat status1 status2 err1 err2)"

# A signal ends the program, not a shell in front of it.
printf '#include <csignal>\nint main() { std::raise(SIGTERM); }\n' > c/killed.cpp
status=0
"$run" c/killed.cpp 2> err || status=$?
[ "$status" -eq $((128 + 15)) ] || fail "a killed program ended with $status"

# Odd names: blanks and what is escaped before them in a compiler's rule, one like an option, and one that no list of
# files can hold.
for name in $'tab\tin it' 'back\slash' 'back\ slash' 'two\\ of them' '[a' '$HOME #1' '* ?'; do
  mkdir -p "odd/$name"
  echo '#include "word.hpp"' > "odd/$name/$name.cpp"
  echo 'int main() { return 6; }' > "odd/$name/word.hpp"
  status=0
  "$run" "odd/$name/$name.cpp" 2> err < /dev/null || status=$?
  [ "$status" -eq 6 ] || fail "'$name.cpp' ended with $status: $(cat err)"
  "$run" "odd/$name/$name.cpp" 2> err < /dev/null || true
  [ ! -s err ] || fail "'$name.cpp' is built each time: $(cat err)"
done
echo 'int main() { return 4; }' > "odd/$name/word.hpp"
status=0
"$run" "odd/$name/$name.cpp" 2> err || status=$?
[ "$status" -eq 4 ] || fail "after a change of its header '$name.cpp' ended with $status: $(cat err)"
status=0
cp c/echo.cpp ./-dash.cpp
"$run" -- -dash.cpp 2> err || status=$?
[ "$status" -eq 7 ] || fail "-- -dash.cpp ended with $status: $(cat err)"
mkdir -p $'new\nline'
cp c/echo.cpp $'new\nline/echo.cpp'
refused 1 "line break" $'new\nline/echo.cpp'

# Where ccache has no folder to write to, all compiles without it.
touch no_folder
echo 'int main() { return 5; }' > c/uncached.cpp
status=0
CCACHE_DIR=$work/no_folder "$run" c/uncached.cpp 2> err || status=$?
[ "$status" -eq 5 ] || fail "without a folder for ccache: status $status: $(cat err)"
CCACHE_DIR=$work/no_folder refused 1 "undeclared" c/broken.cpp
CCACHE_DIR=$work/no_folder cmake -S "$TROUPE_SOURCE_DIR" -B uncached -G Ninja -DTROUPE_TESTS=OFF -DTROUPE_SOURCES_TOGETHER=OFF \
  -DCMAKE_CXX_COMPILER="${TROUPE_CXX##* }" > uncached.log || fail "$(cat uncached.log)"
CCACHE_DIR=$work/no_folder ninja -C uncached CMakeFiles/troupe.dir/src/memory/chunk.cpp.o > uncached.log ||
  fail "the library does not compile without a folder for ccache: $(cat uncached.log)"

refused 1 "there is no file 'gone.cpp'" gone.cpp
refused 1 "'c' is not a file" c
refused 2 "unknown option '--fast'" --fast
refused 1 "undeclared" c/broken.cpp
refused 1 "does not compile" c/broken.cpp
printf '// needs: no_such_module\nint main() {}\n' > c/needy.cpp
refused 1 "no_such_module" c/needy.cpp

# Without a program: the examples with their first lines.
"$run" > list
for example in "$TROUPE_SOURCE_DIR"/examples/*.cpp; do
  [ -e "$example" ] || continue
  grep -qF "examples/${example##*/}" list || fail "the list lacks $example"
  grep -qF "$(sed -n '1s,^// *,,p' "$example")" list || fail "the list does not describe $example"
  [ "$(head -c 3 "$example")" = "// " ] || fail "$example does not begin with a comment line"
done
echo "run: does what it promises"
