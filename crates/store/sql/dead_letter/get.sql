select id, command_id, workload, reason, detail_code, detail, policies, attempts, crashes, state, died_at,
  decided_at, decided_by, replays, first_dead_letter
from spillway.dead_letter where id = $1;
