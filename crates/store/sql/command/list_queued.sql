select id, workload, scope, status,
  case when status = 'blocked' then blocked_reason end as blocked_reason, blocked_until, attempts, crashes, max_attempts, class,
  actor_id, next_attempt_at, progress_done, progress_total, result, failure_code, failure_message,
  accepted_at, started_at, finished_at, traceparent, correlation_id
from (select q.id as found from spillway.queue_newest($2, 10000) q (id) order by q.id desc) waiting
join spillway.command on id = waiting.found
where ($1::text is null or scope = $1) and ($2::text is null or workload = $2)
  and ($3::uuid is null or id < $3)
  and status = 'queued'
order by id desc
limit $4;
