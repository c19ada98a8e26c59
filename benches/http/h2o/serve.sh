#!/bin/sh
# h2o's server: serve.sh BENCH FOLDER. One thread in one process, which is also the one that this script becomes.
set -eu
folder=$2
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir "$folder/files"
printf 'Hello, World!' >"$folder/files/plaintext"
cp "$folder/document" "$folder/files/document"
cat >"$folder/h2o.conf" <<END
num-threads: 1
user: $(id -un)
max-connections: 16000
listen: {host: 127.0.0.1, port: $port}
compress: {gzip: 5}
compress-minimum-size: 100
file.mime.setdefaulttype: "application/json"
hosts:
  default:
    paths: {/: {file.dir: $folder/files}}
END
echo "$port"
exec h2o -c "$folder/h2o.conf" 2>"$folder/stderr.log"
