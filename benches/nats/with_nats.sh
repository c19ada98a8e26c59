#!/bin/bash
# with_nats.sh PROGRAM ARGUMENTS...: runs the program beside a NATS server of its own, whose address is
# in BENCH_NATS, and ends the server.
set -euo pipefail
folder=$(mktemp -d)
server=
end() {
  if [ -n "$server" ]; then
    kill -KILL "$server" 2> /dev/null || true
    wait "$server" 2> /dev/null || true
  fi
  rm -rf "$folder"
}
trap end EXIT
/usr/sbin/nats-server -a 127.0.0.1 -p -1 --ports_file_dir "$folder" -l "$folder/log" > /dev/null 2>&1 &
server=$!
# It writes the file before it listens, and another name of it is seen first.
for _ in $(seq 1000); do
  if grep -qs 'Server is ready' "$folder/log" && grep -qs nats:// "$folder"/*.ports; then break; fi
  sleep 0.01
done
BENCH_NATS=$(grep -o 'nats://[0-9.:]*' "$folder"/*.ports | head -1)
export BENCH_NATS
"$@"
