insert into spillway.replay (dead_letter_id, command_id, msg_id, action, actor, why, original, repaired, difference)
select l.id, k.id,
  pgmq.send(w.queue, jsonb_build_object('command', k.id, 'kind', k.kind, 'version', k.payload_version),
    spillway.headers_of(k.traceparent, k.tracestate, k.correlation_id, k.class, k.workload, k.payload), 0),
  $2, $3, $4, $5::jsonb, $6::jsonb, $7::jsonb
from spillway.dead_letter l
join spillway.command k on k.id = l.command_id
join spillway.workload w on w.kind = k.workload
where l.id = any ($1::uuid[])
order by l.id;
