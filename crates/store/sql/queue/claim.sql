-- The look-up of the command is a nested loop on purpose (`offset 0`): a plan cached while the ledger was small
-- must not read all of it once it is large.
select c.msg_id as "msg_id!", c.read_ct as "read_ct!", c.due_at as "due_at!",
  statement_timestamp() as "claimed_at!", c.message as "message!",
  k.id as "id?", k.kind as "kind?", k.payload_version as "payload_version?", k.payload as "payload?",
  k.attempts as "attempts?", k.outcomes as "outcomes?", k.blocked_times as "blocked_times?",
  (extract(epoch from statement_timestamp() - k.blocked_since))::bigint as "waiting_seconds?",
  k.finished_at as "finished_at?", k.traceparent as "traceparent?", k.tracestate as "tracestate?",
  k.correlation_id as "correlation_id?"
from spillway.queue_claim($1, $2, $3) c
left join lateral (
  select k.id, k.kind, k.payload_version, k.payload, k.attempts, k.outcomes, k.blocked_times, k.blocked_since,
    k.finished_at, k.traceparent, k.tracestate, k.correlation_id
  from spillway.command k where k.id = spillway.command_of(c.message) offset 0
) k on true;
