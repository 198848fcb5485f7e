select k.id from spillway.command k
where k.id in (select l.command_id from spillway.dead_letter l where l.id = any ($1::uuid[]))
order by k.id for update;
