update spillway.webhook_inbox i set command_id = l.command_id
from unnest($1::uuid[], $2::uuid[]) as l (id, command_id)
where i.id = l.id;
