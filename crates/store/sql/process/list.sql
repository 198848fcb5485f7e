select p.id, p.kind, p.version, p.host, p.pid, p.queue, p.slots, p.started_at, p.last_seen_at,
  p.last_seen_at > clock_timestamp() - $1::float8 * interval '1 second' as "is_live!"
from spillway.process p
order by p.kind, p.queue, p.started_at, p.id;
