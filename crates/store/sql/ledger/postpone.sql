-- With a reason to be blocked ($6) nothing is counted but the end of the claim; without one an attempt is burnt.
with moved as materialized (
  select p.msg_id, p.due_at from spillway.queue_postpone($1, array[$2::bigint], array[$3::int], array[$4::bigint]) p
), recorded as (
  insert into spillway.attempt_failure (command_id, msg_id, read_ct, class, code, message, request_id, worker)
  select $5::uuid, moved.msg_id, $3::int, $7::text, $8::text, $9::text, $10::text, $11::text
  from moved where $6::text is null
), told as (
  update spillway.command k
  set status = case when $6::text is null then 'retrying' else 'blocked' end,
    attempts = k.attempts + case when $6::text is null then 1 else 0 end,
    outcomes = k.outcomes + 1, retry_class = $7::text, next_attempt_at = moved.due_at,
    blocked_reason = $6::text, blocked_until = case when $6::text is not null then moved.due_at end,
    blocked_since = case
      when $6::text is null then null
      when k.blocked_reason is distinct from $6::text then clock_timestamp()
      else coalesce(k.blocked_since, clock_timestamp()) end,
    blocked_times = case
      when $6::text is null then 0
      when k.blocked_reason is distinct from $6::text then 1
      else k.blocked_times + 1 end,
    failure_code = $8::text, failure_message = $9::text,
    provider_request_ids = k.provider_request_ids || array_remove(array[$10::text], null)
  from moved where k.id = $5::uuid and k.finished_at is null
)
select moved.msg_id as "msg_id!" from moved;
