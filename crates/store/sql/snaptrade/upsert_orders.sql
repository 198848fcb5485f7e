insert into spillway.snaptrade_order (account_id, brokerage_order_id, status, placed_at, details)
select $1::uuid, o.brokerage_order_id, o.status, o.placed_at, o.details
from unnest($2::text[], $3::text[], $4::timestamptz[], $5::jsonb[])
  as o (brokerage_order_id, status, placed_at, details)
on conflict (account_id, brokerage_order_id)
do update set status = excluded.status, placed_at = excluded.placed_at, details = excluded.details;
