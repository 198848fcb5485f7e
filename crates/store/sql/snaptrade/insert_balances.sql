insert into spillway.snaptrade_balance (account_id, currency, cash, buying_power)
select $1::uuid, b.currency, b.cash, b.buying_power
from unnest($2::text[], $3::numeric[], $4::numeric[]) as b (currency, cash, buying_power);
