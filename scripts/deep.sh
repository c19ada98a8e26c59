# The slices of `./test --deep` (tests/slices.ini): how one runs. Sourced by ./test, after
# configurations.sh.

# In a run of everything: of the suites, and of a build without a compiler cache, of which that of release is
# needed in any case.
slice_seconds_max=${TROUPE_SLICE_SECONDS:-480}
slice_build_seconds_max=120
declare -A slice_reasons=([no_compiler]="clang++-22 is missing" [unconfigured]="cannot be configured"
  [broken]="does not build" [empty]="no suite ran to its end" [limit]="ended at its limit of $slice_seconds_max s, or $slice_build_seconds_max s of building")
slice_passes_min=20
slice_failed=0 slice_passed=0 slice_configurations=()

# build_slice CONFIGURATION: builds what the suites need. Says why it cannot in one word, or nothing.
build_slice() {
  local why targets=()
  why=$(configure "$1")
  if [ -z "$why" ]; then
    mapfile -t targets < <(needed_targets "$1")
    why=$(build "$1" "${targets[@]}")
  fi
  echo "$why"
}

# run_processes CONFIGURATION SLICE ENVIRONMENT...: runs the suites once in each environment, at the same
# time. Says why it has no result in one word, or nothing.
run_processes() {
  local configuration=$1 slice=$2 i=0 environment pair pids=() status=0
  shift 2
  for environment in "$@"; do
    i=$((i + 1))
    (
      for pair in $environment; do export "${pair?}"; done
      run_suites "$configuration" "slice_${slice}_$i"
      exit "${statuses[$configuration]-0}"
    ) &
    pids+=($!)
  done
  for i in "${pids[@]}"; do
    wait "$i" || status=$?
    if [ $status -eq $limit_status ]; then echo limit; return; fi
  done
}

# run_slice NAME: builds a slice and runs it. Its counts are its own. Sets slice_failed and slice_passed, how
# often it has passed beside a load.
run_slice() {
  local name=$1 said configuration only deep=slice judgement=(--ledger tests/ledger --partial)
  local why i part parts=() start=$SECONDS passed=0 failed=0 skipped=0
  local -A passed_in=() failed_in=() skipped_in=() statuses=()
  mapfile -t said < <(python3 -B scripts/slices.py show "$name")
  configuration=${said[0]} only=${said[1]} slice_passed=${said[2]}
  say "slice $name: building ($configuration) ..."
  why=$(build_slice "$configuration")
  if [ -n "$deadline" ]; then deadline=$((SECONDS + slice_seconds_max)); fi
  if [ -z "$why" ]; then
    say "slice $name: testing ..."
    why=$(run_processes "$configuration" "$name" "${said[@]:3}")
  fi
  if [ -z "$why" ]; then
    for ((i = 3; i < ${#said[@]}; i++)); do parts+=("slice_${name}_$((i - 2))"); done
    judge "$configuration" "${parts[@]}"
    for part in "${parts[@]}"; do
      [ -s "build/$configuration/log/junit_$part.xml" ] || why=empty
    done
    if [ $((passed + failed + skipped)) -eq 0 ]; then why=empty; fi
  fi
  slice_failed=$failed
  if [ -n "$why" ]; then slice_failed=1; fi
  printf 'slice %s (%s): %d passed, %d failed, %d skipped; %d s%s\n' "$name" "$configuration" "$passed" \
    "$failed" "$skipped" $((SECONDS - start)) "${why:+; ${slice_reasons[$why]}}"
  slice_configurations+=("$configuration")
}

# run_slices NAME...: for ./test --deep NAME, `repeat` times each. Beside a load the file notes whether it
# passed. A slice is one test here.
run_slices() {
  local name i
  begin_load
  for name in "$@"; do
    for ((i = 0; i < (repeat > 0 ? repeat : 1); i++)); do
      run_slice "$name" 9>&-
      if [ $slice_failed -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
      if [ $load = yes ]; then
        say "slice $name: has passed $(python3 -B scripts/slices.py record "$name" \
          "$([ $slice_failed -eq 0 ] && echo yes || echo no)") times in a row beside a load"
      fi
    done
  done
  end_load
}

# run_next_slice: for a run of everything. It is no part of the counts unless it fails, and has passed often
# enough beside a load.
run_next_slice() {
  local name
  name=$(python3 -B scripts/slices.py next)
  deadline=$((SECONDS + slice_build_seconds_max))
  run_slice "$name" 9>&-
  deadline=''
  if [ $slice_failed -eq 0 ]; then return; fi
  if [ "$slice_passed" -ge $slice_passes_min ]; then
    failed=$((failed + 1))
    printf 'slice %s has passed %d times beside a load: counted as 1 failed\n' "$name" "$slice_passed"
  else
    printf 'slice %s fails; it is not counted, for it has passed %d of %d times beside a load\n' "$name" \
      "$slice_passed" $slice_passes_min
  fi
}
