#!/usr/bin/env bash
# hello greets the world first, then each name once and in order, on every policy, and ends with 0.
set -euo pipefail

hello=$TROUPE_EXAMPLES_DIR/hello
for policy in work_stealing shared_queue simulated; do
  said=$(TROUPE_POLICY=$policy "$hello" Ada "Grace Hopper" "")
  expected=$'hello, world\nhello, Ada\nhello, Grace Hopper\nhello, .'
  [ "$said." = "$expected" ] || { echo "hello, policy $policy, printed: $said" >&2; exit 1; }
done

# What the runtime refuses is told, with status 1.
status=0
said=$(TROUPE_WORKERS=many "$hello" 2>&1) || status=$?
[[ $status -eq 1 && $said == hello:*TROUPE_WORKERS* ]] || { echo "hello ended with $status: $said" >&2; exit 1; }
