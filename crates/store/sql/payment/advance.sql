-- Passes the numbers whose facts are there. Where one is missing it changes nothing and answers nothing.
with fresh as (
  select count(f.seq) as n, max(f.seq) as last
  from spillway.payment p
  left join spillway.payment_fact f on f.tenant = p.tenant and f.payment_id = p.payment_id and f.seq > p.applied_seq
  where p.tenant = $1 and p.payment_id = $2
)
update spillway.payment p
set applied_seq = p.applied_seq + fresh.n, state = $3, conflict = $4, changed_at = clock_timestamp()
from fresh
where p.tenant = $1 and p.payment_id = $2 and (fresh.n = 0 or fresh.last = p.applied_seq + fresh.n)
returning p.applied_seq;
