#!/usr/bin/env bash
# Records the captures that come with the package: real programs that talk between two network namespaces.
# Needs root, nginx, curl, dnsmasq, openssl and tcpdump. usage: record-captures.sh [FOLDER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=$(realpath "${1:-python/allosaur/captures}")
work=$(mktemp -d)
client=captures_client server=captures_server
inside() { ip netns exec "$@"; }

finish() {
    for file in "$work"/*.pid; do [ -s "$file" ] && kill "$(cat "$file")" 2>/dev/null; done
    ip netns del $client 2>/dev/null || true
    ip netns del $server 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

ip netns add $client
ip netns add $server
ip link add captures0 netns $client type veth peer name captures1 netns $server
inside $client ip link set captures0 gso_max_segs 1 gso_max_size 1514
inside $server ip link set captures1 gso_max_segs 1 gso_max_size 1514
inside $client ip address add 192.0.2.1/24 dev captures0
inside $client ip address add 2001:db8::1/64 dev captures0 nodad
inside $server ip address add 192.0.2.2/24 dev captures1
inside $server ip address add 2001:db8::2/64 dev captures1 nodad
for name in lo captures0; do inside $client ip link set $name up; done
for name in lo captures1; do inside $server ip link set $name up; done

# The site: a page, its style sheet, a picture's worth of bytes, and a place that takes uploads.
mkdir "$work/site"
printf '<html><head><link rel="stylesheet" href="style.css"></head><body><h1>Allosaur</h1><img src="large.bin"></body></html>\n' >"$work/site/index.html"
printf 'body { font-family: sans-serif; margin: 4em; }\n%.0s' {1..40} >"$work/site/style.css"
head -c 32768 /dev/zero | tr '\0' '*' >"$work/site/large.bin"
openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=site.example -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
cat >"$work/nginx.conf" <<NGINX
pid $work/nginx.pid;
error_log $work/error.log;
events {}
http {
    access_log off;
    client_body_temp_path $work; proxy_temp_path $work; fastcgi_temp_path $work; uwsgi_temp_path $work; scgi_temp_path $work;
    types { text/html html; text/css css; application/octet-stream bin; }
    server {
        listen 80; listen [::]:80; listen 443 ssl;
        ssl_certificate $work/cert.pem; ssl_certificate_key $work/key.pem;
        root $work/site;
        location /upload { client_max_body_size 1m; client_body_buffer_size 64k; proxy_pass http://127.0.0.1:81; }
    }
    server { listen 127.0.0.1:81; return 201 "stored\n"; }
}
NGINX
chmod -R a+rX "$work"
inside $server nginx -c "$work/nginx.conf"
ip netns exec $server dnsmasq --no-daemon --no-resolv --no-hosts --address=/site.example/192.0.2.2 --listen-address=192.0.2.2 --bind-interfaces >/dev/null 2>&1 &
printf '%s\n' $! >"$work/dnsmasq.pid"
sleep 1
# Neighbors are known before, so that captures begin with the conversation.
inside $client curl -s -o /dev/null http://192.0.2.2/
inside $client curl -s -o /dev/null 'http://[2001:db8::2]/'

record() { # record NAME FILTER COMMAND...: what passes while a command runs
    local name=$1 filter=$2
    shift 2
    ip netns exec $client tcpdump -q -U -i captures0 -w "$folder/$name.pcap" "$filter" 2>/dev/null &
    local recorder=$!
    sleep 1
    inside $client "$@" >/dev/null
    sleep 1
    kill $recorder
    wait $recorder || true
}

web=(curl -s --resolve site.example:80:192.0.2.2 --resolve site.example:443:192.0.2.2)
record http_get 'tcp port 80' "${web[@]}" http://site.example/large.bin
record http_browsing 'tcp port 80' "${web[@]}" http://site.example/ http://site.example/style.css http://site.example/large.bin
record http_post 'tcp port 80' "${web[@]}" -H 'Expect:' --data-binary "@$work/site/style.css" http://site.example/upload
record https 'tcp port 443' "${web[@]}" -k https://site.example/large.bin
record http_ipv6 'tcp port 80' curl -s 'http://[2001:db8::2]/index.html'
query='import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(bytes.fromhex("5aa501000001000000000000047369746507") + b"example" + bytes.fromhex("0000010001"), ("192.0.2.2", 53)); s.recv(512)'
record dns 'udp port 53' python3 -c "$query"
