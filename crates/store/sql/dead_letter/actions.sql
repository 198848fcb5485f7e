select a.at, a.actor, a.action, a.why
from spillway.operator_action a
where a.target_kind = 'dead_letter' and a.target in (
  select l.id::text from spillway.dead_letter l
  where l.id = $1 or l.command_id = (select own.command_id from spillway.dead_letter own where own.id = $1)
)
order by a.id;
