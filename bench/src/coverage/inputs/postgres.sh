# Makes a database cluster; loads the server until it has answered everything, says what the tables hold, and ends it.
PATH=$PATH:/usr/lib/postgresql/15/bin
export PGHOST=$PWD PGUSER=postgres PGDATABASE=postgres
if [ "$1" = prepare ]; then
	rm -rf data
	exec initdb -D data -A trust -U postgres --no-locale -E UTF8 --no-sync >prepared 2>&1
fi
trap 'kill -INT $(head -1 data/postmaster.pid)' EXIT
for _ in $(seq 3000); do
	pg_isready -q && break
	sleep 0.1
done
pgbench -i -q -s 2 >made 2>&1 || exit 1
pgbench -n --random-seed=7 -c 4 -j 2 -t 400 >answers 2>&1 || exit 1
grep 'actually processed' answers
psql -At <<'SQL'
select sum(abalance), count(*), md5(string_agg(aid || ':' || abalance, ';' order by aid)) from pgbench_accounts;
select sum(tbalance), md5(string_agg(tid || ':' || tbalance, ';' order by tid)) from pgbench_tellers;
create function fails(n int) returns int language plpgsql as $$
begin
	return 100 / (n % 3);
exception when division_by_zero then
	return -1;
end $$;
select sum(fails(n)), count(*) from generate_series(1, 5000) n;
with recursive f(n, a, b) as (select 1, 0::numeric, 1::numeric union all select n + 1, b, a + b from f where n < 500) select max(b) from f;
select md5(string_agg(to_jsonb(r)::text, ',')) from (select n, n * 1.5 as half, repeat('x', n % 7) as text from generate_series(1, 3000) n) r;
SQL
