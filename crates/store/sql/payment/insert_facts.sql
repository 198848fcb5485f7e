-- What another run has taken in meanwhile stays as it is; what it could not read may be read now.
insert into spillway.payment_fact as f (
  tenant, payment_id, seq, transaction_id, transaction_type, status, amount, currency, effective_at, refusal)
select $1, $2, n.seq, n.transaction_id, n.transaction_type, n.status, n.amount, n.currency, n.effective_at, n.refusal
from unnest($3::bigint[], $4::uuid[], $5::text[], $6::text[], $7::numeric[], $8::text[], $9::timestamptz[], $10::text[])
  as n (seq, transaction_id, transaction_type, status, amount, currency, effective_at, refusal)
on conflict (tenant, payment_id, seq) do update
set transaction_id = excluded.transaction_id, transaction_type = excluded.transaction_type, status = excluded.status,
  amount = excluded.amount, currency = excluded.currency, effective_at = excluded.effective_at,
  refusal = excluded.refusal, taken_in_at = clock_timestamp()
where f.refusal is not null;
