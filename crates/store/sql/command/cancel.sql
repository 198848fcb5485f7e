with released as (
  update spillway.account_sync s set waiting_command = null where s.waiting_command = $1
)
update spillway.command k
set status = 'cancelled', finished_at = clock_timestamp(), blocked_until = null, next_attempt_at = null
where k.id = $1 and k.status in ('accepted', 'queued', 'retrying', 'blocked')
returning k.id;
