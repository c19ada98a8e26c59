#!/usr/bin/env bash
# What ./test says when it is used wrongly, and how its report counts. (That it runs the tests is seen
# by this test running.)
set -euo pipefail

test=$TROUPE_SOURCE_DIR/test
work=$TROUPE_BINARY_DIR/test_check
mkdir -p "$work"
cd "$work"

fail() {
  echo "test: $*" >&2
  exit 1
}

refused() {
  local status=0 words=$1
  shift
  "$test" "$@" > out 2> err || status=$?
  [ "$status" -eq 2 ] || fail "'$*' ended with $status"
  grep -qF -- "$words" err || fail "'$*' said: $(cat err)"
}
refused "unknown option '--fast'" --fast
refused "--only wants a value" --only
refused "there is no configuration 'nowhere'" --in nowhere
refused "leave out --deep" --deep --update-ledger
refused "--repeat wants a number from 1 to 9999, not '0'" --repeat 0 mailbox
refused "--repeat wants the name of the suites" --repeat 2
refused "--beside-load is for --repeat" --beside-load mailbox
refused "--changed chooses the suites itself" --changed --only mailbox
refused "there is no slice 'nothing'" --deep nothing
refused "'second' is a second name" first second
"$test" --help | grep -q '^Usage: ./test' || fail "--help"

cat > junit.xml << 'END'
<testsuite>
  <testcase name="a/good" status="run"><system-out>fine</system-out></testcase>
  <testcase name="a/bad" status="fail"><failure message="Timeout"/><system-out>said this</system-out></testcase>
  <testcase name="a/skip" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
  <testcase name="a/gone" status="notrun"><skipped message="Unable to find executable"/></testcase>
  <testcase name="a/off" status="disabled"/>
  <testcase name="b/suite" status="run"><system-out>
[==========] 5 tests from 1 test suite ran. (1 ms total)
[  PASSED  ] 3 tests.
[  SKIPPED ] 2 tests.
</system-out></testcase>
  <testcase name="b/broken" status="fail"><failure message=""/><system-out>
here.cpp:1: Failure
[  FAILED  ] all/broken.one/0, where GetParam() = 4-byte object (0 ms)
[  FAILED  ] all/broken.one/1, where GetParam() = 4-byte object (0 ms)
[  PASSED  ] 1 test.
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] all/broken.one/0, where GetParam() = 4-byte object
[  FAILED  ] all/broken.one/1, where GetParam() = 4-byte object
</system-out></testcase>
</testsuite>
END
counts=$(python3 "$TROUPE_SOURCE_DIR/scripts/test_report.py" junit.xml release 2> err)
[ "$counts" = "5 4 4" ] || fail "the report counts '$counts', not '5 4 4'"
for words in "--- a/bad" "said this" "Timeout" "--- a/gone" "./test --in release --only '^a/bad$'"; do
  grep -qF -- "$words" err || fail "the report does not say '$words': $(cat err)"
done
echo "test: does what it promises"
