select c.msg_id as "msg_id?", c.read_ct as "read_ct!", c.due_at as "due_at?", c.claimed_at as "claimed_at!",
  c.message ->> 'kind' as "message_kind?", c.id as "id?", c.kind as "kind?", c.payload_version as "payload_version?",
  c.payload as "payload?", c.attempts as "attempts?", c.outcomes as "outcomes?", c.crashes as "crashes?",
  c.alone_read_ct as "alone_read_ct?", c.blocked_times as "blocked_times?", c.blocked_since as "blocked_since?",
  c.finished_at as "finished_at?", c.traceparent as "traceparent?", c.tracestate as "tracestate?", c.lane as "lane?"
from spillway.queue_claim($1, $2, $3, $4, $5, $6) c;
