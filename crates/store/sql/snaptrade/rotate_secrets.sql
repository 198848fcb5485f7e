-- Apart from the insert: `on conflict do update` would need the right to read the secret that it replaces.
with locked as (
  select k.user_id from spillway.snaptrade_user k
  where k.user_id = any ($1::text[]) order by k.user_id collate "C" for update
)
update spillway.snaptrade_user k set sealed_secret = u.sealed_secret, updated_at = clock_timestamp()
from unnest($1::text[], $2::bytea[]) as u (user_id, sealed_secret) join locked on locked.user_id = u.user_id
where k.user_id = u.user_id;
