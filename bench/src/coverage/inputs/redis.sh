# Requests of fifty clients, then data that is always the same, and its digest.
[ "$1" = prepare ] && exit 0
ask() { redis-cli -s "$PWD/socket" "$@"; }
trap 'ask shutdown nosave >/dev/null 2>&1' EXIT
for _ in $(seq 3000); do
	ask ping >/dev/null 2>&1 && break
	sleep 0.1
done
redis-benchmark -s "$PWD/socket" -q -n 20000 -r 1000 -P 4 -t set,get,incr,lpush,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset >answers 2>&1 || exit 1
wc -l <answers >/dev/null
ask flushall
ask eval 'for n = 1, 20000 do
	redis.call("set", "key:" .. n, n * n)
	redis.call("zadd", "sorted", n % 997, "member:" .. n)
	redis.call("hset", "hash:" .. n % 50, n, n * 3)
	redis.call("rpush", "list:" .. n % 20, n)
end
return redis.call("dbsize")' 0
ask debug digest
ask zrange sorted 100 105 withscores
ask eval 'return redis.pcall("incr", "sorted").err' 0
ask --raw sort list:3 desc limit 0 3
ask eval 'error("raised")' 0 2>&1
ask bitcount key:777
