-- The ledger's counts are one life's: the new message begins with a read count of nothing. The request's hash
-- stays what the caller sent, so that a caller who repeats the request is answered with this command, whatever an
-- operator made of its input.
update spillway.command k
set status = 'queued', class = $3, payload = coalesce($2::jsonb, k.payload), replays = k.replays + 1,
  first_dead_letter = coalesce(k.first_dead_letter, l.id), attempts = 0, crashes = 0, outcomes = 0,
  retry_class = null, next_attempt_at = null, blocked_reason = null, blocked_until = null, blocked_since = null,
  blocked_times = 0, result = null, failure_code = null, failure_message = null, progress_done = null,
  progress_total = null, started_at = null, finished_at = null
from spillway.dead_letter l
where l.id = any ($1::uuid[]) and k.id = l.command_id and k.status = 'dead_lettered'
returning l.id;
