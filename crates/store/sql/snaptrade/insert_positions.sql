insert into spillway.snaptrade_position (
  account_id, position, kind, symbol, units, price, cost_basis, currency, instrument)
select $1::uuid, p.position, p.kind, p.symbol, p.units, p.price, p.cost_basis, p.currency, p.instrument
from unnest($2::text[], $3::text[], $4::numeric[], $5::numeric[], $6::numeric[], $7::text[], $8::jsonb[])
  with ordinality as p (kind, symbol, units, price, cost_basis, currency, instrument, position);
