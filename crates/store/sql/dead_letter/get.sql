select id, command_id, workload, reason, detail_code, detail, policies, attempts, crashes, state, died_at
from spillway.dead_letter where id = $1;
