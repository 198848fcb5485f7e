with back as materialized (
  select p.msg_id from spillway.queue_postpone($1, array[$2::bigint], array[$3::int], array[$5::bigint]) p
), told as (
  update spillway.command k
  set outcomes = k.outcomes + 1, status = case k.status when 'running' then 'queued' else k.status end
  from back where k.id = $4::uuid and k.finished_at is null
)
select back.msg_id as "msg_id!" from back;
