with held as materialized (
  select e.msg_id, e.read_ct, e.renewed from spillway.queue_extend($1, $2, $3, $4) e
), shown as (
  update spillway.command k
  set status = 'running', started_at = coalesce(k.started_at, s.started_at), blocked_until = null,
    next_attempt_at = null
  from unnest($2::bigint[], $3::int[], $5::uuid[], $6::timestamptz[]) as s (msg_id, read_ct, command_id, started_at)
  join held h on h.msg_id = s.msg_id and h.read_ct = s.read_ct and h.renewed
  where k.id = s.command_id and k.finished_at is null
)
select held.msg_id as "msg_id!", held.read_ct as "read_ct!", held.renewed as "renewed!" from held;
