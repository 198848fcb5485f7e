select id, workload, scope, status,
  case when status = 'blocked' then blocked_reason end as blocked_reason, blocked_until, attempts, crashes, max_attempts, class,
  actor_id, next_attempt_at, progress_done, progress_total, result, failure_code, failure_message,
  accepted_at, started_at, finished_at, traceparent, correlation_id
from spillway.command
where ($1::text is null or scope = $1) and ($2::text is null or workload = $2)
  and ($3::uuid is null or id < $3)
  and listed = $5
order by id desc
limit $4;
