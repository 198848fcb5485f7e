-- The server session that answers.
select pg_backend_pid();
