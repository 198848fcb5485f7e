-- The sync that waits is locked before its command, as everybody does. A command that somebody runs goes on waiting
-- until it starts: without it, the next event would put a second one beside it.
with waiting as materialized (
  select s.work_type, s.account_id from spillway.account_sync s where s.waiting_command = $1 for update
), cancelled as (
  update spillway.command k
  set status = 'cancelled', finished_at = clock_timestamp(), blocked_until = null, next_attempt_at = null
  from (select count(*) from waiting) first
  where k.id = $1 and k.status in ('accepted', 'queued', 'retrying', 'blocked')
  returning k.id
), released as (
  update spillway.account_sync s set waiting_command = null from waiting, cancelled
  where s.work_type = waiting.work_type and s.account_id = waiting.account_id
)
select cancelled.id from cancelled;
