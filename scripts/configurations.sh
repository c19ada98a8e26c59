# The configurations of ./test: how one is built, how its suites run, and what is said about them.
# Sourced by ./test, which sets `root`, `deep`, `only`, `judgement`, `repeat`, `load` and `without` (see there).

passed=0 failed=0 skipped=0
deadline='' limit_status=124
# Files of suites that ran again (see run_flakes_again), and how many run at a time, if not as many as the preset says.
again=() jobs=''
# Of each configuration: what its suites have counted, the seconds of its build and suites, and
# whether ctest failed.
declare -A passed_in=() failed_in=() skipped_in=() build_seconds=() suite_seconds=() statuses=()

# count NAME PASSED FAILED SKIPPED
count() {
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
  passed_in[$1]=$((${passed_in[$1]-0} + $2)) failed_in[$1]=$((${failed_in[$1]-0} + $3))
  skipped_in[$1]=$((${skipped_in[$1]-0} + $4))
}

# lost CONFIGURATION WHAT [LOG]: a configuration that never came to its tests counts as one failure.
# The first errors tell most; the rest is in the log.
lost() {
  count "$1" 0 1 0
  if [ -n "${3-}" ]; then head -n 60 "$3" >&2; fi
  printf '%-8s %s: counted as 1 failed\n' "$1" "$2"
}

# configure NAME: says why it cannot in one word, or nothing.
configure() {
  local name=$1 log=build/$1/log left_out='' bare=OFF
  if [[ $name =~ ^(clang|asan|tsan)$ ]] && ! command -v clang++-22 > /dev/null; then
    echo no_compiler
    return
  fi
  forget_moved_build "build/$name"
  mkdir -p "$log"
  rm -f "$log"/junit*.xml "$log"/units*.json "$log"/suites*.json
  if [ $deep = no ]; then left_out=${without[$name]-}; fi
  if [ $deep != yes ]; then bare=ON; fi
  cmake --preset "$name" -DTROUPE_WITHOUT="$left_out" -DTROUPE_BARE_TESTS=$bare > "$log/configure.log" 2>&1 ||
    echo unconfigured
}

# limits: the option that ends a command at the deadline, an hour on the clock of SECONDS, if there is one.
limits() {
  if [ -n "$deadline" ]; then echo "--limit=$((deadline > SECONDS ? deadline - SECONDS : 0))"; fi
}

# build NAME [TARGET...]: says why it cannot in one word, or nothing. Tests of the configuration before
# may run meanwhile, and go first. All errors are worth seeing at once.
build() {
  local name=$1 log=build/$1/log status=0
  shift
  if [ "${1-}" = all ]; then shift; fi
  nice -n 10 python3 -B scripts/supervise.py units "$log/units.json" $(limits) -- \
    cmake --build --preset "$name" ${*:+--target "$@"} -- -k 0 > "$log/build.log" 2>&1 7>&- || status=$?
  if [ $status -eq $limit_status ]; then
    echo limit
  elif [ $status -ne 0 ]; then
    grep -v '^\[' "$log/build.log" > "$log/errors.log" || true
    echo broken
  fi
}

# build_all NAME...: one after the other. A line for each: NAME SECONDS [WHY IT IS LOST].
build_all() {
  local name start why
  for name in "$@"; do
    start=$SECONDS
    say "$name: building ..."
    why=$(configure "$name")
    if [ -z "$why" ]; then why=$(build "$name"); fi
    echo "$name $((SECONDS - start)) $why"
  done
}

# explain_lost NAME WHY
explain_lost() {
  local log=build/$1/log
  case $2 in
    no_compiler) lost "$1" "clang++-22 is missing" ;;
    unconfigured) lost "$1" "cannot be configured" "$log/configure.log" ;;
    *) lost "$1" "does not build" "$log/errors.log" ;;
  esac
}

# run_suites NAME PART [OPTION...]: runs the suites that the options of suites.py select, and says which
# failed. PART names the logs, from which `judge` counts.
run_suites() {
  local name=$1 part=$2 log=build/$1/log start=$SECONDS preset=$1 options=(${jobs:+--parallel "$jobs"}) number
  shift 2
  if [ $deep != no ]; then
    options+=(--label-exclude '^$')  # takes back what the preset excludes (see suites.py)
    if [ "$name" = clang ]; then preset=clang-deep; fi
    set -- "$@" --deep
  fi
  if [ -n "$only" ]; then set -- "$@" --only "$only"; fi
  number=$(python3 -B scripts/suites.py select "build/$name" "$preset" "$root/$log/chosen_$part" "$@" \
    2> "$log/test_$part.log") || { statuses[$name]=1; return; }
  [ "$number" -gt 0 ] || return 0
  # ctest takes a relative path from the build folder. It must keep each output whole (64 MiB), for what a suite
  # counts and skips is read from it; scripts/junit.py refuses an output that was cut.
  python3 -B scripts/supervise.py suites "$log/suites_$part.json" --in "build/$name" $(limits) -- \
    ctest --preset "$preset" "${options[@]}" --tests-information "$root/$log/chosen_$part" \
    --output-junit "$root/$log/junit_$part.xml" \
    --test-output-size-passed 67108864 --test-output-size-failed 67108864 \
    < /dev/null > "$log/test_$part.log" 2>&1 7>&- ||
    { statuses[$name]=$?
      sed -n "/^The following tests FAILED/,/^Errors/s/^[[:space:]]/$name:&/p" "$log/test_$part.log" >&2; }
  suite_seconds[$name]=$((${suite_seconds[$name]-0} + SECONDS - start))
}

# find_results NAME PART...: sets `found`, the files of what ran in these parts.
find_results() {
  local log=build/$1/log part
  shift
  found=()
  for part in "$@"; do
    if [ -s "$log/junit_$part.xml" ]; then found+=("$log/junit_$part.xml"); fi
  done
}

# run_flakes_again NAME PART...: runs the suites of these parts that may be flaky twice more, one after the
# other. Sets `again`, the files of what they did (scripts/flakes.py).
run_flakes_again() {
  local name=$1 log=build/$1/log found=() part jobs=1
  find_results "$@"
  again=()
  python3 -B scripts/flakes.py "${found[@]}" > "$log/may_be_flaky"
  if [ ! -s "$log/may_be_flaky" ]; then return; fi
  say "$name: run twice more, alone: $(paste -sd ' ' "$log/may_be_flaky")"
  statuses[$name]=0
  for part in again_1 again_2; do
    run_suites "$name" $part --names "$log/may_be_flaky" 9>&-
  done
  find_results "$name" again_1 again_2
  again=("${found[@]}")
}

# judge NAME PART...: counts what ran in these parts, and shows the failures. `again`: see above.
judge() {
  local name=$1 log=build/$1/log counts=(0 0 0) found=()
  find_results "$@"
  shift
  if [ ${#found[@]} -gt 0 ]; then
    read -ra counts < <(python3 -B scripts/test_report.py "${found[@]}" "$name" \
      ${again[0]+--again "${again[@]}"} "${judgement[@]}")
  fi
  if [ "${counts[1]}" -eq 0 ] &&
    { [ "${statuses[$name]-0}" -ne 0 ] || { [ "${counts[0]}" -eq 0 ] && [ -z "$only" ]; }; }; then
    lost "$name" "ctest failed or ran nothing" "$log/test_$1.log"
    return
  fi
  count "$name" "${counts[@]}"
}

# conclude NAME: the line of a configuration whose suites have all run.
conclude() {
  local name=$1
  printf '%-8s %d passed, %d failed, %d skipped; build %d s, tests %d s\n' "$name" "${passed_in[$name]-0}" \
    "${failed_in[$name]-0}" "${skipped_in[$name]-0}" "${build_seconds[$name]-0}" "${suite_seconds[$name]-0}"
}

# run_configurations NAME...: each is built while the suites of the one before run, which wait most of
# the time. Suites that measure run at the end, when nothing is built.
run_configurations() {
  local name seconds why ready=()
  exec 8< <(build_all "$@" 9>&-)
  while read -r name seconds why <&8; do
    build_seconds[$name]=$seconds
    if [ -n "$why" ]; then
      explain_lost "$name" "$why"
      continue
    fi
    say "$name: testing ..."
    run_suites "$name" beside --beside 8<&- 9>&-
    ready+=("$name")
  done
  exec 8<&-
  for name in "${ready[@]}"; do
    run_suites "$name" serial --serial 9>&-
    if [ -z "$only" ]; then run_flakes_again "$name" beside serial; fi
    judge "$name" beside serial
    again=()
    conclude "$name"
  done
}

# repeat_suites NAME...: the suites `repeat` times in a row, beside a load if that is asked for, which
# tests/repeats.txt counts for release. Without a name of suites it takes those that the file has below 20.
repeat_suites() {
  local name i before why log targets=() few=()
  for name in "$@"; do
    say "$name: building ..."
    why=$(configure "$name")
    if [ -z "$why" ]; then
      if [ -z "$only" ]; then
        few=(--names "$root/build/$name/log/seldom_repeated")
        python3 -B scripts/repeats.py left > "${few[1]}"
        if [ ! -s "${few[1]}" ]; then
          say "$name: each suite has passed often enough"
          return
        fi
      fi
      mapfile -t targets < <(needed_targets "$name" "${few[@]}")
      why=$(build "$name" "${targets[@]}")
    fi
    if [ -n "$why" ]; then
      explain_lost "$name" "$why"
      return
    fi
  done
  begin_load
  for ((i = 1; i <= repeat; i++)); do
    for name in "$@"; do
      before=$failed log=build/$name/log
      statuses[$name]=0
      run_suites "$name" "repeated_$i" "${few[@]}" 9>&-
      judge "$name" "repeated_$i"
      if [ $load = yes ] && [ "$name" = release ] && [ -s "$log/junit_repeated_$i.xml" ] && [ -e tests/repeats.txt ]; then
        python3 -B scripts/repeats.py record "$log/junit_repeated_$i.xml"
      fi
      printf '%-8s run %d: %d failed\n' "$name" "$i" $((failed - before))
    done
  done
  end_load
}

# A load on all CPUs, if that is asked for, which ends when nobody holds descriptor 7 any more.
begin_load() {
  if [ $load = yes ]; then exec 7> >(exec python3 -B scripts/busy.py 9>&-); fi
}
end_load() {
  if [ $load = yes ]; then exec 7>&-; fi
}

# run_changed NAME: builds and runs what the change of the working tree reaches (scripts/changed.py).
run_changed() {
  local name=$1 log=build/$1/log start=$SECONDS why targets=()
  why=$(configure "$name")
  if [ -n "$why" ]; then
    explain_lost "$name" "$why"
    return
  fi
  if ! python3 -B scripts/changed.py "build/$name" "$log/changed" ${revision:+"$revision"} >&2; then
    lost "$name" "cannot say what is changed; is '$revision' a revision?"
    return
  fi
  mapfile -t targets < <(needed_targets "$name" --names "$log/changed")
  say "$name: building ..."
  # Without suites that need a program nothing is built.
  if [ ${#targets[@]} -gt 0 ]; then why=$(build "$name" "${targets[@]}"); fi
  build_seconds[$name]=$((SECONDS - start))
  if [ -n "$why" ]; then
    explain_lost "$name" "$why"
    return
  fi
  say "$name: testing ..."
  run_suites "$name" changed --names "$log/changed" 9>&-
  if [ -s "$log/junit_changed.xml" ]; then judge "$name" changed; fi
  conclude "$name"
}

# needed_targets NAME [OPTION...]: the targets of the suites that `only`, `deep` and the options choose.
needed_targets() {
  local name=$1 log=$root/build/$1/log
  shift
  if [ $deep != no ]; then set -- "$@" --deep; fi
  if [ -n "$only" ]; then set -- "$@" --only "$only"; fi
  python3 -B scripts/suites.py select "build/$name" "$name" "$log/chosen" --targets "$log/targets" "$@" > /dev/null
  cat "$log/targets"
}
