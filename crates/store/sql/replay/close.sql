update spillway.command k set status = $2
from spillway.dead_letter l
where l.id = any ($1::uuid[]) and k.id = l.command_id and k.status = 'dead_lettered';
