# Files by one connection and by many, compressed, in parts, and such as are not there.
if [ "$1" = prepare ]; then
	mkdir -p files
	for n in 1 2 3 4 5 6 7 8; do
		seq $((n * 3000)) >"files/$n.txt"
	done
	cat >conf <<CONF
daemon off; master_process off; pid $PWD/pid; error_log $PWD/errors;
events { worker_connections 128; }
http {
	access_log off; gzip on; gzip_types *; gzip_min_length 1; default_type text/plain;
	client_body_temp_path $PWD/t1; proxy_temp_path $PWD/t2; fastcgi_temp_path $PWD/t3; uwsgi_temp_path $PWD/t4; scgi_temp_path $PWD/t5;
	server {
		listen unix:$PWD/socket; root $PWD/files;
		location /moved { return 302 /1.txt; }
		location /again/ { proxy_pass http://unix:$PWD/socket:/; }
		location ~ ^/(\d+)-as-(\w+)\$ { rewrite ^/(\d+)-as-(\w+)\$ /\$1.txt break; add_header X-As \$2; }
	}
}
CONF
	exit 0
fi
ask() { curl -s --unix-socket "$PWD/socket" "$@"; }
trap 'kill -QUIT $(cat pid)' EXIT
for _ in $(seq 3000); do
	ask -o /dev/null http://it/1.txt && break
	sleep 0.1
done
for _ in 1 2 3 4 5 6 7 8 9 10; do
	ask 'http://it/[1-8].txt' | md5sum
done | sort | uniq -c
for n in 1 2 3 4 5 6 7 8; do
	(ask --compressed "http://it/again/[1-8].txt" | md5sum >"got.$n") &
done
wait
sort -u got.?
ask -r 100-199 http://it/8.txt | md5sum
ask -w '%{http_code} %{redirect_url}\n' -o /dev/null http://it/moved http://it/none.txt
ask -i http://it/3-as-text | grep -c 'X-As: text'
ask -X POST -d body -w '%{http_code}\n' -o /dev/null http://it/1.txt
ask -H 'If-None-Match: "x"' -w '%{http_code}\n' -o /dev/null http://it/2.txt
