#!/bin/sh
# nginx's server: serve.sh BENCH FOLDER. One process, which is also the one that this script becomes: what it costs is what nginx costs.
set -eu
folder=$2
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
case $1 in
  http_*)
    listen= location='location = /plaintext { return 200 "Hello, World!"; }' ;;
  h2_*)
    listen=" http2" location='location = /plaintext { return 200 "Hello, World!"; }' ;;
  gzip_json)
    # In two parts, since a parameter is shorter than 4 KiB.
    listen= location="set \$first '$(head -c 2048 "$folder/document")'; set \$second '$(tail -c +2049 "$folder/document")';
      location = /document { default_type application/json; return 200 \$first\$second; }
      gzip on; gzip_comp_level 5; gzip_types application/json; gzip_proxied any;" ;;
  tls_* | https_*)
    case $1 in tls_resumed) tickets=on ;; *) tickets=off ;; esac
    listen=" ssl" location="location = /hello { return 200 \"Hello, World!\"; }
      ssl_certificate $folder/certificate.pem; ssl_certificate_key $folder/key.pem; ssl_protocols TLSv1.3;
      ssl_session_cache off; ssl_session_tickets $tickets;" ;;
esac
cat >"$folder/nginx.conf" <<END
daemon off;
master_process off;
pid $folder/nginx.pid;
error_log $folder/error.log error;
events { worker_connections 16000; }
http {
  access_log off;
  server_tokens off;
  keepalive_requests 1000000000;
  http2_max_concurrent_streams 128;
  keepalive_timeout 600;
  sendfile on;
  default_type text/plain;
  client_body_temp_path $folder/temporary; proxy_temp_path $folder/temporary; fastcgi_temp_path $folder/temporary;
  uwsgi_temp_path $folder/temporary; scgi_temp_path $folder/temporary;
  server {
    listen 127.0.0.1:$port$listen backlog=4096;
    $location
    location / { root $folder/files; }
  }
}
END
echo "$port"
exec "$(PATH=$PATH:/usr/sbin command -v nginx)" -c "$folder/nginx.conf" 2>"$folder/stderr.log"
