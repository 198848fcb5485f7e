select r.requested as "requested!", i.id
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[])
  as r (requested, source, tenant, identity, body_sha256)
join spillway.webhook_inbox i
  on i.source = r.source and i.tenant = r.tenant and i.identity = r.identity
  and i.body_sha256 = r.body_sha256 and i.state <> 'accepted';
