insert into spillway.process as p (id, kind, version, host, pid, queue, slots) values ($1, $2, $3, $4, $5, $6, $7)
on conflict (id) do update set last_seen_at = clock_timestamp();
