insert into spillway.snaptrade_activity as s (
  account_id, activity_id, type, trade_date, units, price, amount, fee, currency, details)
select $1::uuid, a.activity_id, a.type, a.trade_date, a.units, a.price, a.amount, a.fee, a.currency, a.details
from unnest($2::text[], $3::text[], $4::timestamptz[], $5::numeric[], $6::numeric[], $7::numeric[], $8::numeric[],
  $9::text[], $10::jsonb[])
  as a (activity_id, type, trade_date, units, price, amount, fee, currency, details)
on conflict (account_id, activity_id) do update
set type = excluded.type, trade_date = excluded.trade_date, units = excluded.units, price = excluded.price,
  amount = excluded.amount, fee = excluded.fee, currency = excluded.currency, details = excluded.details
where s.details is distinct from excluded.details;
