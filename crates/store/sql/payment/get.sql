select e.last_seq, coalesce(p.applied_seq, 0) as "applied_seq!", coalesce(p.state, 'init') as "state!", p.conflict,
  p.changed_at as "changed_at?"
from spillway.payment_feed e
left join spillway.payment p on p.tenant = e.tenant and p.payment_id = e.payment_id
where e.tenant = $1 and e.payment_id = $2;
