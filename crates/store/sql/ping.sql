-- A standby answers, but can store nothing; nor can a server that was demoted or told to take no writes.
select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean as "is_standby!";
