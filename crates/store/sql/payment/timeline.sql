select f.seq, f.transaction_id, f.transaction_type, f.status, f.amount, f.currency, f.effective_at, f.refusal,
  f.taken_in_at
from spillway.payment_fact f where f.tenant = $1 and f.payment_id = $2 order by f.seq;
