-- What was not taken in yet, in the feed's order; before it the command's own fact where it could not be read.
with applied as (
  select coalesce(max(p.applied_seq), 0) as seq from spillway.payment p where p.tenant = $1 and p.payment_id = $2
), waiting as (
  (select e.seq, e.inbox_id from spillway.payment_feed_entry e, applied a
   where e.tenant = $1 and e.payment_id = $2 and e.seq > a.seq
   order by e.seq limit $4)
  union all
  select e.seq, e.inbox_id from spillway.payment_fact f
  join spillway.payment_feed_entry e on e.tenant = f.tenant and e.payment_id = f.payment_id and e.seq = f.seq
  join spillway.webhook_inbox o on o.id = e.inbox_id
  where f.tenant = $1 and f.payment_id = $2 and f.refusal is not null and o.command_id = $3
)
select w.seq as "seq!", i.doc::text as body, coalesce(i.command_id = $3, false) as "is_own!"
from waiting w left join spillway.webhook_inbox i on i.id = w.inbox_id
order by w.seq;
