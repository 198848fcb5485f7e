-- A standby answers, but can store nothing.
select pg_is_in_recovery() as "is_standby!";
