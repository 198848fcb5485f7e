-- One that waits in the line of a key is blocked too; which message waits is written there, not in the ledger.
select k.id, k.workload, k.scope, k.status,
  case
    when k.status = 'blocked' then k.blocked_reason
    when w.key is not null and l.paused_at is not null then 'paused'
    when w.key is not null then 'limit_reached'
  end as blocked_reason,
  coalesce(k.blocked_until, case when w.key is not null then l.cooldown_until end) as blocked_until, k.attempts,
  k.crashes, k.max_attempts, k.class, k.actor_id, k.next_attempt_at, k.progress_done, k.progress_total, k.result,
  k.failure_code, k.failure_message, k.accepted_at, k.started_at, k.finished_at, k.traceparent, k.correlation_id
from spillway.command k
left join lateral (select x.key from spillway.limit_wait x where x.command_id = k.id and k.finished_at is null limit 1) w on true
left join spillway.limit_key l on l.key = w.key
where k.id = $1;
