select distinct f.transaction_id as "transaction_id!", f.transaction_type as "transaction_type!", f.status as "status!",
  f.amount, f.currency
from spillway.payment_fact f where f.tenant = $1 and f.payment_id = $2 and f.refusal is null;
