select failed_at, class, code, message, request_id, worker
from spillway.attempt_failure where command_id = $1 order by id;
