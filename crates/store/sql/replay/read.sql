select l.id, l.command_id, l.workload, l.reason, l.policies, l.state, l.decided_by, k.status as "status?",
  k.kind as "kind?", k.payload as "payload?"
from spillway.dead_letter l left join spillway.command k on k.id = l.command_id
where l.id = any ($1::uuid[])
order by l.id;
