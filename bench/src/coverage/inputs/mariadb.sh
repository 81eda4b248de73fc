# As for PostgreSQL: four clients at a time, with handlers of errors, and what their tables hold.
if [ "$1" = prepare ]; then
	rm -rf data
	exec mariadb-install-db --no-defaults --datadir="$PWD/data" --auth-root-authentication-method=normal --skip-test-db --user="$(id -un)" >prepared 2>&1
fi
client() { mariadb --no-defaults -uroot -S "$PWD/socket" -BN "$@"; }
trap 'mariadb-admin --no-defaults -uroot -S "$PWD/socket" shutdown >/dev/null 2>&1' EXIT
for _ in $(seq 3000); do
	client -e 'select 1' >/dev/null 2>&1 && break
	sleep 0.1
done
client <<'SQL' || exit 1
create database load_of_it;
use load_of_it;
delimiter //
create procedure fills(in seed int, in most int)
begin
	declare n int default 0;
	declare failed int default 0;
	declare continue handler for sqlexception set failed = failed + 1;
	while n < most do
		insert into entries values (seed * 100000 + n % 700, concat('line ', n), n * 1.25);
		update entries set amount = amount + n where id = seed * 100000 + n % 97;
		set n = n + 1;
	end while;
	select seed, failed;
end //
delimiter ;
create table entries (id int primary key, text varchar(40), amount decimal(20, 2)) engine=innodb;
SQL
for seed in 1 2 3 4; do
	client load_of_it -e "call fills($seed, 1500)" >"filled.$seed" 2>&1 &
done
wait
cat filled.1 filled.2 filled.3 filled.4
client load_of_it 2>&1 <<'SQL'
select count(*), sum(amount), md5(group_concat(id, ':', amount order by id)) from entries where id % 10 = 3;
select a.id % 7, count(*), sum(a.amount - b.amount) from entries a join entries b on b.id = a.id + 1 group by 1 order by 1;
select json_extract(json_arrayagg(json_object('id', id, 'text', text)), '$[11]') from entries where id < 100100 order by id;
select id, text regexp '7$' from entries order by amount desc, id limit 5;
select no_such_column from entries;
SQL
client load_of_it -e 'check table entries; checksum table entries'
