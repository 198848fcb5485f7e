insert into spillway.webhook_inbox (
  id, source, tenant, identity, state, reason, event_type, body, body_sha256, doc, conflicts_with, command_id,
  traceparent, correlation_id, finished_at)
select n.id, n.source, n.tenant, n.identity, n.state, n.reason, n.event_type, n.body, n.body_sha256,
  case when n.clean then convert_from(n.body, 'UTF8')::jsonb - 'webhookSecret' end, n.conflicts_with, n.command_id,
  n.traceparent, n.correlation_id, case when n.state = 'accepted' and n.command_id is null then clock_timestamp() end
from unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bytea[], $9::bytea[],
    $10::boolean[], $11::uuid[], $12::uuid[], $13::text[], $14::text[])
  with ordinality as n (
    id, source, tenant, identity, state, reason, event_type, body, body_sha256, clean, conflicts_with,
    command_id, traceparent, correlation_id, place)
order by n.place
on conflict do nothing
returning id, command_id;
