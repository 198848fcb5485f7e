with waiting as materialized (
  select s.work_type, s.account_id, s.waiting_command from spillway.account_sync s
  where s.account_id = any ($1::uuid[]) and s.waiting_command is not null
  order by s.work_type, s.account_id for update
), released as (
  update spillway.account_sync s set waiting_command = null from waiting
  where s.work_type = waiting.work_type and s.account_id = waiting.account_id
)
update spillway.command k
set status = 'superseded', finished_at = clock_timestamp(), blocked_until = null, next_attempt_at = null
from waiting where k.id = waiting.waiting_command and k.finished_at is null;
