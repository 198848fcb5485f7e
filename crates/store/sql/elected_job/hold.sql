insert into spillway.elected_job as j (name, holder, until)
values ($1, $2, clock_timestamp() + $3::float8 * interval '1 second')
on conflict (name) do update set holder = excluded.holder, until = excluded.until
where j.holder = excluded.holder or j.until <= clock_timestamp()
returning true as "held!";
