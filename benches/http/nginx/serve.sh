#!/bin/sh
# nginx's server: serve.sh BENCH FOLDER. One process, which is also the one that this script becomes: what it costs is what nginx costs.
set -eu
folder=$2
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
case $1 in
  http_*)
    listen= location='location = /plaintext { return 200 "Hello, World!"; }' ;;
  tls_*)
    listen=" ssl" location="location = /hello { return 200 \"Hello, World!\"; }
      ssl_certificate $folder/certificate.pem; ssl_certificate_key $folder/key.pem; ssl_protocols TLSv1.3;
      ssl_session_cache off; ssl_session_tickets off;" ;;
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
