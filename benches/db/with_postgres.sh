#!/bin/bash
# with_postgres.sh PROGRAM ARGUMENTS...: runs the program beside a PostgreSQL server of its own, whose
# address is in BENCH_POSTGRES, and ends the server.
set -euo pipefail
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
folder=$(mktemp -d)
as_user=()
if [ "$(id -u)" = 0 ]; then
  as_user=(setpriv --reuid=postgres --regid=postgres --clear-groups)
  chown postgres:postgres "$folder"
fi
chmod 711 "$folder"
end() {
  (cd "$folder" && "${as_user[@]}" "$bin/pg_ctl" -D data -m immediate stop) > /dev/null 2>&1 || true
  rm -rf "$folder"
}
trap end EXIT
(
  cd "$folder"
  "${as_user[@]}" "$bin/initdb" -D data -U bench -A trust -N -E UTF8 --locale=C
  "${as_user[@]}" "$bin/pg_ctl" -D data -l log -w start -o "-k $folder -c listen_addresses="
) > /dev/null
export BENCH_POSTGRES="host=$folder user=bench dbname=postgres"
"$@"
