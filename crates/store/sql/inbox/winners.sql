select r.requested as "requested!", i.id, i.command_id, i.body_sha256
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as r (requested, source, tenant, identity)
join spillway.webhook_inbox i
  on i.source = r.source and i.tenant = r.tenant and i.identity = r.identity and i.state = 'accepted';
