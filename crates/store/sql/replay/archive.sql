-- The message may have gone by hand; the dead letter's row is what counts.
select pgmq.archive(w.dead_letter_queue, l.dead_msg_id) as "archived!"
from spillway.dead_letter l join spillway.workload w on w.kind = l.workload
where l.id = any ($1::uuid[]);
