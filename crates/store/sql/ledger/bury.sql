with archived as materialized (
  select a.msg_id, a.message, a.headers from spillway.queue_archive($1, array[$2::bigint], array[$3::int]) a
), copied as materialized (
  select pgmq.send($4, archived.message || jsonb_build_object('dead_letter', $5::uuid),
    coalesce(archived.headers, '{}'), 0) as msg_id from archived
), recorded as (
  insert into spillway.attempt_failure (command_id, msg_id, read_ct, class, code, message, request_id, worker)
  select $6::uuid, archived.msg_id, $3::int, $12::text, $9::text, $10::text, $13::text, $14::text
  from archived where $6::uuid is not null
), closed as (
  update spillway.command k
  set status = 'dead_lettered', attempts = k.attempts + $15::int, outcomes = k.outcomes + 1, retry_class = $12::text,
    finished_at = clock_timestamp(), failure_code = $8::text, failure_message = $10::text,
    blocked_reason = null, blocked_until = null, next_attempt_at = null,
    provider_request_ids = k.provider_request_ids || array_remove(array[$13::text], null)
  from archived where k.id = $6::uuid and k.finished_at is null
), released as (
  update spillway.account_sync s set waiting_command = null
  from archived where s.waiting_command = $6::uuid
), buried as (
  insert into spillway.dead_letter (
    id, command_id, workload, queue, msg_id, dead_msg_id, reason, detail_code, detail, policies, message, headers,
    attempts, crashes, replays, first_dead_letter)
  select $5::uuid, $6::uuid, $7::text, $1::text, archived.msg_id, copied.msg_id, $8::text, $9::text, $10::text,
    $11::text[], archived.message, archived.headers,
    coalesce((select k.attempts + $15::int from spillway.command k where k.id = $6::uuid), 0),
    coalesce((select k.crashes from spillway.command k where k.id = $6::uuid), 0),
    coalesce((select k.replays from spillway.command k where k.id = $6::uuid), 0),
    (select k.first_dead_letter from spillway.command k where k.id = $6::uuid)
  from archived, copied
)
select archived.msg_id as "msg_id!" from archived;
