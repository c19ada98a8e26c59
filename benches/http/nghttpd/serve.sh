#!/bin/sh
# nghttpd's server: serve.sh BENCH FOLDER. One thread in one process, which is also the one that this script becomes.
set -eu
folder=$2
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir "$folder/files"
printf 'Hello, World!' >"$folder/files/plaintext"
echo "$port"
exec nghttpd --no-tls --address=127.0.0.1 --htdocs="$folder/files" --workers=1 "$port" 2>"$folder/stderr.log"
