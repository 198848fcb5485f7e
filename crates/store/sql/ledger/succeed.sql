with archived as materialized (
  select a.msg_id from spillway.queue_archive($1, $2, $3) a
), closed as (
  update spillway.command k
  set status = 'succeeded', attempts = k.attempts + 1, outcomes = k.outcomes + 1,
    started_at = coalesce(k.started_at, s.started_at), finished_at = clock_timestamp(), result = s.result,
    blocked_reason = null, blocked_until = null, next_attempt_at = null, retry_class = null, failure_code = null,
    failure_message = null,
    provider_request_ids = k.provider_request_ids || string_to_array(nullif(s.request_ids, ''), ' ')
  from archived
  join unnest($2::bigint[], $4::uuid[], $5::timestamptz[], $6::jsonb[], $7::text[])
    as s (msg_id, command_id, started_at, result, request_ids) on s.msg_id = archived.msg_id
  where k.id = s.command_id and k.finished_at is null
)
select archived.msg_id as "msg_id!" from archived;
