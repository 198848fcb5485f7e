insert into spillway._sqlx_migrations (version, description, success, checksum, execution_time)
values ($1, $2, true, $3, 0)
on conflict (version) do nothing;
