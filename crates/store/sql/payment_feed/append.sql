with facts as materialized (
  select f.tenant, f.payment_id, f.inbox_id, f.place,
    row_number() over (partition by f.tenant, f.payment_id order by f.place) as nth
  from unnest($1::text[], $2::uuid[], $3::uuid[]) with ordinality as f (tenant, payment_id, inbox_id, place)
), numbered as (
  insert into spillway.payment_feed as p (tenant, payment_id, last_seq)
  select f.tenant, f.payment_id, count(*) from facts f
  group by f.tenant, f.payment_id order by f.tenant collate "C", f.payment_id
  on conflict (tenant, payment_id) do update set last_seq = p.last_seq + excluded.last_seq
  returning p.tenant, p.payment_id, p.last_seq
)
insert into spillway.payment_feed_entry (tenant, payment_id, seq, inbox_id)
select f.tenant, f.payment_id,
  n.last_seq - (select count(*) from facts a where a.tenant = f.tenant and a.payment_id = f.payment_id) + f.nth,
  f.inbox_id
from facts f join numbered n on n.tenant = f.tenant and n.payment_id = f.payment_id;
