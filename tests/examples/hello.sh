#!/usr/bin/env bash
# hello greets the world first, then each name once and in order, on every policy, and ends with 0.
set -euo pipefail

hello=$TROUPE_EXAMPLES_DIR/hello
for policy in work_stealing shared_queue simulated; do
  said=$(TROUPE_POLICY=$policy "$hello" Ada "Grace Hopper" "")
  expected=$'hello, world\nhello, Ada\nhello, Grace Hopper\nhello, .'
  [ "$said." = "$expected" ] || { echo "hello, policy $policy, printed: $said" >&2; exit 1; }
done
