select k.payload as "payload!" from spillway.dead_letter l join spillway.command k on k.id = l.command_id
where l.id = $1;
