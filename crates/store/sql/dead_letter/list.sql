select id, command_id, workload, reason, detail_code, detail, policies, attempts, crashes, state, died_at,
  decided_at, decided_by, replays, first_dead_letter
from spillway.dead_letter
where state = 'open' and ($1::text is null or workload = $1)
order by died_at desc
limit $2;
